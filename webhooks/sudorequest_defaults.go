package webhooks

import (
	"context"
	"encoding/json"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/warren-tenancy/warren/internal/sudo"
)

// requestDefaults fills in who asks for sudo, and the group by which they are eligible. Policy sudo-requests checks both, so a request that
// says it itself needs no webhook.
type requestDefaults struct{ live client.Reader }

// Handle implements admission.Handler.
func (d *requestDefaults) Handle(ctx context.Context, req admission.Request) admission.Response {
	if !json.Valid(req.Object.Raw) {
		return admission.Errored(http.StatusBadRequest, errNotJSON)
	}
	var written struct {
		Spec *struct {
			User  string `json:"user"`
			Group string `json:"group"`
		} `json:"spec"`
	}
	if json.Unmarshal(req.Object.Raw, &written) != nil || written.Spec == nil {
		return admission.Allowed("") // nothing can be filled in; next, the API server reports by the schema which field is wrong
	}
	var patches []jsonpatch.Operation
	if written.Spec.User == "" {
		patches = append(patches, addOperation("/spec/user", req.UserInfo.Username))
	} else if written.Spec.User != req.UserInfo.Username {
		return admission.Allowed("") // the policy refuses it
	}
	if written.Spec.Group == "" {
		tenant, err := readTenant(ctx, d.live, req.Namespace)
		if err != nil {
			return responseForError(err)
		}
		if tenant != nil {
			if group := sudo.FindGroup(tenant, req.UserInfo.Username, req.UserInfo.Groups); group != "" {
				patches = append(patches, addOperation("/spec/group", group))
			}
		}
	}
	return admission.Patched("", patches...)
}
