// Package hierarchy places namespaces where their HierarchyConfigurations ask for, and makes the children that these
// require. It keeps the labels and annotations of managed namespaces (tree labels, ancestry, inherited keys), and
// reports what is wrong with a namespace.
//
// The way of one move: package view takes in the changed HierarchyConfiguration (internal/view) and calls
// listConcerned, which queues the namespace. writeNamespace asks the forest whether the namespace may be placed as
// requested (forest.RequestOf) and which keys it should carry then (forest.DesiredChange). Package namespaces sends one
// PATCH. The API server's answer goes straight into the view, whose next change names the namespaces below. Each of
// these namespaces is then queued and patched, because its tree labels have changed. The Reporter (report.go) moves
// nothing: it writes the statuses, and creates a HierarchyConfiguration where it has something to report and none
// exists.
package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/namespaces"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
)

// Reconciler brings one namespace to what the forest derives for it: its place and all its keys in one write, and no
// write where nothing differs. After that it creates the required children.
type Reconciler struct {
	Client      client.Client
	Namespaces  *namespaces.Writer
	View        *view.View
	Events      record.EventRecorder
	Concurrency int
	// RetryMax caps the back-off after refusals of the API server.
	RetryMax time.Duration
	// After is closed when the reconciler may begin; nil if it always may. The operator sets it to
	// access.Reconciler.Revoked.
	After <-chan struct{}

	placing  placing
	rejected apianswer.Refusals // refusals to write the keys of namespaces
	refused  apianswer.Refusals // refusals to create the required children of namespaces
	waiting  waiting
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.rejected.Changed, r.refused.Changed = r.announceRefusal, r.announceRefusal
	return ctrl.NewControllerManagedBy(mgr).
		Named("hierarchy").
		WatchesRawSource(r.View.Source(r.listConcerned)).
		WatchesRawSource(&r.placing.again).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency, RateLimiter: apianswer.RetryAfterOutage(),
			NewQueue: r.View.Queue(view.Named, r.placing.hasTurn)}).
		Complete(apianswer.Patiently(requeue.After(r.After, r)))
}

// listConcerned returns requests for the namespaces that changed, for those whose required children may have changed,
// and for those that wait (see waiting).
func (r *Reconciler) listConcerned(c view.Change) []reconcile.Request {
	countMoves(c)
	var requests []reconcile.Request
	ask := func(name string) {
		requests = append(requests, requestNamed(name))
	}
	for _, name := range c.Namespaces {
		ask(name)
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			for _, sub := range s.SubsNamed(name) {
				if c.New.Hierarchy(sub.Parent) != nil {
					ask(sub.Parent)
				}
			}
		}
	}
	for name := range r.Waiting(c) {
		ask(name)
	}
	return requests
}

func requestNamed(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
}

// Waiting returns the namespaces whose request is refused, or whose required children are missing, if a change may make
// a difference to them.
func (r *Reconciler) Waiting(c view.Change) iter.Seq[string] { return r.waiting.concernedBy(c) }

// Rejected returns the API server's message if it refused the keys of a namespace, or "".
func (r *Reconciler) Rejected(namespace string) string { return r.rejected.Of(namespace) }

// Refused returns the API server's message if it refused required children of a namespace, or "".
func (r *Reconciler) Refused(namespace string) string { return r.refused.Of(namespace) }

// Reconcile brings one namespace to what it should be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	again, err := r.writeNamespace(ctx, req.Name)
	if err == nil && again == 0 {
		again, err = r.requireChildren(ctx, req.Name)
	}
	switch {
	case errors.Is(err, errMoveWaits):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil // the event of the other write usually requeues it sooner
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// announceRefusal logs a refusal of the API server. It causes an update of the statuses of the namespace's SubNamespace
// and HierarchyConfiguration, also when the refusal is over (text is "").
func (r *Reconciler) announceRefusal(namespace, text string) {
	if text != "" {
		ctrl.Log.WithName("hierarchy").
			Info("the API server refuses a write; the write is tried again with growing delays, and at once when the namespace or "+
				"the content of the write changes", "namespace", namespace, "refusal", text)
	}
	r.View.Touch(namespace)
}

// writeNamespace writes those labels and annotations of the namespace called name that differ from what they should be.
// If a HierarchyConfiguration asks for another place, writeNamespace returns errMoveWaits while another namespace is
// being moved, and otherwise lets none move meanwhile (see placing). It then judges the request by a snapshot with the
// operator's last writes, so that requests never form a cycle. It returns how long to wait before it repeats what the
// API server refused, or 0.
func (r *Reconciler) writeNamespace(ctx context.Context, name string) (again time.Duration, err error) {
	if r.View.Snapshot().Hierarchy(name) != nil {
		r.waiting.add(name) // before the snapshot is taken: a change after it must requeue the namespace
	}
	s := r.View.Snapshot()
	request := forest.RequestOf(s, name)
	if request.Asked && len(request.Obstacles) == 0 {
		if !r.beginMove(s, name, request.Parent) {
			return 0, errMoveWaits // meanwhile this worker reconciles other namespaces
		}
		defer r.placing.endMove()
		// Only now does the snapshot have all earlier moves, so the request is judged once more.
		s = r.View.Snapshot()
		request = forest.RequestOf(s, name)
	} else {
		r.placing.passTurn(name)
	}
	if len(request.Obstacles) > 0 || len(forest.UnmetChildren(s, name)) > 0 {
		r.waiting.add(name)
	} else {
		r.waiting.remove(name)
	}
	n, change := s.Namespace(name), forest.DesiredChange(s, name)
	if change.Empty() {
		r.rejected.Clear(name)
		return 0, nil
	}
	asked := apianswer.RequestOf(n.ResourceVersion, change.Labels, change.Annotations)
	tenant, released := forest.ToRelease(s, name)
	// Before the place is written: from then on, the tenant's people can bind themselves in the namespace.
	if request.Asked && len(request.Obstacles) == 0 && !released {
		if err := r.recordHolders(ctx, s, n, request.Parent, &change); err != nil {
			return 0, err
		}
	}
	again, err = r.rejected.Try(apianswer.Attempt{Key: name, Request: asked, RetryMax: r.RetryMax, Send: func() error {
		_, err := r.Namespaces.Patch(ctx, n, change)
		return err
	}})
	switch {
	case err != nil:
		return 0, fmt.Errorf("writing the labels and annotations of Namespace %s: %w", name, err)
	case again > 0:
		return again, nil
	}
	if released {
		r.announceReleased(s, n, tenant)
		return 0, nil
	}
	r.announceChange(s, n, change)
	return 0, nil
}

// beginMove reports whether the namespace called name may be placed elsewhere now. If not, it is judged again when its
// turn comes, and not at every change until then. Without this rule, each of a hundred namespaces that asked at once
// was judged forty times.
func (r *Reconciler) beginMove(s *forest.Snapshot, name, parent string) bool {
	if r.placing.beginMove(s, name, parent) {
		return true
	}
	r.waiting.remove(name)
	return false
}

// announceReleased sends Events that the namespace n was released from the tree: one on the LNamespace, and one on n's
// HierarchyConfiguration, or on n if it has none.
func (r *Reconciler) announceReleased(s *forest.Snapshot, n *forest.Namespace, tenant *forest.Tenant) {
	message := fmt.Sprintf("namespace %s has left the tree of tenant %s: the tenant's lists no longer name any subject that administered it "+
		"when it was placed (%s). "+
		"The operator removes what came from the tenant. Everything else stays", n.Name, tenant.Name, forest.Few(n.HeldBy()))
	to := []runtime.Object{lnamespaceReference(tenant)}
	if h := s.Hierarchy(n.Name); h != nil {
		to = append(to, referenceOf(h))
	} else {
		to = append(to, &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: n.Name, Namespace: n.Name, UID: types.UID(n.UID)})
	}
	for _, object := range to {
		r.Events.Event(object, corev1.EventTypeWarning, string(v1alpha1.ReasonNamespaceReleased), message)
	}
}

// announceChange sends the Event that the operator repaired the label type of a tenant's root, or that a namespace was
// placed as its HierarchyConfiguration asked.
func (r *Reconciler) announceChange(s *forest.Snapshot, n *forest.Namespace, change forest.Change) {
	_, shape := change.Labels[v1alpha1.LabelType]
	_, moved := change.Annotations[v1alpha1.AnnotationAppliedParent]
	request := forest.RequestOf(s, n.Name)
	switch tenant := s.Tenant(n.Name); {
	case moved && request.Asked && n.Parent() != request.Parent:
		r.Events.Event(referenceOf(s.Hierarchy(n.Name)), corev1.EventTypeNormal, string(v1alpha1.ReasonParentChanged),
			"namespace "+n.Name+" was moved from "+placeName(n.Parent())+" to "+placeName(request.Parent))
	case shape && !moved && tenant != nil:
		r.Events.Event(lnamespaceReference(tenant), corev1.EventTypeNormal, string(v1alpha1.ReasonDriftRepaired),
			"label "+v1alpha1.LabelType+" of namespace "+n.Name+" was put back: the namespace is the root of this tenant")
	}
}

// lnamespaceReference returns the LNamespace of tenant as far as Events need it.
func lnamespaceReference(tenant *forest.Tenant) *v1alpha1.LNamespace {
	return &v1alpha1.LNamespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LNamespace"},
		ObjectMeta: metav1.ObjectMeta{Name: tenant.Name, UID: types.UID(tenant.UID)},
	}
}

// placeName returns the words for a parent in a sentence.
func placeName(parent string) string {
	if parent == "" {
		return "no parent"
	}
	return fmt.Sprintf("%q", parent)
}

// referenceOf returns the HierarchyConfiguration of h as far as Events need it.
func referenceOf(h *forest.Hierarchy) *v1alpha1.HierarchyConfiguration {
	return &v1alpha1.HierarchyConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "HierarchyConfiguration"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Namespace, Name: v1alpha1.HierarchyConfigurationName, UID: types.UID(h.UID),
		},
	}
}
