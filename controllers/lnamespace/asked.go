package lnamespace

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// wasAsked reports whether a webhook checked the rights of the user who made the LNamespace; the reconciler can't check
// them afterwards. A webhook did if the operator serves webhooks, the API server's configuration for them is older than
// the LNamespace, and one of its webhooks judgesNewTenants. A configuration that was deleted and made again is younger.
func (r *Reconciler) wasAsked(ctx context.Context, lns *v1alpha1.LNamespace) (bool, error) {
	if r.WebhookConfiguration == "" {
		return false, nil
	}
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: r.WebhookConfiguration}, c)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", r.WebhookConfiguration, err)
	}
	return c.CreationTimestamp.Before(&lns.CreationTimestamp) && slices.ContainsFunc(c.Webhooks, judgesNewTenants), nil
}

// judgesNewTenants reports whether the API server calls the webhook when any LNamespace is made, and refuses the
// request where it gets no answer.
func judgesNewTenants(w admissionregistrationv1.ValidatingWebhook) bool {
	if w.FailurePolicy != nil && *w.FailurePolicy != admissionregistrationv1.Fail ||
		w.ObjectSelector != nil && len(w.ObjectSelector.MatchLabels)+len(w.ObjectSelector.MatchExpressions) > 0 {
		return false
	}
	return slices.ContainsFunc(w.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) && slices.Contains(rule.Resources, "lnamespaces") &&
			slices.Contains(rule.Operations, admissionregistrationv1.Create)
	})
}
