package webhooks

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/rules"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// requestValidator refuses at once the SudoRequests that the operator would never grant. Policy sudo-requests has checked before who asks.
type requestValidator struct {
	live   client.Reader
	config *config.OperatorConfiguration
}

// ValidateCreate implements admission.Validator.
func (v *requestValidator) ValidateCreate(ctx context.Context, r *v1alpha1.SudoRequest) (admission.Warnings, error) {
	tenant, err := readTenant(ctx, v.live, r.Namespace)
	if err != nil || tenant == nil {
		return nil, err // outside of a root, the policy refuses it
	}
	f := &sudo.Facts{Request: r.DeepCopy(), Tenant: tenant, Limits: rules.ForSudo(v.config)}
	if f.Request.CreationTimestamp.IsZero() { // in a review that no API server has sent
		f.Request.CreationTimestamp = metav1.Now()
	}
	if f.Older, err = v.listOlder(ctx, r); err != nil {
		return nil, err
	}
	if refusal := sudo.CheckNew(f); refusal != nil {
		return nil, kindSudoRequest.refusalOfProblems(r.Name, field.ErrorList{field.Forbidden(fieldOfRefusal(refusal.Reason), refusal.Message)})
	}
	if few := sudo.DescribeFewApprovers(f); few != "" {
		return admission.Warnings{few}, nil
	}
	return nil, nil
}

// listOlder reads all requests that the same person has made in the tenant. It reads them from the API server, so that a user who makes
// many in a row gets hardly more than the limit. Of those made at the same moment, the controller refuses the youngest.
func (v *requestValidator) listOlder(ctx context.Context, r *v1alpha1.SudoRequest) (older []v1alpha1.SudoRequest, err error) {
	all := &v1alpha1.SudoRequestList{}
	if err := v.live.List(ctx, all, client.InNamespace(r.Namespace)); err != nil {
		return nil, readFailedError("the SudoRequests of namespace "+r.Namespace, err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.User == r.Spec.User {
			older = append(older, all.Items[i])
		}
	}
	return older, nil
}

// fieldOfRefusal returns the field whose value a reason refuses.
func fieldOfRefusal(reason v1alpha1.Reason) *field.Path {
	switch reason {
	case v1alpha1.ReasonTooLong:
		return spec.Child("duration")
	case v1alpha1.ReasonBreakGlassForbidden:
		return spec.Child("breakGlass")
	}
	return spec.Child("user")
}

// readTenant reads the LNamespace of a root from the API server; nil if there is none.
func readTenant(ctx context.Context, live client.Reader, root string) (*v1alpha1.LNamespace, error) {
	tenant := &v1alpha1.LNamespace{}
	switch err := live.Get(ctx, client.ObjectKey{Name: root}, tenant); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, readFailedError("LNamespace "+root, err)
	}
	return tenant, nil
}

// ValidateUpdate implements admission.Validator. The webhook is not asked about updates, and the schema and the policy judge them.
func (v *requestValidator) ValidateUpdate(context.Context, *v1alpha1.SudoRequest, *v1alpha1.SudoRequest) (admission.Warnings, error) {
	return nil, nil
}

// ValidateDelete implements admission.Validator. The policy judges deletions.
func (v *requestValidator) ValidateDelete(context.Context, *v1alpha1.SudoRequest) (admission.Warnings, error) {
	return nil, nil
}
