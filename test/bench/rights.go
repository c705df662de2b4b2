package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test/build"
)

const (
	// follower is the user whose rights come and go. followerRole is the ClusterRole that gives them in a namespace.
	follower, followerRole = "eve", "bench-secrets"
	// rightNoticed is how long it may take until a right that came or went is noticed.
	rightNoticed = 2 * time.Second
)

// arrivals records when, after a call of expect, the first object of a namespace arrives.
type arrivals struct {
	mu    sync.Mutex
	first map[string]chan time.Time
}

// expect returns a channel that gets the time of the next object of a namespace.
func (a *arrivals) expect(namespace string) <-chan time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := make(chan time.Time, 1)
	a.first[namespace] = first
	return first
}

func (a *arrivals) note(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if first := a.first[namespace]; first != nil {
		first <- time.Now()
		delete(a.first, namespace)
	}
}

// followRights measures how soon informers follow a RoleBinding that is deleted and made again. Each of n namespaces has two informers and
// a RoleBinding of its own. Namespaces change one after the other, so that the time depends only on their number.
func (b informersBench) followRights(ctx context.Context, n int) ([]result, error) {
	rounds := 100
	if b.scale.small {
		rounds = 5
	}
	if err := b.grantEach(ctx, n); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	came := &arrivals{first: map[string]chan time.Time{}}
	leases, err := b.leaseTwice(ctx, n, came)
	if err != nil {
		return nil, err
	}
	var grants, revocations []time.Duration
	for range rounds {
		namespace := watchedName(rand.IntN(n))
		binding := build.RoleBinding(namespace, followerRole, followerRole, build.RBACUser(follower))
		begin := time.Now()
		if err := b.Admin().Delete(ctx, binding); err != nil {
			return nil, err
		}
		for _, l := range leases {
			if err := reaches(ctx, l, namespace, watchset.Forbidden); err != nil {
				return nil, err
			}
		}
		revocations = append(revocations, time.Since(begin))
		first := came.expect(namespace)
		begin = time.Now()
		if err := b.Admin().Create(ctx, build.RoleBinding(namespace, followerRole, followerRole, build.RBACUser(follower))); err != nil {
			return nil, err
		}
		select {
		case at := <-first:
			grants = append(grants, at.Sub(begin))
		case <-time.After(10 * time.Minute):
			return nil, fmt.Errorf("no object of namespace %s came in 10 minutes after the grant", namespace)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		for _, l := range leases {
			if err := reaches(ctx, l, namespace, watchset.Synced); err != nil {
				return nil, err
			}
		}
	}
	return []result{
		judgeNotice("from a grant to the first event", 2*n, grants), judgeNotice("from a revocation to Forbidden", 2*n, revocations),
	}, nil
}

func judgeNotice(what string, informers int, times []time.Duration) result {
	slices.Sort(times)
	p50, p99 := times[len(times)/2], times[min(len(times)-1, len(times)*99/100)]
	return result{id: "informers", passed: p99 <= rightNoticed,
		text: fmt.Sprintf("%s, %d informers, %d times: p50 %d ms p99 %d ms budget %d ms",
			what, informers, len(times), p50.Milliseconds(), p99.Milliseconds(), rightNoticed.Milliseconds())}
}

// grantEach lets the follower watch RBAC, and Secrets in each namespace by itself.
func (b informersBench) grantEach(ctx context.Context, n int) error {
	observer := build.ClusterRole("bench-rbac-observer", rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Verbs: []string{"list", "watch"}, Resources: []string{"roles", "rolebindings", "clusterroles",
			"clusterrolebindings"},
	})
	if err := b.Admin().Create(ctx, observer); err != nil {
		return err
	}
	if err := b.Admin().Create(ctx, build.ClusterRoleBinding(observer.Name, observer.Name, build.RBACUser(follower))); err != nil {
		return err
	}
	if err := b.Admin().Create(ctx, build.ClusterRole(followerRole, build.Rule("", "secrets", "list", "watch"))); err != nil {
		return err
	}
	return inParallel(ctx, n, func(ctx context.Context, i int) error {
		return b.Admin().Create(ctx, build.RoleBinding(watchedName(i), followerRole, followerRole, build.RBACUser(follower)))
	})
}

// leaseTwice leases the Secrets of all namespaces by two selectors, and waits until all are there.
func (b informersBench) leaseTwice(ctx context.Context, n int, came *arrivals) ([]*watchset.Lease, error) {
	cfg := b.Config(follower)
	cfg.QPS = -1
	set, err := watchset.New(cfg, watchset.Options{MaxInformers: 2 * n, MaxNamespaces: n})
	if err != nil {
		return nil, err
	}
	go func() { _ = set.Start(ctx) }()
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	source := set.Source("bench", secrets, handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			came.note(e.Object.GetNamespace())
		},
	})
	if err := source.Start(ctx, queue); err != nil {
		return nil, err
	}
	namespaces := watchset.NewNamespaceSet()
	for i := range n {
		namespaces.Add(watchedName(i), "")
	}
	var leases []*watchset.Lease
	for _, selector := range []string{"bench=watched", "bench!=none"} {
		request := watchset.Request{Resource: secrets, Scope: watchset.Namespaces(namespaces)}
		if request.LabelSelector, err = labels.Parse(selector); err != nil {
			return nil, err
		}
		owner := watchset.Owner{Controller: "bench", NamespacedName: types.NamespacedName{Name: selector}}
		l, err := set.Acquire(owner, request)
		if err != nil {
			return nil, err
		}
		leases = append(leases, l)
	}
	for _, l := range leases {
		if err := reaches(ctx, l, "", watchset.Synced); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// reaches waits until a lease is in a state, in one namespace or in all.
func reaches(ctx context.Context, l *watchset.Lease, namespace string, want watchset.State) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(10 * time.Minute); ; {
		now := l.Status
		if namespace != "" {
			now = func() watchset.Status { return l.StatusFor(namespace) }
		}
		if now().State == want {
			return nil
		}
		if time.Now().After(late) {
			return fmt.Errorf("after 10 minutes the informer of namespace %q is %s in place of %s", namespace, now().State, want)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
