// Package ownrights asks the API server who the caller is and what the caller may do, and finds the tenants that these
// rights name. Every authenticated user may ask that, so it needs no right of Warren's.
package ownrights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Rights are the rules that the API server reports for the caller.
type Rights []authorizationv1.ResourceRule

// Identify asks the API server who the caller is.
func Identify(ctx context.Context, api client.Client) (authenticationv1.UserInfo, error) {
	self := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, self); err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("asking the API server who you are: %w", err)
	}
	return self.Status.UserInfo, nil
}

// Ask asks the API server for the caller's rights in a namespace and in the cluster. incomplete explains why an
// authorizer other than RBAC could not list its rules; "" if all did.
func Ask(ctx context.Context, api client.Client, namespace string) (rights Rights, incomplete string, err error) {
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := api.Create(ctx, rules); err != nil {
		return nil, "", fmt.Errorf("asking the API server what you may do: %w", err)
	}
	if rules.Status.Incomplete {
		incomplete = rules.Status.EvaluationError
	}
	return rules.Status.ResourceRules, incomplete, nil
}

// Names are the resourceNames of RBAC rules, or all names.
type Names struct {
	Some sets.Set[string]
	All  bool
}

// Has reports whether name is one of the names.
func (n Names) Has(name string) bool { return n.All || n.Some.Has(name) }

// Names returns the objects of a resource on which the rules allow a verb. A rule without resourceNames allows all.
func (r Rights) Names(verb, group, resource string) Names {
	n := Names{Some: sets.New[string]()}
	for _, rule := range r {
		if !hasWord(rule.Verbs, verb) || !hasWord(rule.APIGroups, group) || !hasWord(rule.Resources, resource) {
			continue
		}
		n.Some.Insert(rule.ResourceNames...)
		n.All = n.All || len(rule.ResourceNames) == 0
	}
	return n
}

func hasWord(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}

// Form is a form of impersonation: the verb, and the API group of the resources users and groups.
type Form struct{ Verb, Group string }

// Legacy and Constrained are the two forms.
var (
	Legacy      = Form{"impersonate", ""}
	Constrained = Form{"impersonate:user-info", "authentication.k8s.io"}
)

// Impersonated returns the users or groups, as resource says, that the caller may impersonate by a form.
func (r Rights) Impersonated(form Form, resource string) Names {
	return r.Names(form.Verb, form.Group, resource)
}

// Sudo returns the tenants whose group of sudoers the caller may impersonate, in alphabetical order. A caller who may
// impersonate any group may use sudo in other tenants too.
func (r Rights) Sudo() []string {
	legacy, constrained := r.Impersonated(Legacy, "groups"), r.Impersonated(Constrained, "groups")
	var tenants []string
	for group := range legacy.Some.Union(constrained.Some) {
		if tenant, ok := strings.CutSuffix(group, v1alpha1.SudoersSuffix); ok && tenant != "" {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	return tenants
}

// Managed returns the tenants whose LNamespace the caller may read by its name, in alphabetical order: managers may.
func (r Rights) Managed() []string {
	return sets.List(r.Names("get", v1alpha1.GroupVersion.Group, "lnamespaces").Some)
}
