package hierarchy

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
)

// mostChildren is how many children a status names at most.
const mostChildren = 1000

// mostRest is the longest pause of a worker after a write: if one write was slow by chance, the next must not wait for
// long.
const mostRest = 100 * time.Millisecond

// Reporter writes the status of HierarchyConfigurations, and creates one in a namespace that has something to report
// and no HierarchyConfiguration.
type Reporter struct {
	Client client.Client
	View   *view.View
	Events record.EventRecorder
	// Rejected returns the API server's message if it refused the keys of a namespace, or "": Reconciler.Rejected.
	Rejected func(namespace string) string
	// Refused returns the API server's message if it refused required children of a namespace, or "":
	// Reconciler.Refused.
	Refused func(namespace string) string
	// Waiting returns the namespaces that a change may concern because their request has obstacles, or required
	// children are missing: Reconciler.Waiting.
	Waiting func(view.Change) iter.Seq[string]
	// Copies answers what is wrong with copies: copies.Runner; nil where nothing is propagated.
	Copies      Copies
	Concurrency int
	// Pace is the least time between two reports on one namespace. It is also how long something must be wrong with a
	// namespace before the operator creates a HierarchyConfiguration there to report it.
	Pace time.Duration

	again   requeue.Source[reconcile.Request]
	written atomic.Int64 // when a person last wrote a HierarchyConfiguration, in Unix nanoseconds
	last    sync.Map     // name of a namespace → when it was last reported on
	wanting sync.Map     // name of a namespace → since when it has needed a HierarchyConfiguration, or has waited to be placed
}

// SetupWithManager runs the reporter with mgr.
func (r *Reporter) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(troubled{r.Client}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("hierarchy-report").
		For(&v1alpha1.HierarchyConfiguration{}).
		WatchesRawSource(r.View.Source(r.listReported)).
		WatchesRawSource(&r.again).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency, RateLimiter: apianswer.RetryAfterOutage(),
			NewQueue: r.View.Queue(view.InNamespace, nil)}).
		Complete(apianswer.Patiently(r))
}

// Again reports on namespaces again because of their copies, one Pace later, when troubles that pass by themselves are
// likely to be over.
func (r *Reporter) Again(namespaces ...string) {
	for _, name := range namespaces {
		r.again.AddAfter(r.Pace, requestOf(name))
	}
}

func requestOf(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: v1alpha1.HierarchyConfigurationName}}
}

// listReported returns requests for the namespaces in whose status a change may show: those that changed, their
// parents, those in which a SubNamespace has the name of one that changed, and those that wait.
func (r *Reporter) listReported(c view.Change) []reconcile.Request {
	found := map[string]bool{}
	for name := range r.Waiting(c) {
		found[name] = true
	}
	for _, name := range c.Namespaces {
		found[name] = true
		if h := c.New.Hierarchy(name); h != c.Old.Hierarchy(name) && isByPerson(h) {
			r.written.Store(time.Now().UnixNano())
		}
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			if n := s.Namespace(name); n != nil && n.Parent() != "" {
				found[n.Parent()] = true
			}
			for _, sub := range s.SubsNamed(name) {
				found[sub.Parent] = true
			}
		}
	}
	requests := make([]reconcile.Request, 0, len(found))
	for name := range found {
		requests = append(requests, requestOf(name))
	}
	return requests
}

// Reconcile brings the status of one HierarchyConfiguration up to date, or creates the object to report something.
func (r *Reporter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := r.View.Snapshot()
	n := s.Namespace(req.Namespace)
	if req.Name != v1alpha1.HierarchyConfigurationName || n == nil || n.Terminating || s.Protected(n.Name) {
		r.last.Delete(req.Namespace)
		r.wanting.Delete(req.Namespace)
		return ctrl.Result{}, nil
	}
	hc := &v1alpha1.HierarchyConfiguration{}
	err := r.Client.Get(ctx, req.NamespacedName, hc)
	if apierrors.IsNotFound(err) {
		return r.createConfiguration(ctx, s, n.Name)
	}
	if err != nil || !s.Hierarchy(n.Name).Is(forest.HierarchyOf(hc.Namespace, string(hc.UID), hc.Spec)) {
		return ctrl.Result{}, err // the view doesn't hold this version of it yet, and requeues the namespace when it does
	}
	if request := forest.RequestOf(s, n.Name); request.Asked && len(request.Obstacles) == 0 && r.Rejected(n.Name) == "" {
		if left := r.paceLeft(n.Name); left > 0 { // the namespace is about to be placed
			return ctrl.Result{RequeueAfter: left}, nil
		}
	} else {
		r.wanting.Delete(n.Name)
	}
	if wait := r.waitFor(n.Name, hc.Status.ObservedGeneration != hc.Generation); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	now := hc.DeepCopy()
	r.fillStatus(s, now)
	if equality.Semantic.DeepEqual(hc.Status, now.Status) {
		return ctrl.Result{}, nil
	}
	begin := time.Now()
	err = r.Client.Status().Patch(ctx, now, client.MergeFromWithOptions(hc, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(v1alpha1.OperatorName))
	lasted := time.Since(begin)
	defer sleepFor(ctx, r.restAfter(lasted))
	if err != nil && !apierrors.IsConflict(err) && !apianswer.IsGone(err) {
		return ctrl.Result{}, fmt.Errorf("writing the status of HierarchyConfiguration %s: %w", req.NamespacedName, err)
	}
	if err == nil {
		r.announceTransitions(hc, now)
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// restAfter returns how long a worker rests after a write that took the time lasted. Reports can wait: because of the
// rests, the writes of all workers together take less than half of the time of one connection, unless mostRest shortens
// the rests. So the API server is not busy with them when others write.
func (r *Reporter) restAfter(lasted time.Duration) time.Duration {
	return min(time.Duration(2*r.Concurrency)*lasted, mostRest)
}

func sleepFor(ctx context.Context, long time.Duration) {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
}

// waitFor returns how long the next report on a namespace must wait. If it returns 0, it records the present time as
// that of the last report. A report that answers a user's change of the spec (asked) waits a tenth of the pace.
func (r *Reporter) waitFor(namespace string, asked bool) time.Duration {
	pace := r.Pace
	if asked {
		pace /= 10
	}
	if before, ok := r.last.Load(namespace); ok {
		if left := pace - time.Since(before.(time.Time)); left > 0 {
			return left
		}
	}
	r.last.Store(namespace, time.Now())
	return 0
}

// paceLeft returns what is left of the Pace that a namespace must wait before a trouble, or a pending move, is
// reported. The first call starts the time.
func (r *Reporter) paceLeft(name string) (left time.Duration) {
	first, _ := r.wanting.LoadOrStore(name, time.Now())
	return r.Pace - time.Since(first.(time.Time))
}

// isByPerson reports whether a person wrote h: the HierarchyConfigurations that the operator creates have an empty
// spec.
func isByPerson(h *forest.Hierarchy) bool {
	return h != nil && !h.Is(forest.HierarchyOf(h.Namespace, h.UID, v1alpha1.HierarchyConfigurationSpec{}))
}

// createConfiguration creates a HierarchyConfiguration in a namespace that has had something to report for a while. It
// waits while a user writes such objects elsewhere: otherwise a person who applies a directory of them could find the
// name taken.
func (r *Reporter) createConfiguration(ctx context.Context, s *forest.Snapshot, name string) (ctrl.Result, error) {
	if len(s.Children(name)) > 0 { // without children, a check is cheap and needs no pace
		if wait := r.waitFor(name, false); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
	}
	wrong := slices.ContainsFunc(r.listFindings(s, name, nil), finding.ofNamespace) || r.Copies != nil && r.Copies.MayNotObserve(name)
	managed := s.KindOf(s.Namespace(name)) != forest.None // elsewhere the operator may make no object
	if !managed || !wrong && !hasUnboundChild(s, name) {
		r.wanting.Delete(name)
		return ctrl.Result{}, nil
	}
	if left := max(r.paceLeft(name), r.untilQuiet(name, wrong)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	hc := &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{
		Namespace: name, Name: v1alpha1.HierarchyConfigurationName, Labels: managedBy,
	}}
	err := r.Client.Create(ctx, hc, client.FieldOwner(v1alpha1.OperatorName))
	if err != nil && !apierrors.IsAlreadyExists(err) && !apianswer.IsGone(err) {
		return ctrl.Result{}, fmt.Errorf("making a HierarchyConfiguration in namespace %s: %w", name, err)
	}
	r.wanting.Delete(name)
	return ctrl.Result{}, nil
}

// hasUnboundChild reports whether the namespace has a child without a SubNamespace. People who may not list namespaces
// see such a child only in the status of a HierarchyConfiguration.
func hasUnboundChild(s *forest.Snapshot, name string) bool {
	return slices.ContainsFunc(s.Children(name), func(child string) bool { return !s.Namespace(child).Bound() })
}

// untilQuiet returns how long the creation of a HierarchyConfiguration must wait because a person has just written
// others, and may soon write this one, too. Where something is wrong, it waits for one pace without such writes, three
// paces at most. Where the object would merely list children, it waits for five paces without such writes, thirty paces
// at most: a user may be applying a tree from its leaves upwards.
func (r *Reporter) untilQuiet(name string, wrong bool) time.Duration {
	quiet, most := 5*r.Pace, 30*r.Pace
	if wrong {
		quiet, most = r.Pace, 3*r.Pace
	}
	end := time.Unix(0, r.written.Load()).Add(quiet)
	if first, waits := r.wanting.Load(name); waits && end.After(first.(time.Time).Add(most)) {
		end = first.(time.Time).Add(most)
	}
	return time.Until(end)
}

// fillStatus fills in the status as it should be now.
func (r *Reporter) fillStatus(s *forest.Snapshot, hc *v1alpha1.HierarchyConfiguration) {
	name, status := hc.Namespace, &hc.Status
	children, place := s.Children(name), s.Place(name)
	status.ObservedGeneration = hc.Generation
	status.Parent, status.Depth, status.RequestedParentUID = s.Namespace(name).Parent(), nil, forest.FindRequestedParent(s, name)
	status.ChildCount = int32(len(children))
	status.Children = children[:min(len(children), mostChildren)]
	if place.InTree() {
		depth := int32(place.Depth())
		status.Depth = &depth
	}
	all := r.listFindings(s, name, v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionPropagated))
	v1alpha1.KeepConditions(&status.Conditions, v1alpha1.ConditionReady, v1alpha1.ConditionHalted, v1alpha1.ConditionParentApplied,
		v1alpha1.ConditionMetadataSynced, v1alpha1.ConditionChildrenReady, v1alpha1.ConditionPropagated)
	for _, f := range append(all, readyCondition(s, name, all)) {
		v1alpha1.SetCondition(&status.Conditions, hc.Generation, f.kind, f.status, f.reason, f.message)
	}
}

// listFindings returns all conditions of a namespace. Until all its copies have been looked at after a start, condition
// Propagated stays as it was reported before (was, which may be nil).
func (r *Reporter) listFindings(s *forest.Snapshot, name string, was *metav1.Condition) []finding {
	all := listFindings(s, name, r.Rejected(name), r.Refused(name))
	switch {
	case r.Copies == nil:
	case r.Copies.Known(name):
		all = append(all, findPropagated(s, name, r.Copies))
	case was != nil:
		all = append(all, finding{v1alpha1.ConditionPropagated, was.Status, v1alpha1.Reason(was.Reason), was.Message})
	}
	return all
}

// announceTransitions sends Events for conditions Halted and ParentApplied that became bad, and for other conditions
// that became bad for a reason in toldAsIs. It also sends one for a namespace that is no longer halted, and if the API
// server refuses the requested place.
func (r *Reporter) announceTransitions(before, now *v1alpha1.HierarchyConfiguration) {
	for _, c := range now.Status.Conditions {
		kind, reason, bad := v1alpha1.ConditionType(c.Type), v1alpha1.Reason(c.Reason), isWrongStatus(c.Type, c.Status)
		was := v1alpha1.FindCondition(before.Status.Conditions, kind)
		if was != nil && was.Reason == c.Reason && was.Status == c.Status {
			continue
		}
		switch {
		case kind == v1alpha1.ConditionHalted && !bad && was != nil && isWrongStatus(was.Type, was.Status):
			r.Events.Event(now, corev1.EventTypeNormal, string(v1alpha1.ReasonResumed),
				"namespace "+now.Namespace+" is no longer halted")
		case kind == v1alpha1.ConditionHalted && bad:
			r.Events.Event(now, corev1.EventTypeWarning, string(v1alpha1.ReasonHalted), c.Reason+": "+c.Message)
		case kind == v1alpha1.ConditionParentApplied && bad && reason != v1alpha1.ReasonLabelChanged:
			moves.WithLabelValues("hierarchy", "refused").Inc()
			r.Events.Event(now, corev1.EventTypeWarning, string(v1alpha1.ReasonParentRefused), c.Message)
		case kind == v1alpha1.ConditionParentApplied && c.Status == metav1.ConditionUnknown && r.Rejected(now.Namespace) != "":
			r.Events.Event(now, corev1.EventTypeWarning, string(v1alpha1.ReasonParentRefused), c.Message)
		case slices.Contains(toldAsIs, reason) && bad && kind != v1alpha1.ConditionReady:
			r.Events.Event(now, corev1.EventTypeWarning, c.Reason, c.Message)
		}
	}
}

// toldAsIs are the reasons of bad conditions that are sent as the reasons of Events, too.
var toldAsIs = []v1alpha1.Reason{v1alpha1.ReasonLabelChanged, v1alpha1.ReasonTemplateMissing, v1alpha1.ReasonChildConflict,
	v1alpha1.ReasonNotObserved}
