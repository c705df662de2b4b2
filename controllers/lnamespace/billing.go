package lnamespace

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// dateBilling returns who pays for the tenant, and since when: nil where nothing is billed. It is stamped once for each change, by the
// API server's clock, so that the ledger gets the same instant after any restart.
func (r *Reconciler) dateBilling(ctx context.Context, lns *v1alpha1.LNamespace, settled bool) (*v1alpha1.BillingStatus, error) {
	if !r.Bills() {
		return nil, nil
	}
	was, is := lns.Status.Billing, payerOf(lns)
	if !settled || was != nil && was.CostCenter == is.CostCenter && was.Owner == is.Owner {
		return was, nil
	}
	live := &v1alpha1.LNamespace{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(lns), live); err != nil {
		return was, fmt.Errorf("reading LNamespace %s to date its billing: %w", lns.Name, err)
	}
	if live.UID != lns.UID || payerOf(live) != is {
		return was, nil // it is being changed; the event of that comes
	}
	if known := live.Status.Billing; known != nil && known.CostCenter == is.CostCenter && known.Owner == is.Owner {
		return known, nil // written already, by a pass that this one's cache doesn't know of
	}
	since, err := r.dateOfChange(ctx, live)
	if err != nil {
		return was, err
	}
	is.Since = since
	return &is, nil
}

func payerOf(lns *v1alpha1.LNamespace) v1alpha1.BillingStatus {
	if lns.Spec.Billing == nil {
		return v1alpha1.BillingStatus{}
	}
	return v1alpha1.BillingStatus{CostCenter: lns.Spec.Billing.CostCenter, Owner: lns.Spec.Billing.Owner}
}

// dateOfChange is when the LNamespace came to be billed as it is now, by the API server's clock: its creation where it never
// was billed and never was ready, else the moment at which the operator saw the change, and never before the date that it
// replaces. managedFields don't tell: whoever may update the LNamespace may write any time there.
func (r *Reconciler) dateOfChange(ctx context.Context, lns *v1alpha1.LNamespace) (metav1.Time, error) {
	was := lns.Status.Billing
	if was == nil && !meta.IsStatusConditionTrue(lns.Status.Conditions, string(v1alpha1.ConditionReady)) {
		return lns.CreationTimestamp, nil
	}
	// The answer to a SelfSubjectReview is the cheapest that holds a time of the API server.
	review := &authenticationv1.SelfSubjectReview{}
	if err := r.Client.Create(ctx, review); err != nil {
		return metav1.Time{}, fmt.Errorf("asking the API server for its time to date the billing of LNamespace %s: %w", lns.Name, err)
	}
	seen := review.CreationTimestamp
	if seen.IsZero() {
		return metav1.Time{}, fmt.Errorf("dating the billing of LNamespace %s: the answer of the API server holds no time", lns.Name)
	}
	if was != nil && seen.Before(&was.Since) {
		seen = was.Since
	}
	return seen, nil
}
