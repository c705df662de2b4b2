package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/devcluster/audit"
	"github.com/warren-tenancy/warren/internal/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/build"
)

// childBudget is what SubNamespaces may cost, in times of as many Namespaces, and childWrites what the operator writes for each: the
// Namespace and the status.
const (
	childBudget = 3.0
	childWrites = 2.0
)

// measureChildren measures B10: SubNamespaces until all are Ready, against as many plain Namespaces, in turns.
func measureChildren(ctx context.Context, b *bench) ([]result, error) {
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	if err := b.Admin().Create(ctx, build.Root(root)); err != nil {
		return nil, err
	}
	var floors, operators []time.Duration
	var quotients []float64
	writes := map[string]int{}
	for round := range b.scale.rounds {
		if err := b.waitForIdle(ctx); err != nil {
			return nil, err
		}
		floor, err := b.makeNamespaces(ctx, round)
		if err != nil {
			return nil, err
		}
		mark, err := b.Mark(ctx)
		if err != nil {
			return nil, err
		}
		took, err := b.makeSubNamespaces(ctx, round)
		if err != nil {
			return nil, err
		}
		if err := b.waitForIdle(ctx); err != nil {
			return nil, err
		}
		if err := b.countWrites(ctx, mark, writes); err != nil {
			return nil, err
		}
		floors, operators, quotients = append(floors, floor), append(operators, took), append(quotients, float64(took)/float64(floor))
	}
	ratio, made := medianOf(quotients), float64(b.scale.rounds*b.scale.children)
	each := float64(writes["namespaces"]+writes["subnamespaces"]+writes["subnamespaces/status"]+writes["events"]) / made
	return []result{
		{id: "B10", passed: ratio <= childBudget, text: fmt.Sprintf("children %d Namespaces %.2fs, as many SubNamespaces %.2fs ratio %.2f (min %.2f max %.2f) budget %.2f",
			b.scale.children, medianOf(floors).Seconds(), medianOf(operators).Seconds(), ratio, slices.Min(quotients), slices.Max(quotients), childBudget)},
		{id: "B10", counted: true, passed: each <= childWrites, text: fmt.Sprintf("writes per child %.2f budget %.2f %v", each, childWrites, writes)},
	}, nil
}

// makeNamespaces is the floor: Namespaces that are nobody's. The operator may not make such, so the admin does.
func (b *bench) makeNamespaces(ctx context.Context, round int) (time.Duration, error) {
	c, err := b.floorClient(controlplane.Admin)
	if err != nil {
		return 0, err
	}
	bodies := make([][]byte, b.scale.children)
	for i := range bodies {
		ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
		ns.Name = fmt.Sprintf("floor-%d-%05d", round, i)
		if bodies[i], err = json.Marshal(ns); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err = inParallel(ctx, len(bodies), func(ctx context.Context, i int) error {
		_, err := c.Post().Resource("namespaces").Body(bodies[i]).SetHeader("Content-Type", "application/json").SetHeader("Accept", accept).Do(ctx).Raw()
		return err
	})
	return time.Since(begin), err
}

// makeSubNamespaces makes SubNamespaces of the root as a user would, and waits until a watch has shown each as Ready.
func (b *bench) makeSubNamespaces(ctx context.Context, round int) (time.Duration, error) {
	list := &v1alpha1.SubNamespaceList{}
	if err := b.Admin().List(ctx, list, client.InNamespace(root)); err != nil {
		return 0, err
	}
	events, err := b.As(controlplane.Admin).Watch(ctx, &v1alpha1.SubNamespaceList{}, client.InNamespace(root),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	begin := time.Now()
	err = inParallel(ctx, b.scale.children, func(ctx context.Context, i int) error {
		return b.Admin().Create(ctx, build.SubNamespace(root, fmt.Sprintf("child-%d-%05d", round, i)))
	})
	if err != nil {
		return 0, err
	}
	return awaitReady(ctx, events, b.scale.children, begin)
}

// awaitReady says how long after begin the last of n SubNamespaces was Ready.
func awaitReady(ctx context.Context, events watch.Interface, n int, begin time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	ready := map[string]bool{}
	for len(ready) < n {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for %d SubNamespaces, of which %d are Ready: %w", n, len(ready), ctx.Err())
		case event, open := <-events.ResultChan():
			sub, known := event.Object.(*v1alpha1.SubNamespace)
			if !open || !known {
				return 0, fmt.Errorf("the watch of SubNamespaces ended: %v", event.Object)
			}
			if c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
				ready[sub.Name] = true
			}
		}
	}
	return time.Since(begin), nil
}

// countWrites adds up what the operator wrote since a mark, by resource.
func (b *bench) countWrites(ctx context.Context, mark audit.Position, into map[string]int) error {
	all, err := b.Requests(ctx, mark)
	for _, r := range all {
		if r.User == operatorUser && (r.IsWrite() || r.Resource == "events" && (r.Verb == "create" || r.Verb == "patch")) {
			into[strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")]++
		}
	}
	return err
}
