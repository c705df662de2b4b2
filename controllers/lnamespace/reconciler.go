// Package lnamespace creates, adopts and deletes the root namespaces of LNamespaces, and writes the status of
// LNamespaces for the other controllers. What the people of a tenant may do there is the subject of package access.
package lnamespace

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/finalizers"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/namespaces"
	"github.com/warren-tenancy/warren/internal/newest"
	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/view"
)

// Withdrawer revokes everything that a tenant was granted. remaining names the objects that still exist.
// access.Reconciler implements it.
type Withdrawer interface {
	Withdraw(ctx context.Context, lns *v1alpha1.LNamespace) (remaining []string, err error)
}

// Reconciler brings the root namespace of one LNamespace to what it should be.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live       client.Reader
	Namespaces *namespaces.Writer
	View       *view.View
	Events     record.EventRecorder
	// Reserved reports whether the configuration forbids a new LNamespace to have the name.
	Reserved func(name string) bool
	// MaxPerCreator is how many LNamespaces may count for one maker (see forest.CountsFor); 0 means that there is no
	// limit.
	MaxPerCreator int
	// WebhookConfiguration is the name of the configuration by which the API server asks the operator about
	// LNamespaces; "" where it serves no webhooks.
	WebhookConfiguration string
	// Bills reports whether tenants are billed.
	Bills bool
	// Access withdraws what a tenant was granted before its root is deleted: access.Reconciler; nil if controller
	// access is switched off. What was granted before then stays until the garbage collector deletes it with its owner,
	// the LNamespace.
	Access Withdrawer
	// Copies answers which copies of a template's objects a root lacks; nil where nothing is propagated.
	Copies Copies
	// Uncopied finds guardrails of templates that are not copied; nil where nothing is propagated.
	Uncopied    *UncopiedGuardrails
	Report      *Reporter
	Concurrency int
	// RetryMax caps the back-off after the API server refused to create a namespace.
	RetryMax time.Duration

	// refusals holds, by UID of the LNamespace, the API server's message when it refused to create the root.
	refusals apianswer.Refusals
	// making is held from the check of MaxPerCreator until the view knows the new namespace: two LNamespaces that are
	// reconciled at the same time would otherwise both find the last place free.
	making sync.Mutex
	known  newest.Known
	// again requeues LNamespaces whose copies have something new to report.
	again requeue.Source[reconcile.Request]
}

// SetupWithManager runs the reconciler with mgr.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := metrics.Registry.Register(population{r.Client}); err != nil {
		return err
	}
	patient := apianswer.Patiently(r)
	return ctrl.NewControllerManagedBy(mgr).
		Named("lnamespace").
		For(&v1alpha1.LNamespace{}, builder.WithPredicates(apianswer.Hastening(patient))).
		WatchesRawSource(r.View.Source(Concerned)).
		WatchesRawSource(&r.again).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.Concurrency,
			// Refusals are reported and not returned, so an error that is returned means an outage.
			RateLimiter: apianswer.RetryAfterOutage(),
		}).
		Complete(patient)
}

// Concerned returns requests for the LNamespaces whose root or tree changed. If an LNamespace was deleted, it adds
// those whose root waits for a place within the limit of their maker.
func Concerned(c view.Change) []reconcile.Request {
	found := map[string]bool{}
	for _, name := range c.Namespaces {
		found[name] = true
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			found[s.RootOf(name)] = true // also of a halted namespace, which counts as one of the tree
		}
	}
	for name := range maps.Clone(found) {
		if gone := c.Old.Tenant(name); gone != nil && gone.Creator != "" && c.New.Tenant(name) == nil {
			for t := range c.New.Tenants() { // one of them may be within the limit of its maker now
				found[t.Name] = found[t.Name] || t.Creator != "" && !c.New.Owns(t.Name, t.UID)
			}
		}
	}
	var requests []reconcile.Request
	for name, concerned := range found {
		if concerned && c.New.Tenant(name) != nil { // there is none called "", the root of a namespace in no tree
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return requests
}

// Reconcile brings one LNamespace and its root namespace to what they should be, and reports.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	lns := &v1alpha1.LNamespace{}
	if err := r.Client.Get(ctx, req.NamespacedName, lns); err != nil {
		if apierrors.IsNotFound(err) {
			r.known.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.known.IsOutdated(lns) {
		return ctrl.Result{}, nil // the cache will bring what is newer, or its deletion
	}
	if !lns.DeletionTimestamp.IsZero() {
		return r.finalizeTenant(ctx, lns)
	}
	if err := finalizers.Add(ctx, r.Client, lns, v1alpha1.FinalizerLNamespace, &r.known); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	v, err := r.ensureRoot(ctx, lns)
	if err != nil {
		return ctrl.Result{}, err
	}
	billing, err := r.dateBilling(ctx, lns, v.ready)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := r.View.Snapshot()
	report, labels := v.writeTo(lns, s), decideBillingLabels(s, lns)
	r.announceBillingLabels(lns, labels)
	err = r.Report.Report(ctx, lns, func(status *v1alpha1.LNamespaceStatus) {
		report(status)
		if r.Access == nil {
			reportNoAccess(status, lns.Generation)
		}
		labels.writeTo(status, lns.Generation)
		status.Billing = billing
	})
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: v.again}, nil
}

// verdict is condition NamespaceReady of an LNamespace before it is written.
type verdict struct {
	reason  v1alpha1.Reason
	message string
	ready   bool
	// template is what the root lacks of its template.
	template templateTrouble
	again    time.Duration // how long to wait before the next pass, where no event will cause one; 0: not at all
}

// ensureRoot creates or adopts the root namespace, or explains why the LNamespace can't have it now.
func (r *Reconciler) ensureRoot(ctx context.Context, lns *v1alpha1.LNamespace) (verdict, error) {
	tenant := forest.TenantOf(lns)
	if most := r.MaxPerCreator; most > 0 && tenant.Creator != "" && !r.View.Snapshot().Owns(lns.Name, tenant.UID) {
		r.making.Lock()
		defer r.making.Unlock()
		// Only under the lock does the view have the roots that other workers have just made.
		s := r.View.Snapshot()
		if before := forest.CountMadeBefore(s, tenant); before >= most {
			return r.warnOnce(lns, v1alpha1.ReasonLimitExceeded, fmt.Sprintf("%s has %d of %d LNamespaces, all made before this one: "+
				"this one gets its namespace when there is room; ask a cluster admin to delete %s of the earlier ones, or to raise "+
				"tenants.maxPerCreator",
				forest.CountsFor(s, tenant.Creator), before, most, forest.OneOr(before-most+1))), nil
		}
	}
	s := r.View.Snapshot()
	n := s.Namespace(lns.Name)
	switch {
	// A name that is reserved later takes no root from a tenant that has one.
	case n == nil && r.Reserved(lns.Name):
		return r.warnOnce(lns, v1alpha1.ReasonReservedName, "the configuration reserves the name "+lns.Name+": choose another"), nil
	case n == nil:
		why, err := r.nameWithheld(ctx, s, lns)
		if err != nil {
			return verdict{}, err
		}
		if why != "" {
			return r.warnOnce(lns, v1alpha1.ReasonNamespaceConflict, why), nil
		}
		return r.createRoot(ctx, lns, forest.NewRoot(s, tenant))
	case s.Owns(lns.Name, tenant.UID) && n.Terminating:
		return r.describeTermination(ctx, lns.Name), nil
	case s.Owns(lns.Name, tenant.UID):
		return r.reportOwned(ctx, lns, s), nil
	case n.Terminating && lns.NameLost():
		return r.warnOnce(lns, v1alpha1.ReasonNamespaceConflict, nameLost(lns.Name)), nil
	case n.Terminating:
		return r.describeTermination(ctx, lns.Name), nil
	}
	if why := forest.NotAdoptable(s, n, tenant); why != "" {
		return r.warnOnce(lns, v1alpha1.ReasonNamespaceConflict, why), nil
	}
	return r.adoptRoot(ctx, lns, n, forest.Adoption(s, tenant))
}

// nameWithheld explains why an LNamespace doesn't get a name that is free now, or returns "".
func (r *Reconciler) nameWithheld(ctx context.Context, s *forest.Snapshot, lns *v1alpha1.LNamespace) (string, error) {
	if lns.Status.Namespace == lns.Name {
		return "", nil // the LNamespace owned a namespace of this name before
	}
	// These namespaces would join the LNamespace's tree, although no webhook has checked its maker's rights.
	if len(forest.WaitingFor(s, lns.Name)) > 0 {
		asked, err := r.wasAsked(ctx, lns)
		if err != nil {
			return "", err
		}
		if !asked {
			return authority.Awaited("other namespaces wait", lns.Name) + ": to give this LNamespace the name, a cluster admin creates the " +
				"Namespace with annotation " +
				v1alpha1.AnnotationAdopt + "=" + string(lns.UID), nil
		}
	}
	// Another namespace had the name when the LNamespace asked for it.
	if lns.NameLost() {
		return nameLost(lns.Name), nil
	}
	return "", nil
}

func nameLost(name string) string {
	return "the name " + name + " was not free when this LNamespace asked for it: the operator tries again only when this " +
		"LNamespace is created again or its spec changes, while the name is free"
}

// reportOwned returns the verdict on a root that this LNamespace owns. writeTo keeps reason Adopted where it was
// reported. The root is ready even if it lacks something of its template, because what came from the template before
// stays; the LNamespace is not.
func (r *Reconciler) reportOwned(ctx context.Context, lns *v1alpha1.LNamespace, s *forest.Snapshot) verdict {
	v := verdict{reason: v1alpha1.ReasonCreated, message: "namespace " + lns.Name + " belongs to this LNamespace", ready: true}
	was := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionTemplateReady)
	if v.template = findTemplateTrouble(s, lns.Name, r.Copies, was); v.template.message == "" {
		v.template, v.again = r.findUncopied(ctx, s, lns.Name, was)
	}
	if v.template.message != "" && (was == nil || was.Message != v.template.message) {
		r.Events.Event(lns, corev1.EventTypeWarning, string(v.template.reason), v.template.message)
	}
	return v
}

// createRoot creates the root namespace. A request that the API server refused is sent again only after its back-off,
// whatever event requeues the LNamespace sooner: the report of the refusal causes such an event itself.
func (r *Reconciler) createRoot(ctx context.Context, lns *v1alpha1.LNamespace, root *forest.Namespace) (verdict, error) {
	again, err := r.refusals.Try(apianswer.Attempt{
		Key: string(lns.UID), Request: apianswer.RequestOf(lns.Generation, root.Labels, root.Annotations), RetryMax: r.RetryMax,
		Send: func() error { return r.Namespaces.Create(ctx, root) },
	})
	switch {
	case again > 0:
		return r.reportRefusal(lns, again), nil
	case apierrors.IsAlreadyExists(err):
		return r.lookAgain(ctx, lns)
	case err != nil:
		return verdict{}, fmt.Errorf("making Namespace %s: %w", root.Name, err)
	}
	r.Events.Event(lns, corev1.EventTypeNormal, string(v1alpha1.ReasonNamespaceCreated), "namespace "+root.Name+" was created")
	return r.reportOwned(ctx, lns, r.View.Snapshot()), nil
}

// reportRefusal returns the verdict that the API server refuses to create the root. again is the time until the next
// try: it grows with each refusal, up to RetryMax.
func (r *Reconciler) reportRefusal(lns *v1alpha1.LNamespace, again time.Duration) verdict {
	v := r.warnOnce(lns, v1alpha1.ReasonCreateFailed, "the API server refuses to make namespace "+lns.Name+": "+
		r.refusals.Explain(string(lns.UID), r.RetryMax, "LNamespace"))
	v.again = again
	return v
}

// lookAgain reads the namespace that took the name since the snapshot: the operator may have created it itself, before
// a restart.
func (r *Reconciler) lookAgain(ctx context.Context, lns *v1alpha1.LNamespace) (verdict, error) {
	v := verdict{reason: v1alpha1.ReasonPending, message: "namespace " + lns.Name + " was just created or deleted: the operator reads it " +
		"before it decides", again: 200 * time.Millisecond}
	if err := r.Namespaces.Reread(ctx, lns.Name); err != nil {
		v.again = time.Second
		return v, client.IgnoreNotFound(err)
	}
	return v, nil
}

func (r *Reconciler) readLive(ctx context.Context, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	return namespace, err
}

func (r *Reconciler) adoptRoot(ctx context.Context, lns *v1alpha1.LNamespace, n *forest.Namespace, change forest.Change) (verdict, error) {
	_, err := r.Namespaces.Patch(ctx, n, change)
	if apierrors.IsConflict(err) {
		return verdict{reason: v1alpha1.ReasonPending, message: "namespace " + n.Name + " has just been changed by another client: the " +
			"operator adopts it in a moment", again: time.Second}, nil
	}
	if err != nil {
		return verdict{}, fmt.Errorf("adopting Namespace %s: %w", n.Name, err)
	}
	r.Events.Event(lns, corev1.EventTypeNormal, string(v1alpha1.ReasonNamespaceAdopted), "namespace "+n.Name+" was adopted")
	return verdict{reason: v1alpha1.ReasonAdopted, message: adoptedMessage(n.Name), ready: true}, nil
}

func adoptedMessage(name string) string {
	return "namespace " + name + " was adopted by this LNamespace"
}

// warnOnce returns the verdict with that reason and message, and sends an Event when the reason is new.
func (r *Reconciler) warnOnce(lns *v1alpha1.LNamespace, reason v1alpha1.Reason, message string) verdict {
	was := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady)
	if was == nil || was.Reason != string(reason) {
		r.Events.Event(lns, corev1.EventTypeWarning, string(reason), message)
	}
	v := verdict{reason: reason, message: message}
	if reason == v1alpha1.ReasonLimitExceeded {
		v.again = 30 * time.Second // no event shows that the configuration allows more
	}
	return v
}

// describeTermination returns the verdict on a namespace that is being deleted, with what the namespace's conditions
// report about its remaining contents.
func (r *Reconciler) describeTermination(ctx context.Context, name string) verdict {
	v := verdict{reason: v1alpha1.ReasonTerminating, message: "namespace " + name + " is being terminated", again: 15 * time.Second}
	namespace, err := r.readLive(ctx, name)
	if err != nil {
		return v
	}
	if remaining := forest.DescribeRemaining(namespace.Status.Conditions); remaining != "" {
		v.message += ": " + remaining
	}
	return v
}
