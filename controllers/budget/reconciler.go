// Package budget keeps the shares of trees that have a budget: one ResourceQuota in each namespace below a limit. It feeds
// internal/budget with what watches show of limits, of these ResourceQuotas and of the Events of refused objects, and writes the shares
// that are planned there.
//
// The way of a refusal: a ReplicaSet's controller sends an Event, the sink (watches.go) records what was refused (known.go) and queues
// the tree. A worker gathers the limits and rows of the tree (gather.go), budget.Plan chooses the shares, and the worker writes each one,
// guarded by the version that the plan knew (write.go). The status follows at a slower pace (report.go).
//
// Where a webhook sees the creation first, nothing is refused: it waits at the door of the share until there is room (room.go).
package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Options are what a Reconciler needs of its surroundings.
type Options struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live client.Reader
	View *view.View
	// PatchNamespace writes labels of a Namespace: namespaces.Writer.Patch.
	PatchNamespace func(context.Context, *forest.Namespace, forest.Change) (version string, err error)
	Informers      *watchset.Set
	// Report writes the status of an LNamespace: lnamespace.Reporter.Report.
	Report func(context.Context, *v1alpha1.LNamespace, func(*v1alpha1.LNamespaceStatus)) error
	// Newest returns the newest known version of an LNamespace, nil if there is none: lnamespace.Reporter.Newest.
	Newest      func(context.Context, *v1alpha1.LNamespace) (*v1alpha1.LNamespace, error)
	Concurrency int
	// Metrics has metrics of each tenant's budget.
	Metrics bool
}

// Reconciler keeps the shares of one tree. A request names the root of the tree, or a namespace that is in none.
type Reconciler struct {
	Options
	known   known
	past    map[string]past // by tree; known.mu guards it
	reports reports
	// again queues trees of which the watches have shown something new.
	again requeue.Source[reconcile.Request]
	// served is closed when the CRD of component budgets exists, by isServed.
	served   chan struct{}
	isServed func()
	// begun is closed when this replica leads and knows what was written before.
	begun chan struct{}
}

const (
	// takeover is how long a new leader writes nothing, so that a late write of the one before is seen.
	takeover = 5 * time.Second
	// pace is how long a plan waits for more events.
	pace = 30 * time.Millisecond
	// mostWrites is how many shares one pass writes, so that a large tree doesn't keep a worker from others.
	mostWrites = 32
)

// New returns a Reconciler.
func New(o Options) *Reconciler {
	served := make(chan struct{})
	return &Reconciler{Options: o, known: newKnown(), past: map[string]past{}, reports: newReports(),
		begun:  make(chan struct{}),
		served: served, isServed: sync.OnceFunc(func() { close(served) })}
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(prometheus.Collector(gauges{&r.reports, r.Metrics})); err != nil {
		return err
	}
	if err := mgr.Add(copying.EveryReplica(r.runWatches)); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(r.takeOver)); err != nil {
		return err
	}
	r.followForest()
	err := ctrl.NewControllerManagedBy(mgr).Named("budget").
		// The View doesn't show a change of an LNamespace that leaves its budget as it is, but the condition tells of each generation.
		Watches(&v1alpha1.LNamespace{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(r.View.Source(r.requestChanged)).
		WatchesRawSource(&r.again).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Concurrency, RateLimiter: apianswer.RetryAfterOutage(), NewQueue: r.View.Queue(view.Named, nil),
		}).
		Complete(requeue.After(r.begun, apianswer.Patiently(r)))
	if err != nil {
		return fmt.Errorf("setting up the controller of budgets: %w", err)
	}
	return nil
}

// treeOf returns the name of the request that a namespace belongs to.
func treeOf(s *forest.Snapshot, namespace string) string {
	return cmp.Or(s.RootOf(namespace), namespace)
}

func requestFor(tree string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: tree}}
}

// followForest forgets namespaces that are gone, on every replica, as the watches feed every replica.
func (r *Reconciler) followForest() {
	r.View.Subscribe(func(c view.Change) {
		for _, namespace := range c.Namespaces {
			// A new namespace of the name begins without a share.
			if forest.HasEnded(c.Old, c.New, namespace) {
				r.known.forgetNamespace(namespace, endOf(c, c.Old.Namespace(namespace), c.New.Namespace(namespace)))
			}
		}
	})
}

// endOf returns the version of the end of a namespace: all that was in it is older. Where a list has shown another namespace of the
// name, that version isn't known, and the last one of the old namespace is returned.
func endOf(c view.Change, was, is *forest.Namespace) string {
	if is == nil {
		return c.Version
	}
	return was.ResourceVersion
}

func (r *Reconciler) requestChanged(c view.Change) []reconcile.Request {
	trees := map[string]bool{}
	for _, namespace := range c.Namespaces {
		trees[treeOf(c.Old, namespace)], trees[treeOf(c.New, namespace)] = true, true
	}
	requests := make([]reconcile.Request, 0, len(trees))
	for tree := range trees {
		requests = append(requests, requestFor(tree))
	}
	return requests
}

// Reconcile writes the shares of one tree, and reports.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now, s := time.Now(), r.View.Snapshot()
	state := r.known.readState()
	switch {
	case state.kind == unknown:
		return ctrl.Result{}, nil // the watch queues all trees as soon as it knows
	case treeOf(s, req.Name) != req.Name:
		return ctrl.Result{}, nil // it has joined a tree since, whose request is queued
	}
	t := r.gatherTree(s, req.Name, now)
	var again time.Duration
	var failure error
	if state.kind == installed {
		var wrote bool
		if again, wrote, failure = r.writeShares(ctx, t, now); wrote {
			t = r.gatherTree(s, req.Name, now)
		} else if !t.awaitsReturn() {
			r.known.noteFull(t, now)
		}
		failure = errors.Join(failure, r.markNamespaces(ctx, t))
	}
	reportAgain, err := r.reportTree(ctx, t, state, now)
	return ctrl.Result{RequeueAfter: soonest(again, reportAgain)}, errors.Join(failure, err)
}

// writeShares plans the shares of a tree, and writes them. It returns when to plan again though no event says so (0: never), and whether
// anything was to be written.
func (r *Reconciler) writeShares(ctx context.Context, t *tree, now time.Time) (again time.Duration, wrote bool, err error) {
	shares := budget.Plan(t.limits, t.rows, t.refusals, now)
	slices.SortStableFunc(shares, func(a, b budget.Share) int { return cmp.Compare(t.order[a.Namespace], t.order[b.Namespace]) })
	// After an open write is decided, there may be more room.
	isOpen := slices.ContainsFunc(t.rows, func(row budget.Row) bool { return row.Open })
	if len(shares) > mostWrites || isOpen {
		shares, again = shares[:min(len(shares), mostWrites)], time.Millisecond
	}
	if err := r.writeAll(ctx, t, shares, now); err != nil {
		return 0, len(shares) > 0, err
	}
	for _, refusal := range t.refusals {
		// Then the room that was kept for the namespace is everybody's again.
		again = soonest(again, max(budget.RefusalHolds-now.Sub(refusal.At), 0)+time.Millisecond)
	}
	return again, len(shares) > 0, nil
}

// soonest returns the shorter of two times, of which 0 means never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// AwaitsShare reports whether new rights and copies in a namespace must wait, because Kubernetes has not counted the namespace's share
// yet, and doesn't limit by it.
func (r *Reconciler) AwaitsShare(namespace string) bool {
	s := r.View.Snapshot()
	place := s.Place(namespace)
	// While it is not known whether the component is installed, or which limits there are, rights wait.
	if !place.InTree() || r.known.readState().isOff() {
		return false
	}
	limited := len(s.Limits(place.Path[0]).Hard) > 0
	for _, above := range place.Path {
		limited = limited || r.known.hasLimit(above)
	}
	return limited && !r.known.isCounted(namespace) && !r.isUnlimited(place.Path[0], namespace)
}

func (r *Reconciler) isUnlimited(root, namespace string) bool {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	return r.past[root].unlimited[namespace]
}
