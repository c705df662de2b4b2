package webhooks

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// addSubFinalizer gives a new SubNamespace its finalizer, which would otherwise cost the reconciler a separate write
// (SUB-S14).
func addSubFinalizer(_ context.Context, req admission.Request) admission.Response {
	sub := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.Object.Raw, sub); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	switch {
	case controllerutil.ContainsFinalizer(sub, v1alpha1.FinalizerSubNamespace):
		return admission.Allowed("")
	case len(sub.Finalizers) == 0:
		return admission.Patched("", addOperation("/metadata/finalizers", []string{v1alpha1.FinalizerSubNamespace}))
	}
	return admission.Patched("", addOperation("/metadata/finalizers/-", v1alpha1.FinalizerSubNamespace))
}
