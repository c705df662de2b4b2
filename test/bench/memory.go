package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

const mebibyte = 1 << 20

// measureMemory measures B7: what the operator needs for its copies, and that other objects of the same kind cost it nothing. In mode All
// this second part is left out, because every object is a source.
func measureMemory(ctx context.Context, b *bench) ([]result, error) {
	if err := b.makeCopies(ctx); err != nil {
		return nil, err
	}
	few, err := b.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	strangers, many := 20000, 10000
	if b.scale.small {
		strangers, many = 500, 100
	}
	crowded, beside := few, ""
	if b.scale.mode != modeAll {
		if err := b.makeStrangers(ctx, strangers); err != nil {
			return nil, err
		}
		if crowded, err = b.residentMemory(ctx); err != nil {
			return nil, err
		}
		beside = fmt.Sprintf(" with %d other Secrets %+.1f MiB, budget +8 MiB;", 2*strangers, (crowded-few)/mebibyte)
	}
	if err := b.growChildren(ctx, many); err != nil {
		return nil, err
	}
	large, err := b.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	allowed := func(children int) float64 { return 52*mebibyte + 1024*float64(b.scale.sources*(children+1)) }
	return []result{{
		id: "B7",
		text: fmt.Sprintf("memory %d copies %.1f MiB, budget %.1f MiB;%s %d copies %.1f MiB, budget %.1f MiB",
			b.scale.sources*b.scale.children, few/mebibyte, allowed(b.scale.children)/mebibyte, beside,
			b.scale.sources*many, large/mebibyte, allowed(many)/mebibyte),
		passed: few <= allowed(b.scale.children) && crowded-few <= 8*mebibyte && large <= allowed(many),
	}}, nil
}

// residentMemory is the operator's resident memory after it has been idle.
func (b *bench) residentMemory(ctx context.Context) (float64, error) {
	select {
	case <-time.After(b.scale.idle):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	m, err := b.Operator.Metrics(ctx)
	return m.Value("process_resident_memory_bytes", nil), err
}

// makeStrangers makes Secrets that are no sources: n outside the tree, n inside.
func (b *bench) makeStrangers(ctx context.Context, n int) error {
	if err := b.Admin().Create(ctx, build.Namespace("bench-plain")); err != nil {
		return err
	}
	return inParallel(ctx, 2*n, func(ctx context.Context, i int) error {
		namespace := "bench-plain"
		if i%2 == 0 {
			namespace = childName(i / 2 % b.scale.children)
		}
		return b.Admin().Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("stranger-%d", i)},
			Data:       map[string][]byte{"key": []byte(strings.Repeat("x", 8<<10))},
		})
	})
}

// growChildren adds children until there are n.
func (b *bench) growChildren(ctx context.Context, n int) error {
	o, err := b.startObserver(ctx)
	if err != nil {
		return err
	}
	defer o.stop()
	o.expect(watch.Added, b.scale.sources*(n-b.scale.children))
	err = inParallel(ctx, n-b.scale.children, func(ctx context.Context, i int) error {
		c := build.Child(childName(b.scale.children+i), root)
		c.Labels[v1alpha1.LabelCreatedBy] = "bench"
		return b.Admin().Create(ctx, c)
	})
	if err != nil {
		return err
	}
	if _, err := o.wait(ctx); err != nil {
		return err
	}
	return b.waitForIdle(ctx)
}
