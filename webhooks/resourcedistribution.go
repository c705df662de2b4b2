package webhooks

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/text"
)

// distributionValidator checks those aspects of ResourceDistributions that the admission policy warren-distribution
// can't, because they need the namespaces, the configuration, the authorizer or a dry run.
type distributionValidator struct {
	liveView
	ask               authorizer.Asker
	config            *config.OperatorConfiguration
	operatorNamespace string
	mapper            meta.RESTMapper
	// dryRun creates objects by dry run: the API server judges the request and keeps nothing.
	dryRun client.Writer
}

// ValidateCreate implements admission.Validator.
func (v *distributionValidator) ValidateCreate(ctx context.Context, rd *v1alpha1.ResourceDistribution) (admission.Warnings, error) {
	return v.checkDistributionChange(ctx, nil, rd)
}

// ValidateUpdate implements admission.Validator.
func (v *distributionValidator) ValidateUpdate(ctx context.Context, old, now *v1alpha1.ResourceDistribution) (admission.Warnings, error) {
	if err := v.checkUIDKnown(ctx, old); err != nil {
		return nil, err
	}
	return v.checkDistributionChange(ctx, old, now)
}

// ValidateDelete implements admission.Validator.
func (v *distributionValidator) ValidateDelete(ctx context.Context, rd *v1alpha1.ResourceDistribution) (admission.Warnings, error) {
	if err := v.checkUIDKnown(ctx, rd); err != nil {
		return nil, err
	}
	if copies := rd.Status.Current + rd.Status.Outdated; copies > 0 && rd.Spec.DeletionPolicy != v1alpha1.DeletionOrphan {
		return admission.Warnings{"this removes the copy from " + text.Count(int(copies), "namespace", "namespaces")}, nil
	}
	return nil, nil
}

// checkUIDKnown refuses a review whose sender doesn't know the UID of the object: see checkReviewGenuine.
func (v *distributionValidator) checkUIDKnown(ctx context.Context, old *v1alpha1.ResourceDistribution) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(distribute.Kind))
	err := v.live.Get(ctx, client.ObjectKey{Name: old.Name}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		return readFailedError("ResourceDistribution "+old.Name, err)
	}
	if err != nil || object.UID != old.UID {
		return askToRetry("the API server has no resourcedistribution " + old.Name + " with this UID: it may just have been deleted or " +
			"replaced; try again in a second")
	}
	return nil
}

func (v *distributionValidator) distributionSettings() distribute.Settings {
	c := v.config
	s := distribute.Settings{
		AllowOverwrite: c.Distribution.AllowOverwrite,
		Protected:      func(name string) bool { return c.ProtectedFromDistribution(name, v.operatorNamespace) },
	}
	for _, k := range c.Distribution.Kinds {
		s.Kinds = append(s.Kinds, k.GroupVersionKind())
	}
	return s
}

func (v *distributionValidator) checkDistributionChange(ctx context.Context, old,
	now *v1alpha1.ResourceDistribution) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	change := distributionChange{forest: v.view.Snapshot(), settings: v.distributionSettings(),
		now: distribute.Read(now, v.distributionSettings())}
	if old != nil {
		change.old = distribute.Read(old, v.distributionSettings())
	}
	f := change.checkObjectAlone(now.Spec.Targets)
	if f.problems == nil {
		f.addProblems(v.checkResourceSizes(now, change, &f)...)
	}
	if len(f.problems) > 0 {
		return f.warnings, kindDistribution.refusalOfProblems(now.Name, f.problems)
	}
	mapping, err := v.mapper.RESTMapping(change.now.Template.Kind.GroupKind(), change.now.Template.Kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return f.warnings, kindDistribution.refusalOfProblems(now.Name, field.ErrorList{field.Invalid(field.NewPath("spec", "resource", "kind"),
			change.now.Template.Kind.Kind, "distribution.kinds allows this kind, but the API server does not serve it: install its CRD first, "+
				"or correct its version, here and in distribution.kinds")})
	case err != nil:
		return f.warnings, readFailedError("the resource of kind "+change.now.Template.Kind.Kind, err)
	}
	if change.resourceChanged() {
		if err := v.checkByDryRun(ctx, now); err != nil {
			return f.warnings, kindDistribution.refusalOfProblems(now.Name, field.ErrorList{err})
		}
	}
	problem, err := v.missingWriteRight(ctx, user, change, mapping.Resource.Group, mapping.Resource.Resource)
	if err != nil {
		return f.warnings, err
	}
	if problem != "" {
		return f.warnings, apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("resourcedistributions").GroupResource(), now.Name,
			errorText(problem))
	}
	f.addWarnings(change.warningsAboutReach(now.Spec.Targets)...)
	if change.targetsChanged() {
		f.addWarnings(change.warningsAboutTargets()...)
		f.addWarnings(v.conflictWarnings(ctx, change)...)
	}
	return f.warnings, nil
}

type errorText string

func (e errorText) Error() string { return string(e) }

// checkResourceSizes refuses an object above maxObjectBytes, or whose copies together are above maxTotalBytes. It warns
// if the copies have more than 256 MiB together.
func (v *distributionValidator) checkResourceSizes(now *v1alpha1.ResourceDistribution, change distributionChange,
	f *findings) field.ErrorList {
	bare := now.DeepCopy()
	// The operator writes the status, and the API server managedFields: neither is the author's.
	bare.Status, bare.ManagedFields = v1alpha1.ResourceDistributionStatus{}, nil
	data, err := json.Marshal(bare)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
	}
	c, at := v.config.Distribution, field.NewPath("spec", "resource")
	if limit := c.MaxObjectBytes; int64(len(data)) > limit {
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("the ResourceDistribution is %d bytes without its status; the limit is %d "+
			"(distribution.maxObjectBytes): make its resource smaller", len(data), limit))}
	}
	total := int64(change.now.Template.Bytes) * int64(change.countPresentTargets())
	switch limit := c.MaxTotalBytes.Value(); {
	case limit > 0 && total > limit:
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("about %s would be written to etcd; the limit is %s "+
			"(distribution.maxTotalBytes): make the object smaller, or select fewer namespaces",
			formatGibibytes(total), formatGibibytes(limit)))}
	case total > 256<<20:
		f.addWarnings(fmt.Sprintf("about %s will be written to etcd", formatGibibytes(total)))
	}
	return nil
}

func formatGibibytes(n int64) string { return fmt.Sprintf("%.2g GiB", float64(n)/(1<<30)) }

// checkByDryRun has the API server judge spec.resource by a dry run in the operator's own namespace.
func (v *distributionValidator) checkByDryRun(ctx context.Context, now *v1alpha1.ResourceDistribution) *field.Error {
	u := &unstructured.Unstructured{}
	at := field.NewPath("spec", "resource")
	if err := json.Unmarshal(now.Spec.Resource.Raw, u); err != nil {
		return field.Invalid(at, field.OmitValueType{}, "is not an object")
	}
	u.SetNamespace(v.operatorNamespace)
	err := v.dryRun.Create(ctx, u, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	if status, ok := err.(apierrors.APIStatus); ok && (status.Status().Code == 400 || status.Status().Code == 422) {
		// The API server's own message names no field.
		if bad := notBase64(u); bad != "" {
			return field.Invalid(at, field.OmitValueType{}, bad+": must be base64")
		}
		return field.Invalid(at, field.OmitValueType{}, fieldErrorsOnly(status.Status()))
	}
	return nil // other refusals, such as of a name that exists, may not apply in the target namespaces
}

// notBase64 returns the first field of a Secret or ConfigMap that must be base64 and isn't, such as "data[key]"; "" if
// there is none. The API server's own message names no field.
func notBase64(u *unstructured.Unstructured) string {
	name := map[string]string{"v1 Secret": "data", "v1 ConfigMap": "binaryData"}[u.GetAPIVersion()+" "+u.GetKind()]
	values, _ := u.Object[name].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, isText := values[key].(string)
		if _, err := base64.StdEncoding.DecodeString(text); isText && err != nil {
			return fmt.Sprintf("%s[%s]", name, key)
		}
	}
	return ""
}

// fieldErrorsOnly returns the fields that a refusal names, and what is wrong with them, without their values, which may
// be secret.
func fieldErrorsOnly(status metav1.Status) string {
	if status.Details == nil || len(status.Details.Causes) == 0 || status.Code != 422 {
		text, _, _ := strings.Cut(status.Message, ": illegal base64")
		return text
	}
	var all []string
	for _, cause := range status.Details.Causes {
		text := cause.Message
		if i := strings.LastIndex(text, `": `); strings.HasPrefix(text, "Invalid value: ") && i >= 0 {
			text = "Invalid value: " + text[i+len(`": `):]
		}
		all = append(all, cause.Field+": "+text)
	}
	return strings.Join(all, "; ")
}

// missingWriteRight explains which right the user lacks on the objects that the change makes the operator write; "" if
// none. With that right, the user could write them without the operator.
func (v *distributionValidator) missingWriteRight(ctx context.Context, user authenticationv1.UserInfo, change distributionChange, group,
	resource string) (string, error) {
	open, namespaces := change.addedTargets()
	for _, verb := range change.operatorVerbs() {
		if !open && len(namespaces) == 0 {
			return "", nil
		}
		everywhere, err := v.ask.May(ctx, user, verb, group, resource, []string{""})
		if err != nil {
			return "", err
		}
		// A right in the whole cluster saves the questions about single namespaces.
		if everywhere[0] {
			continue
		}
		// Where later namespaces are targets, too, rights in the present ones do not suffice.
		if open || len(namespaces) > maxAsked {
			return fmt.Sprintf("user %q may not %s %s cluster-wide, as this ResourceDistribution requires", user.Username, verb, resource), nil
		}
		each, err := v.ask.May(ctx, user, verb, group, resource, namespaces)
		if err != nil {
			return "", err
		}
		if text := firstRefusedNamespace(namespaces, each); text != "" {
			return fmt.Sprintf("user %q may not %s %s in namespace %s", user.Username, verb, resource, text), nil
		}
	}
	return "", nil
}

// conflictWarnings warns of objects that are in the way of copies now. It returns none if these can't be read: the
// operator reports conflicts later.
func (v *distributionValidator) conflictWarnings(ctx context.Context, change distributionChange) []string {
	template := change.now.Template
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(template.Kind.GroupVersion().WithKind(template.Kind.Kind + "List"))
	selector, err := labels.Parse(v1alpha1.LabelDistributedBy + "!=" + change.now.Name)
	if err != nil {
		return nil
	}
	if err := v.live.List(ctx, list, client.MatchingLabelsSelector{Selector: selector},
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", template.Name)}); err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if namespace := list.Items[i].Namespace; change.now.Choose(change.forest, namespace, change.settings.Protected) == distribute.Chosen {
			names = append(names, namespace)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{template.TakenIn(len(names)) + ": " + joinFirstNames(names)}
}
