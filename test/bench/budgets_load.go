package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shares "github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/test/build"
)

// timePods creates pods one after the other, and times each. One that is refused is tried again, and not timed.
func (q *quotaBench) timePods(ctx context.Context, namespace string, n int) (took []time.Duration, err error) {
	for len(took) < n {
		begin := time.Now()
		switch err := q.Admin().Create(ctx, build.Pod(namespace)); {
		case apierrors.IsForbidden(err):
			if err := q.refuse(ctx, namespace, 1); err != nil {
				return nil, err
			}
			time.Sleep(100 * time.Millisecond)
		case err != nil:
			return nil, err
		default:
			took = append(took, time.Since(begin))
		}
	}
	return took, nil
}

// stormFor has clients of both API servers create pods in all namespaces at once, for as long as that.
func (q *quotaBench) stormFor(ctx context.Context, t quotaTree, length time.Duration) error {
	end := time.Now().Add(length)
	return inParallel(ctx, 16, func(ctx context.Context, _ int) error {
		for time.Now().Before(end) {
			err := q.servers[rand.IntN(len(q.servers))].Create(ctx, build.Pod(t[rand.IntN(len(t))]))
			if err != nil && !isRefusedPod(err) {
				return err
			}
			if err != nil {
				time.Sleep(20 * time.Millisecond)
			}
		}
		return nil
	})
}

// isRefusedPod reports whether a quota, or its conflict with another pod, kept a pod out.
func isRefusedPod(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsConflict(err) || apierrors.IsInternalError(err)
}

// deployAll makes a Deployment of pods in each namespace.
func (q *quotaBench) deployAll(ctx context.Context, t quotaTree, pods int) error {
	return inParallel(ctx, len(t), func(ctx context.Context, i int) error { return q.deploy(ctx, t[i], pods) })
}

func (q *quotaBench) deploy(ctx context.Context, namespace string, pods int) error {
	return q.Admin().Create(ctx, build.Deployment(namespace, "bench", int32(pods)))
}

// touchAll touches the ReplicaSets of a tree: their controller waits long after some refusals in a row, unless something changes.
func (q *quotaBench) touchAll(ctx context.Context, t quotaTree) error {
	return inParallel(ctx, len(t), func(ctx context.Context, i int) error {
		sets := &appsv1.ReplicaSetList{}
		if err := q.Admin().List(ctx, sets, client.InNamespace(t[i])); err != nil {
			return err
		}
		for n := range sets.Items {
			if err := client.IgnoreNotFound(q.Admin().Patch(ctx, &sets.Items[n], build.Touch())); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitPods waits until a tree has so many pods, and returns how long that took.
func (q *quotaBench) awaitPods(ctx context.Context, t quotaTree, pods int) (time.Duration, error) {
	begin := time.Now()
	err := waitFor(ctx, "pods", func(ctx context.Context) (bool, error) {
		n, err := q.countPods(ctx, t)
		return n >= pods, err
	})
	return time.Since(begin), err
}

// rounds is how often something is done; small at the small scale.
func (q *quotaBench) rounds(large, small int) int {
	if q.scale.small {
		return small
	}
	return large
}

// percentile returns the time that p of 100 don't exceed.
func percentile(all []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*p-1)/100]
}

func podList(pods int) corev1.ResourceList {
	return shares.Amounts{corev1.ResourcePods: int64(pods)}.List()
}
