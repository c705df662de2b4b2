//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
)

// deployPrevious deploys the version that the cluster is upgraded from.
func (r *run) deployPrevious(ctx context.Context) error { return r.deploy(ctx, r.previous()) }

// upgrade deploys this version over the previous one.
func (r *run) upgrade(ctx context.Context) error { return r.changeVersion(ctx, r.current(), "upgrade") }

// downgrade goes back to the previous version, and upgradeAgain comes back to this one.
func (r *run) downgrade(ctx context.Context) error {
	return r.changeVersion(ctx, r.previous(), "downgrade")
}

func (r *run) upgradeAgain(ctx context.Context) error {
	return r.changeVersion(ctx, r.current(), "again")
}

// whileChanging is how many sub-namespaces alice makes before a change of versions, and how many while it runs.
const whileChanging = 5

// changeVersion deploys a version in the middle of alice's work: her tree grows, and a Secret spreads over it. No request is refused
// meanwhile, no namespace is lost, and no copy that was there is written again.
func (r *run) changeVersion(ctx context.Context, to version, stem string) error {
	source := build.Source(build.Secret(tenant, stem, "first"), "update")
	if err := r.world.As("alice").Create(ctx, source); err != nil {
		return fmt.Errorf("alice creates a Secret: %w", err)
	}
	if err := r.growSlowly(ctx, stem, 0, whileChanging, 0); err != nil {
		return err
	}
	if err := r.waitUntil(ctx, soon, "the first copies", r.allCopied(stem, whileChanging)); err != nil {
		return err
	}
	before, err := r.takeCensus(ctx)
	if err != nil {
		return err
	}
	began, asking := time.Now(), r.startAsking(ctx)
	grown := make(chan error, 1)
	go func() { grown <- r.growSlowly(ctx, stem, whileChanging, 2*whileChanging, 3*time.Second) }()
	deployed, growth := r.deploy(ctx, to), <-grown
	lasted, refused := time.Since(began), asking.end()
	for _, err := range []error{deployed, growth, refused} {
		if err != nil {
			return fmt.Errorf("%s to %s: %w", stem, to.name, err)
		}
	}
	if err := r.waitUntil(ctx, soon, "all copies", r.allCopied(stem, 2*whileChanging)); err != nil {
		return err
	}
	r.printSeen("%s to %s in %.1f s: %d requests, none refused, the slowest %.2f s; %d namespaces and %d copies untouched", stem, to.name,
		lasted.Seconds(), asking.asked, asking.slowest.Seconds(), len(before.namespaces), len(before.copies))
	return r.checkUntouched(ctx, before)
}

// growSlowly has alice make sub-namespaces, with a pause after each.
func (r *run) growSlowly(ctx context.Context, stem string, from, to int, pause time.Duration) error {
	for i := from; i < to; i++ {
		if err := r.world.As("alice").Create(ctx, build.SubNamespace(tenant, fmt.Sprintf("%s-%d", stem, i))); err != nil {
			return fmt.Errorf("alice creates a SubNamespace: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// allCopied returns what reports which of the sub-namespaces has no copy of the Secret yet.
func (r *run) allCopied(stem string, count int) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range count {
			key := client.ObjectKey{Namespace: fmt.Sprintf("%s-%d", stem, i), Name: stem}
			if err := r.world.Admin().Get(ctx, key, &corev1.Secret{}); err != nil {
				return err
			}
		}
		return nil
	}
}
