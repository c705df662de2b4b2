package budget

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// owner owns the leases of the watches of this package.
var owner = watchset.Static("budget")

// refusalReasons are the reasons of the Events with which controllers report the message of a quota, and then try again. A field selector
// can't name several, so each has a watch: without a selector, all Events of the cluster would come.
var refusalReasons = [...]string{
	"FailedCreate",          // the controllers of ReplicaSets, StatefulSets, DaemonSets and Jobs
	"ReplicaSetCreateError", // the controller of Deployments, and Argo Rollouts
	"ExceededResourceQuota", // Tekton
	"ErrExceededQuota",      // KubeVirt's importer of volumes
}

// runWatches follows the HierarchicalResourceQuotas and, once their CRD exists, which component budgets installs with the rights that the
// operator needs, the shares and the Events of what was refused.
func (r *Reconciler) runWatches(ctx context.Context) error {
	core := corev1.SchemeGroupVersion
	if err := r.acquire(watchset.Request{
		Kind: v1alpha1.GroupVersion.WithKind("HierarchicalResourceQuota"), Form: watchset.Full, Sink: r.sinkOfLimits(),
	}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.served:
	}
	if err := r.acquire(watchset.Request{
		Resource: core.WithResource("resourcequotas"), Form: watchset.Full, Sink: r.sinkOfShares(),
		FieldSelector: fields.OneTermEqualSelector("metadata.name", budget.QuotaName),
	}); err != nil {
		return err
	}
	for i, reason := range refusalReasons {
		if err := r.acquire(watchset.Request{
			Resource: core.WithResource("events"), Form: watchset.Full, Sink: r.sinkOfEvents(watchOfEvents + i), FromNow: true,
			FieldSelector: fields.OneTermEqualSelector("reason", reason),
		}); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func (r *Reconciler) acquire(request watchset.Request) error {
	if _, err := r.Informers.Acquire(owner, request); err != nil {
		return fmt.Errorf("watching for budgets: %w", err)
	}
	return nil
}

// input takes in what a watch has shown.
type input func()

func applyInput(take input) { take() }

func (r *Reconciler) sinkOfShares() watchset.Sink {
	type object = *corev1.ResourceQuota
	return &copying.Sink[input, object]{
		Apply: applyInput,
		Listed: func(namespace, version string, all []object) input {
			return func() {
				r.changeShares(func(t shares) []shareChange { return t.List(namespace, version, all) })
				r.queueAll()
			}
		},
		Seen: func(one object) input {
			return func() {
				r.changeShares(func(t shares) []shareChange { return listed(t.Show(one)) })
				r.queueSoon(one.Namespace)
			}
		},
		Left: func(one object) input {
			return func() {
				r.changeShares(func(t shares) []shareChange { return listed(t.End(one)) })
				r.queueSoon(one.Namespace)
			}
		},
		Changed: func(_ string, now watchset.Status) input { return func() { r.takeState(watchOfShares, now) } },
		Keep:    trimShare,
	}
}

func (r *Reconciler) sinkOfLimits() watchset.Sink {
	type object = *v1alpha1.HierarchicalResourceQuota
	return &copying.Sink[input, object]{
		Apply: applyInput,
		Listed: func(namespace, version string, all []object) input {
			return func() {
				r.known.changeLimits(func(t limits) { t.List(namespace, version, all) })
				r.queueAll()
			}
		},
		Seen: func(one object) input {
			return func() {
				r.known.changeLimits(func(t limits) { t.Show(one) })
				r.queueSoon(one.Namespace)
			}
		},
		Left: func(one object) input {
			return func() {
				r.known.changeLimits(func(t limits) { t.End(one) })
				r.queueSoon(one.Namespace)
			}
		},
		Changed: func(_ string, now watchset.Status) input { return func() { r.takeState(watchOfLimits, now) } },
		Keep:    trimLimit,
	}
}

// sinkOfEvents takes each Event, and each repetition of one, for a refusal. Those that exist at the start are not even listed: they are
// old, whoever was refused tries again, and whoever may write Events decides how many there are.
func (r *Reconciler) sinkOfEvents(watch int) watchset.Sink {
	type object = *corev1.Event
	return &copying.Sink[input, object]{
		Apply:   applyInput,
		Listed:  func(_, _ string, _ []object) input { return func() {} },
		Seen:    func(one object) input { return func() { r.TakeRefusal(one.Namespace, one.Message) } },
		Left:    func(object) input { return func() {} },
		Changed: func(_ string, now watchset.Status) input { return func() { r.takeState(watch, now) } },
	}
}

func (r *Reconciler) changeShares(take func(shares) []shareChange) {
	r.known.changeShares(r.exists, take)
}

func (r *Reconciler) exists(namespace string) bool {
	return r.View.Snapshot().Namespace(namespace) != nil
}

// TakeRefusal takes in a message of the API server, which may say that something in a namespace was refused for want of room.
func (r *Reconciler) TakeRefusal(namespace, message string) {
	if wait, refused := r.known.takeRefusal(namespace, message, time.Now()); refused {
		refusals.Inc()
		r.again.AddAfter(max(wait, pace), requestFor(treeOf(r.View.Snapshot(), namespace)))
	}
}

func (r *Reconciler) takeState(watch int, now watchset.Status) {
	if watch == watchOfLimits && now.State != watchset.NotServed && now.Resource.Resource != "" {
		r.isServed()
	}
	if r.known.setWatch(watch, now) {
		r.queueAll()
	}
}

func (r *Reconciler) queueSoon(namespace string) {
	r.again.AddAfter(pace, requestFor(treeOf(r.View.Snapshot(), namespace)))
}

// queueAll queues every tree, and every namespace that is in none.
func (r *Reconciler) queueAll() {
	s := r.View.Snapshot()
	for name := range s.All() {
		if tree := treeOf(s, name); tree == name {
			r.again.Add(requestFor(tree))
		}
	}
}
