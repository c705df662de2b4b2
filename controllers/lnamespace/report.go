package lnamespace

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/newest"
)

// Reporter writes the status of LNamespaces, for all controllers that report in it.
type Reporter struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live client.Reader

	known newest.Known
}

// Report applies change to the status, derives condition Ready, and writes the status if anything differs. Several
// reconcilers share one status: the second one reads what the first wrote, even if the cache doesn't hold that yet.
func (r *Reporter) Report(ctx context.Context, lns *v1alpha1.LNamespace, change func(*v1alpha1.LNamespaceStatus)) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		seen, err := r.Newest(ctx, lns)
		if err != nil || seen == nil {
			return err
		}
		now := seen.DeepCopy()
		change(&now.Status)
		summariseConditions(&now.Status, lns.Generation)
		if equality.Semantic.DeepEqual(seen.Status, now.Status) {
			return nil
		}
		err = r.Client.Status().Patch(ctx, now, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}),
			client.FieldOwner(v1alpha1.OperatorName))
		switch {
		case err == nil:
			r.known.Record(now)
		case apierrors.IsConflict(err):
			r.known.RecordChanged(lns) // another client has written it since, so the next try reads from the API server
		}
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of LNamespace %s: %w", lns.Name, err)
	}
	return nil
}

// Newest returns the newest version of an LNamespace that is known: lns itself, or what the API server has where the cache that lns is of
// is behind a write of this process. It returns nil if there is none any more. Whoever decides by a status that no write is needed asks it
// first.
func (r *Reporter) Newest(ctx context.Context, lns *v1alpha1.LNamespace) (*v1alpha1.LNamespace, error) {
	if !r.known.IsOutdated(lns) {
		return lns, nil
	}
	seen := &v1alpha1.LNamespace{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(lns), seen); err != nil || seen.UID != lns.UID {
		return nil, client.IgnoreNotFound(err)
	}
	r.known.Record(seen)
	return seen, nil
}

// dropTenant drops what is remembered of a deleted LNamespace.
func (r *Reporter) dropTenant(tenant string) { r.known.Forget(client.ObjectKey{Name: tenant}) }

// reportNoAccess sets condition AccessReady where controller access, which writes it otherwise, is switched off.
func reportNoAccess(status *v1alpha1.LNamespaceStatus, generation int64) {
	v1alpha1.SetCondition(&status.Conditions, generation, v1alpha1.ConditionAccessReady, metav1.ConditionUnknown, v1alpha1.ReasonDisabled,
		"rights of this tenant are neither granted nor revoked, because key controllers of the operator's configuration switches access off")
}

// summariseConditions derives condition Ready from BudgetEnforced, TemplateReady, AccessReady and NamespaceReady; of
// those that are not True, the last one decides. An exceeded budget is like a full one, and does not count. AccessReady
// doesn't count while controller access is switched off, and TemplateReady exists only while it is False. The
// observedGeneration of Ready is the lowest of generation and those of AccessReady and NamespaceReady, where they exist.
func summariseConditions(status *v1alpha1.LNamespaceStatus, generation int64) {
	v1alpha1.KeepConditions(&status.Conditions, v1alpha1.ConditionReady, v1alpha1.ConditionNamespaceReady, v1alpha1.ConditionAccessReady,
		v1alpha1.ConditionTemplateReady, v1alpha1.ConditionBudgetEnforced, v1alpha1.ConditionBillingExported,
		v1alpha1.ConditionBillingLabelled)
	ready, reason, message := metav1.ConditionTrue, v1alpha1.ReasonReady, "the tenant is ready"
	for _, t := range []v1alpha1.ConditionType{v1alpha1.ConditionBudgetEnforced, v1alpha1.ConditionTemplateReady} {
		c := v1alpha1.FindCondition(status.Conditions, t)
		if c != nil && c.Status != metav1.ConditionTrue && c.Reason != string(v1alpha1.ReasonExceeded) {
			ready, reason, message = c.Status, v1alpha1.Reason(c.Reason), c.Message
		}
	}
	for _, t := range []v1alpha1.ConditionType{v1alpha1.ConditionAccessReady, v1alpha1.ConditionNamespaceReady} {
		c := v1alpha1.FindCondition(status.Conditions, t)
		switch {
		case c == nil:
			ready, reason, message = metav1.ConditionFalse, v1alpha1.ReasonPending,
				"the operator has not reported condition "+string(t)+" yet"
			continue
		case c.Status != metav1.ConditionTrue && c.Reason != string(v1alpha1.ReasonDisabled):
			ready, reason, message = metav1.ConditionFalse, v1alpha1.Reason(c.Reason), c.Message
		}
		generation = min(generation, c.ObservedGeneration)
	}
	status.ObservedGeneration = generation
	v1alpha1.SetCondition(&status.Conditions, generation, v1alpha1.ConditionReady, ready, reason, message)
}

// writeTo returns the change of the status that reports v. s reports whether the LNamespace owns its root.
func (v verdict) writeTo(lns *v1alpha1.LNamespace, s *forest.Snapshot) func(*v1alpha1.LNamespaceStatus) {
	return func(status *v1alpha1.LNamespaceStatus) {
		status.Namespace, status.SubNamespaces = "", 0
		if s.Owns(lns.Name, string(lns.UID)) {
			count, _ := s.Descendants(lns.Name)
			status.Namespace, status.SubNamespaces = lns.Name, int32(count)
		}
		ready := metav1.ConditionFalse
		if v.ready {
			ready = metav1.ConditionTrue
		}
		reason, message := v.reason, v.message
		// The status that is written may know of an adoption that the cache doesn't hold yet.
		if was := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionNamespaceReady); v.ready && was != nil &&
			was.Reason == string(v1alpha1.ReasonAdopted) {
			reason, message = v1alpha1.ReasonAdopted, adoptedMessage(lns.Name)
		}
		v1alpha1.SetCondition(&status.Conditions, lns.Generation, v1alpha1.ConditionNamespaceReady, ready, reason, message)
		if v.template.message == "" {
			meta.RemoveStatusCondition(&status.Conditions, string(v1alpha1.ConditionTemplateReady))
			return
		}
		v1alpha1.SetCondition(&status.Conditions, lns.Generation, v1alpha1.ConditionTemplateReady, metav1.ConditionFalse,
			v.template.reason, v.template.message)
	}
}
