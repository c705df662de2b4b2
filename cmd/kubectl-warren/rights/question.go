package rights

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Question is a request that a subject may or may not be allowed to make. If Namespace is empty, it is about the whole
// cluster. A question about a Namespace object has the name of that object as its namespace, as the API server's
// authorizer has it.
type Question struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
}

// String returns the question in words: "delete secrets/db in pay-web".
func (q Question) String() string {
	text := q.Verb + " " + q.Resource
	if q.Group != "" {
		text += "." + q.Group
	}
	if q.Name != "" {
		text += "/" + q.Name
	}
	if q.Subresource != "" {
		text += " (subresource " + q.Subresource + ")"
	}
	if q.Namespace != "" && q.Resource != "namespaces" {
		text += " in " + q.Namespace
	}
	return text
}

// admissionNote returns a note for a request that changes something: admission may still refuse what the authorizer
// allows; "" for one that reads.
func (q Question) admissionNote() string {
	if !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, q.Verb) {
		return ""
	}
	return "this answer covers RBAC alone; admission policies and webhooks, also Warren's, may still refuse the request: try it with " +
		"--dry-run=server"
}

func (q Question) resourceAttributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Name: q.Name, Namespace: q.Namespace,
	}
}

// selfReview returns the review that asks the question about the caller.
func (q Question) selfReview() *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: q.resourceAttributes()},
	}
}

func (q Question) isAllowedByRules(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, q.matchesRule)
}

// matchesRule reports whether a rule allows the request, as the RBAC authorizer does
// (pkg/apis/rbac/v1/evaluation_helpers.go of Kubernetes, which can't be imported). An integration test compares it with
// the API server.
func (q Question) matchesRule(rule rbacv1.PolicyRule) bool {
	resource := q.Resource
	if q.Subresource != "" {
		resource += "/" + q.Subresource
	}
	return containsAllOrOne(rule.Verbs, rbacv1.VerbAll, q.Verb) &&
		containsAllOrOne(rule.APIGroups, rbacv1.APIGroupAll, q.Group) &&
		(containsAllOrOne(rule.Resources, rbacv1.ResourceAll, resource) || q.Subresource != "" &&
			slices.Contains(rule.Resources, "*/"+q.Subresource)) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.Name))
}

func containsAllOrOne(list []string, all, one string) bool {
	return slices.Contains(list, all) || slices.Contains(list, one)
}
