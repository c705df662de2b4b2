package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// links is the number of namespaces below the root of the chain.
const links = 15

// measureDepth measures B6: how much later than at depth 1 a copy appears at depth 15.
func measureDepth(ctx context.Context, b *bench) ([]result, error) {
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	if err := b.Admin().Create(ctx, build.Root(root)); err != nil {
		return nil, err
	}
	above := root
	for i := 1; i <= links; i++ {
		if err := b.Admin().Create(ctx, build.Child(childName(i), above)); err != nil {
			return nil, err
		}
		above = childName(i)
	}
	err := waitFor(ctx, "tree labels on the chain", func(ctx context.Context) (bool, error) {
		namespaces := &corev1.NamespaceList{}
		err := b.Admin().List(ctx, namespaces, client.HasLabels{v1alpha1.TreeLabel(root)})
		return len(namespaces.Items) == links+1, err
	})
	if err != nil {
		return nil, err
	}
	o, err := b.observeIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	shallow, deep := []time.Duration{}, []time.Duration{}
	for i := range 30 {
		s := newSecret(fmt.Sprintf("d-%d", i), "a")
		s.Labels = map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate}
		o.expect(watch.Added, links)
		begin := time.Now()
		if err := b.Admin().Create(ctx, s); err != nil {
			return nil, err
		}
		if _, err := o.wait(ctx); err != nil {
			return nil, err
		}
		all := o.all()
		shallow = append(shallow, all[childName(1)+"/"+s.Name].at.Sub(begin))
		deep = append(deep, all[childName(links)+"/"+s.Name].at.Sub(begin))
	}
	near, far := medianOf(shallow), medianOf(deep)
	limit := near*12/10 + 5*time.Millisecond
	return []result{{
		id: "B6", passed: far <= limit,
		text: fmt.Sprintf("depth p50 at depth 1 %.1fms, at depth 15 %.1fms budget %.1fms", ms(near), ms(far), ms(limit)),
	}}, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
