package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/sudo"
)

// requestDefaults fills in who asks for sudo, and the group by which people ask and decide, which they can't always know. Policy
// sudo-requests checks all of it, so whoever writes it by hand needs no webhook.
type requestDefaults struct{ live client.Reader }

// writtenRequest is the part of a SudoRequest that the defaults look at. Its schema was not judged yet.
type writtenRequest struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		User      string                  `json:"user"`
		Group     string                  `json:"group"`
		Decisions []v1alpha1.SudoDecision `json:"decisions"`
	} `json:"spec"`
}

// Handle implements admission.Handler.
func (d *requestDefaults) Handle(ctx context.Context, req admission.Request) admission.Response {
	if !json.Valid(req.Object.Raw) {
		return admission.Errored(http.StatusBadRequest, errNotJSON)
	}
	var now, old writtenRequest
	var given struct {
		Spec *struct{} `json:"spec"`
	}
	if json.Unmarshal(req.Object.Raw, &now) != nil || json.Unmarshal(req.Object.Raw, &given) != nil || given.Spec == nil {
		return admission.Allowed("") // nothing can be filled in; next, the API server reports by the schema which field is wrong
	}
	if req.Operation == admissionv1.Update {
		if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if err := d.checkUIDKnown(ctx, old.Metadata); err != nil {
			return responseForError(err)
		}
	}
	tenant, err := readTenant(ctx, d.live, req.Namespace)
	if err != nil {
		return responseForError(err)
	}
	if tenant == nil {
		tenant = &v1alpha1.LNamespace{} // nobody is on its lists
	}
	if req.Operation == admissionv1.Update {
		return admission.Patched("", fillDecisions(tenant, &old, &now, req.UserInfo)...)
	}
	return admission.Patched("", fillRequester(tenant, &now, req.UserInfo)...)
}

// fillRequester returns patches with the user, and the group by which the user is eligible.
func fillRequester(tenant *v1alpha1.LNamespace, r *writtenRequest, me authenticationv1.UserInfo) (patches []jsonpatch.Operation) {
	switch r.Spec.User {
	case "":
		patches = append(patches, addOperation("/spec/user", me.Username))
	case me.Username:
	default:
		return nil // the policy refuses it
	}
	if r.Spec.Group == "" {
		if group := sudo.FindGroup(tenant, me.Username, me.Groups); group != "" {
			patches = append(patches, addOperation("/spec/group", group))
		}
	}
	return patches
}

// fillDecisions returns patches with the group by which the user may make the decisions that are new.
func fillDecisions(tenant *v1alpha1.LNamespace, old, now *writtenRequest, me authenticationv1.UserInfo) (patches []jsonpatch.Operation) {
	for i, decision := range now.Spec.Decisions {
		if decision.User != me.Username || decision.Group != "" || slices.Contains(old.Spec.Decisions, decision) {
			continue
		}
		if group := sudo.FindDeciderGroup(tenant, decision, me.Groups); group != "" {
			patches = append(patches, addOperation(fmt.Sprintf("/spec/decisions/%d/group", i), group))
		}
	}
	return patches
}

// checkUIDKnown refuses a review whose sender doesn't know the UID of the request: see checkReviewGenuine.
func (d *requestDefaults) checkUIDKnown(ctx context.Context, old metav1.ObjectMeta) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kindSudoRequest.name))
	err := d.live.Get(ctx, client.ObjectKey{Namespace: old.Namespace, Name: old.Name}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		return readFailedError("SudoRequest "+old.Namespace+"/"+old.Name, err)
	}
	if err != nil || object.UID != old.UID {
		return askToRetry("the API server has no sudorequest " + old.Name + " with this UID; try again in a second")
	}
	return nil
}
