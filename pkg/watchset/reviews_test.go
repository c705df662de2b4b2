package watchset_test

import (
	"io"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func (a *api) review(r *http.Request) (int, any) {
	if a.refuses {
		return http.StatusForbidden, failure(http.StatusForbidden, metav1.StatusReasonForbidden)
	}
	review := &authorizationv1.SelfSubjectAccessReview{}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(text, nil, review)
	}
	if err != nil {
		return http.StatusBadRequest, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	what := review.Spec.ResourceAttributes
	review.Status.Allowed = a.allowed(what.Verb, what.Resource, what.Namespace)
	if a.reviewed != nil {
		if allowed, known := a.reviewed(what.Verb); known {
			review.Status.Allowed = allowed
		}
	}
	if selector := what.LabelSelector; a.selects != "" && (selector == nil || selector.RawSelector != a.selects) {
		review.Status.Allowed = false
	}
	if a.troubled {
		review.Status.Allowed, review.Status.EvaluationError = false, "the authorizer is away"
	}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	return http.StatusCreated, review
}

func (a *api) reviewRules(r *http.Request) (int, any) {
	review := &authorizationv1.SelfSubjectRulesReview{}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(text, nil, review)
	}
	if err != nil {
		return http.StatusBadRequest, failure(http.StatusBadRequest, metav1.StatusReasonBadRequest)
	}
	for right, held := range a.rights {
		if a.denied != "" && a.denied == review.Spec.Namespace {
			break
		}
		verb, rest, _ := strings.Cut(right, " ")
		resource, namespace, _ := strings.Cut(rest, " ")
		if held && (namespace == "*" || namespace == review.Spec.Namespace) {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: []string{verb}, APIGroups: []string{"*"}, Resources: []string{resource},
			})
		}
	}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectRulesReview"
	return http.StatusCreated, review
}
