package lnamespace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// billed is who pays for the tenant, and since when: nil where nothing is billed. It is stamped once for each change, by the
// API server's clock, so that the ledger gets the same instant after any restart.
func (r *Reconciler) billed(ctx context.Context, lns *v1alpha1.LNamespace, settled bool) (*v1alpha1.BillingStatus, error) {
	if !r.Bills() {
		return nil, nil
	}
	was, is := lns.Status.Billing, payer(lns)
	if !settled || was != nil && was.CostCenter == is.CostCenter && was.Owner == is.Owner {
		return was, nil
	}
	live := &v1alpha1.LNamespace{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(lns), live); err != nil {
		return was, fmt.Errorf("reading LNamespace %s to date its billing: %w", lns.Name, err)
	}
	if live.UID != lns.UID || payer(live) != is {
		return was, nil // it is being changed; the event of that comes
	}
	is.Since = lastBilled(live)
	return &is, nil
}

func payer(lns *v1alpha1.LNamespace) v1alpha1.BillingStatus {
	if lns.Spec.Billing == nil {
		return v1alpha1.BillingStatus{}
	}
	return v1alpha1.BillingStatus{CostCenter: lns.Spec.Billing.CostCenter, Owner: lns.Spec.Billing.Owner}
}

// lastBilled is when spec.billing was last written, as far as the managers of its fields tell. Where nobody manages any, it
// was taken away, by the last who wrote to spec; or it never was there.
func lastBilled(lns *v1alpha1.LNamespace) metav1.Time {
	for _, path := range [][]string{{"f:spec", "f:billing"}, {"f:spec"}} {
		var newest metav1.Time
		for _, entry := range lns.ManagedFields {
			if entry.Time != nil && newest.Before(entry.Time) && entry.Subresource == "" && manages(entry.FieldsV1, path) {
				newest = *entry.Time
			}
		}
		if !newest.IsZero() && (len(path) > 1 || lns.Status.Billing != nil) {
			return newest
		}
	}
	return lns.CreationTimestamp
}

func manages(fields *metav1.FieldsV1, path []string) bool {
	if fields == nil {
		return false
	}
	text := fields.GetRawBytes()
	for step := range slices.Values(path) {
		var below map[string]json.RawMessage
		if err := json.Unmarshal(text, &below); err != nil || below[step] == nil {
			return false
		}
		text = below[step]
	}
	return true
}
