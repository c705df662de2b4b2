package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/grants"
)

// tenantDefaults fills in who runs a new LNamespace and who pays for it. It writes the JSON patch itself, because a
// Defaulter of controller-runtime marshals the whole object again, with every zero value that the requester left out.
type tenantDefaults struct {
	liveView
	ask               authorizer.Asker
	config            *config.OperatorConfiguration
	operatorNamespace string
	decoder           admission.Decoder
}

// Handle implements admission.Handler.
func (d *tenantDefaults) Handle(ctx context.Context, req admission.Request) admission.Response {
	if !json.Valid(req.Object.Raw) {
		return admission.Errored(http.StatusBadRequest, errNotJSON)
	}
	if err := kindLNamespace.refusalOfProblems(req.Name, checkTenantForm(req.Object.Raw)); err != nil {
		return responseForError(err)
	}
	lns := &v1alpha1.LNamespace{}
	var written struct {
		Spec     map[string]json.RawMessage `json:"spec"`
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if d.decoder.Decode(req, lns) != nil || json.Unmarshal(req.Object.Raw, &written) != nil {
		return admission.Allowed("") // nothing can be filled in; next, the API server reports by the schema which field is wrong
	}
	patches, warnings, err := d.defaultPeoplePatches(ctx, lns, req.UserInfo)
	if err != nil {
		return responseForError(err)
	}
	patches = append(patches, d.defaultBillingPatches(lns, req.UserInfo)...)
	if len(patches) > 0 && written.Spec == nil {
		patches = append([]jsonpatch.Operation{addOperation("/spec", struct{}{})}, patches...)
	}
	admin, err := d.ask.IsClusterAdmin(ctx, req.UserInfo)
	if err != nil {
		return responseForError(err)
	}
	if !admin { // what a cluster admin states remains, for example when a backup is restored
		if written.Metadata.Annotations == nil {
			patches = append(patches, addOperation("/metadata/annotations", struct{}{}))
		}
		patches = append(patches, addOperation("/metadata/annotations/"+strings.ReplaceAll(v1alpha1.AnnotationCreator, "/", "~1"),
			req.UserInfo.Username))
	}
	return admission.Patched("", patches...).WithWarnings(warnings...)
}

// defaultPeoplePatches returns patches that list the requester as manager, and as sudoer, if that list of the
// LNamespace is empty. If the requester can't be listed, it returns a warning.
func (d *tenantDefaults) defaultPeoplePatches(ctx context.Context, lns *v1alpha1.LNamespace,
	user authenticationv1.UserInfo) (patches []jsonpatch.Operation, warnings []string, err error) {
	subject, listable := creatorAsSubject(user.Username)
	s, err := d.snapshotWith(ctx, subject.Namespace)
	if err != nil {
		return nil, nil, err
	}
	for _, list := range []grants.List{grants.ListManagers, grants.ListSudoers} {
		alone := &v1alpha1.LNamespace{ObjectMeta: lns.ObjectMeta}
		named, probe := lns.Spec.Managers, &alone.Spec.Managers
		if list == grants.ListSudoers {
			named, probe = lns.Spec.Sudoers, &alone.Spec.Sudoers
		}
		if len(named) > 0 {
			continue
		}
		*probe = []v1alpha1.Subject{subject}
		if listable && len(checkNewSubjects(s, &v1alpha1.LNamespace{}, alone, d.operatorNamespace)) == 0 {
			patches = append(patches, addOperation("/spec/"+string(list), *probe))
		} else {
			warnings = []string{"kubernetes user " + user.Username + " can't be listed; name managers and sudoers"}
		}
	}
	return patches, warnings, nil
}

// defaultBillingPatches returns patches that fill in the first default that applies to the requester and agrees with
// the stated fields.
func (d *tenantDefaults) defaultBillingPatches(lns *v1alpha1.LNamespace, user authenticationv1.UserInfo) []jsonpatch.Operation {
	var stated v1alpha1.Billing
	if lns.Spec.Billing != nil {
		stated = *lns.Spec.Billing
	}
	filled := fillEmptyBillingFields(stated, matchingBillingDefaults(d.config.Billing.Defaults, user.Username, user.Groups))
	if reflect.DeepEqual(stated, filled) {
		return nil
	}
	if lns.Spec.Billing == nil {
		return []jsonpatch.Operation{addOperation("/spec/billing", filled)}
	}
	var patches []jsonpatch.Operation
	if stated.CostCenter != filled.CostCenter {
		patches = append(patches, addOperation("/spec/billing/costCenter", filled.CostCenter))
	}
	if stated.Owner != filled.Owner {
		patches = append(patches, addOperation("/spec/billing/owner", filled.Owner))
	}
	if len(stated.Labels) == 0 && len(filled.Labels) > 0 {
		patches = append(patches, addOperation("/spec/billing/labels", filled.Labels))
	}
	return patches
}

func addOperation(path string, value any) jsonpatch.Operation {
	return jsonpatch.NewOperation("add", path, value)
}
