package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

const (
	// manyTargets is the number of target namespaces of DIST-D71. In obstructed of them, an object with the name of the copy exists already.
	manyTargets, obstructed = 10000, 150
	statusLimit             = 64 << 10
	bytesPerCopy            = 1024
)

// measureManyTargets measures DIST-D71: one ResourceDistribution to 10,000 namespaces, some of them in conflict.
func measureManyTargets(ctx context.Context, b *bench) ([]result, error) {
	n, blocked := manyTargets, obstructed
	if b.scale.small {
		n, blocked = 300, 120
	}
	// Names are nearly as long as they may be, so that the status has its full size.
	name := func(i int) string { return fmt.Sprintf("%s-%057d", "many", i) }
	err := inParallel(ctx, n, func(ctx context.Context, i int) error {
		if err := b.Admin().Create(ctx, build.Namespace(name(i), "bench", "yes")); err != nil || i >= blocked {
			return err
		}
		return b.Admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name(i), Name: "rd-many"}})
	})
	if err != nil {
		return nil, err
	}
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	b.label = v1alpha1.LabelDistributedBy
	o, err := b.observeIdle(ctx)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	before, err := b.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	mark, err := b.Mark(ctx)
	if err != nil {
		return nil, err
	}
	o.expect(watch.Added, n-blocked)
	f, begin := &distributing{bench: b, observer: o, conflicts: v1alpha1.ConflictSkip}, time.Now()
	if err := f.ask(ctx, "rd-many", creates); err != nil {
		return nil, err
	}
	end, err := o.wait(ctx)
	if err != nil {
		return nil, err
	}
	took := end.Sub(begin)
	if err := b.waitForIdle(ctx); err != nil {
		return nil, err
	}
	return b.judgeManyTargets(ctx, n-blocked, took, before, func() (int, error) {
		writes, err := b.Writes(ctx, mark)
		statuses := 0
		for _, r := range writes {
			if r.Resource == "resourcedistributions" && r.Subresource == "status" {
				statuses++
			}
		}
		return statuses, err
	})
}

func (b *bench) judgeManyTargets(ctx context.Context, copies int, took time.Duration, before float64,
	statusWrites func() (int, error)) ([]result, error) {
	statuses, err := statusWrites()
	if err != nil {
		return nil, err
	}
	rd := &v1alpha1.ResourceDistribution{}
	if err := b.Admin().Get(ctx, client.ObjectKey{Name: "rd-many"}, rd); err != nil {
		return nil, err
	}
	status, err := json.Marshal(rd.Status)
	if err != nil {
		return nil, err
	}
	peak, err := peakMemory(b.Operator.Process().PID())
	if err != nil {
		return nil, err
	}
	after, err := b.residentMemory(ctx)
	if err != nil {
		return nil, err
	}
	perCopy := (after - before) / float64(copies)
	most := int(took/(2*time.Second)) + 3
	return []result{
		{id: "DIST-D71", counted: true, passed: len(status) <= statusLimit && int(rd.Status.Current) == copies,
			text: fmt.Sprintf("status of %d targets, %d current, %d conflicts: %d bytes, limit %d", rd.Status.Targets, rd.Status.Current,
				rd.Status.Conflicts, len(status), statusLimit)},
		{id: "DIST-D71", counted: true, passed: statuses <= most, text: fmt.Sprintf("status writes %d in %.0fs, limit %d", statuses,
			took.Seconds(), most)},
		{id: "DIST-D71", passed: took <= 10*time.Minute && peak <= 1<<30, text: fmt.Sprintf("create %.0fs peak %.0f MiB budget 600s 1024 MiB",
			took.Seconds(), peak/mebibyte)},
		{id: "DIST-D71", passed: perCopy <= bytesPerCopy,
			text: fmt.Sprintf("memory before %.1f MiB, after %.1f MiB: %.0f bytes a copy, limit %d", before/mebibyte, after/mebibyte,
				perCopy, bytesPerCopy)},
	}, nil
}
