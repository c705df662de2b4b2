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

// dateBilling returns who pays for the tenant, and since when; nil where nothing is billed. settled reports that the
// root namespace is ready: before that, the status stays as it was. Each change of the payer is dated once, by the API
// server's clock, so that the ledger gets the same instant after any restart.
func (r *Reconciler) dateBilling(ctx context.Context, lns *v1alpha1.LNamespace, settled bool) (*v1alpha1.BillingStatus, error) {
	if !r.Bills {
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
		return was, nil // the LNamespace is being changed, and the event of the change requeues it
	}
	if known := live.Status.Billing; known != nil && known.CostCenter == is.CostCenter && known.Owner == is.Owner {
		return known, nil // an earlier pass wrote it, and the cache doesn't hold that yet
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

// dateOfChange returns when the present payer began to pay for the LNamespace, by the API server's clock. If the status
// records no payer and the LNamespace is not ready, it returns the creation of the LNamespace. Otherwise it returns the
// moment at which the operator sees the change, but no earlier than the recorded date. managedFields are no source,
// because whoever may update the LNamespace may write any time there.
func (r *Reconciler) dateOfChange(ctx context.Context, lns *v1alpha1.LNamespace) (metav1.Time, error) {
	was := lns.Status.Billing
	if was == nil && !meta.IsStatusConditionTrue(lns.Status.Conditions, string(v1alpha1.ConditionReady)) {
		return lns.CreationTimestamp, nil
	}
	// The answer to a SelfSubjectReview is the cheapest one that holds the API server's time.
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
