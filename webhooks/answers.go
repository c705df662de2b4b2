package webhooks

import (
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// findings hold the judgement on one object: problems, which forbid the request, and warnings to its author.
type findings struct {
	problems field.ErrorList
	warnings admission.Warnings
}

func (f *findings) addProblems(problems ...*field.Error) {
	f.problems = append(f.problems, problems...)
}
func (f *findings) addWarnings(sentences ...string) { f.warnings = append(f.warnings, sentences...) }

// kind names one of the kinds that the webhooks judge, for messages.
type kind struct{ group, name, resource string }

var (
	kindLNamespace   = kind{v1alpha1.Domain, "LNamespace", "lnamespaces"}
	kindSubNamespace = kind{v1alpha1.Domain, "SubNamespace", "subnamespaces"}
	kindHierarchy    = kind{v1alpha1.Domain, "HierarchyConfiguration", "hierarchyconfigurations"}
	kindDistribution = kind{v1alpha1.Domain, "ResourceDistribution", "resourcedistributions"}
	kindSudoRequest  = kind{v1alpha1.Domain, "SudoRequest", "sudorequests"}
	kindNamespace    = kind{"", "Namespace", "namespaces"}
)

func (k kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.resource}
}

// refusalOfProblems returns the answer to a request with problems, all of them in one error: with code 403 if each of
// them is of type Forbidden, else 422. It is nil if there is no problem.
func (k kind) refusalOfProblems(name string, problems field.ErrorList) error {
	if len(problems) == 0 {
		return nil
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: k.group, Kind: k.name}, name, problems)
	for _, p := range problems {
		if p.Type != field.ErrorTypeForbidden {
			return invalid
		}
	}
	forbidden := apierrors.NewForbidden(k.groupResource(), name, problems.ToAggregate())
	forbidden.ErrStatus.Details.Causes = invalid.ErrStatus.Details.Causes
	return forbidden
}

// askToRetry returns an answer that makes the client retry after one second; kubectl does so by itself.
func askToRetry(message string) error {
	err := apierrors.NewServiceUnavailable(message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// responseForError returns the response that refuses a request with err: with its status where err is an APIStatus,
// else with code 500.
func responseForError(err error) admission.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}
