package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

const rbacGroup = "rbac.authorization.k8s.io"

// Attributes are what an authorizer decides about.
type Attributes struct{ Verb, Group, Resource, Child, Namespace, Name string }

// Allowed reports whether RBAC allows something to a user, who may be a service account.
func (s *Server) Allowed(user string, a Attributes) bool {
	return s.AllowedTo(user, nil, a)
}

// AllowedTo does so for a user who is in groups, beside those that the name tells.
func (s *Server) AllowedTo(user string, groups []string, a Attributes) bool {
	if s.isTrusted(user) || slices.Contains(groups, "system:masters") {
		return true
	}
	return s.hasRule(user, groups, a.Namespace, func(r rbacv1.PolicyRule) bool { return ruleAllows(r, a) })
}

// hasRule reports whether one of the rules that hold for a user in a namespace is wanted.
func (s *Server) hasRule(user string, groups []string, namespace string, wanted func(rbacv1.PolicyRule) bool) bool {
	groups = append(groupsOf(user), groups...)
	for _, binding := range s.Kind(rbacGroup, "clusterrolebindings").All() {
		if bindsSubject(binding, user, groups) && slices.ContainsFunc(s.rulesBy(binding), wanted) {
			return true
		}
	}
	if namespace == "" {
		return false
	}
	for _, binding := range s.Kind(rbacGroup, "rolebindings").objects {
		if binding.GetNamespace() == namespace && bindsSubject(binding, user, groups) && slices.ContainsFunc(s.rulesBy(binding), wanted) {
			return true
		}
	}
	return false
}

func groupsOf(user string) []string {
	groups := []string{"system:authenticated"}
	if rest, isAccount := strings.CutPrefix(user, "system:serviceaccount:"); isAccount {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	return groups
}

func bindsSubject(binding *Record, user string, groups []string) bool {
	subjects, _, _ := unstructured.NestedFieldNoCopy(binding.Object, "subjects")
	list, _ := subjects.([]any)
	for _, each := range list {
		subject, _ := each.(map[string]any)
		name, _ := subject["name"].(string)
		switch subject["kind"] {
		case "User":
			if name == user {
				return true
			}
		case "Group":
			if slices.Contains(groups, name) {
				return true
			}
		case "ServiceAccount":
			if namespace, _ := subject["namespace"].(string); "system:serviceaccount:"+namespace+":"+name == user {
				return true
			}
		}
	}
	return false
}

func (s *Server) rulesBy(binding *Record) []rbacv1.PolicyRule {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	return s.rulesOf(kind, binding.GetNamespace(), name)
}

func (s *Server) rulesOf(kind, namespace, name string) []rbacv1.PolicyRule {
	resource := "clusterroles"
	if kind == "Role" {
		resource = "roles"
	} else {
		namespace = ""
	}
	role := s.Kind(rbacGroup, resource).Find(namespace, name)
	if role == nil {
		return nil
	}
	if role.rules == nil {
		role.rules = rulesIn(role.Unstructured)
	}
	return role.rules
}

func rulesIn(role *unstructured.Unstructured) []rbacv1.PolicyRule {
	typed := rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"rules": role.Object["rules"]}, &typed); err != nil {
		panic(err)
	}
	return typed.Rules
}

func ruleAllows(r rbacv1.PolicyRule, a Attributes) bool {
	resource := a.Resource
	if a.Child != "" {
		resource += "/" + a.Child
	}
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return has(r.Verbs, a.Verb) && has(r.APIGroups, a.Group) &&
		(has(r.Resources, resource) || a.Child != "" && slices.Contains(r.Resources, "*/"+a.Child)) &&
		(len(r.ResourceNames) == 0 || a.Name != "" && slices.Contains(r.ResourceNames, a.Name))
}

// checkEscalation refuses roles and bindings that give more than the user has.
func (s *Server) checkEscalation(k *Kind, u *unstructured.Unstructured, old *Record, o options) *Refusal {
	if k.Group != rbacGroup || s.isTrusted(o.user) {
		return nil
	}
	var rules []rbacv1.PolicyRule
	if strings.HasSuffix(k.Resource, "roles") {
		if old != nil && slices.EqualFunc(rulesIn(u), rulesIn(old.Unstructured), equalRules) {
			return nil
		}
		if s.Allowed(o.user, Attributes{Verb: "escalate", Group: rbacGroup, Resource: k.Resource, Namespace: u.GetNamespace(),
			Name: u.GetName()}) {
			return nil
		}
		rules = rulesIn(u)
	} else {
		kind, _, _ := unstructured.NestedString(u.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
		if s.Allowed(o.user, Attributes{Verb: "bind", Group: rbacGroup, Resource: strings.ToLower(kind) + "s", Namespace: u.GetNamespace(),
			Name: name}) {
			return nil
		}
		if rules = s.rulesOf(kind, u.GetNamespace(), name); rules == nil {
			return notFound(unknownResource(rbacGroup, strings.ToLower(kind)+"s"), name)
		}
	}
	for _, rule := range rules {
		if !s.holds(o.user, u.GetNamespace(), rule) {
			return forbidden(k.GroupResource(), u.GetName(), "user "+o.user+" is attempting to grant RBAC permissions not currently held")
		}
	}
	return nil
}

func equalRules(a, b rbacv1.PolicyRule) bool { return string(mustEncode(a)) == string(mustEncode(b)) }

// holds reports whether a user has all that a rule grants.
func (s *Server) holds(user, namespace string, rule rbacv1.PolicyRule) bool {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					resource, child, _ := strings.Cut(resource, "/")
					if !s.Allowed(user, Attributes{Verb: verb, Group: group, Resource: resource, Child: child, Namespace: namespace, Name: name}) {
						return false
					}
				}
			}
		}
	}
	return true
}

// review answers a question to the authorizer or the authenticator.
func (s *Server) review(to route, r Request) Response {
	answer := func(object any) Response { return Response{Code: http.StatusCreated, Body: mustEncode(object)} }
	switch to.review {
	case "selfsubjectaccessreviews":
		review := authorizationv1.SelfSubjectAccessReview{}
		decodeInto(r.Body, &review)
		review.Status.Allowed = s.decide(r.User, groupsOf(r.User), review.Spec.ResourceAttributes)
		return answer(review)
	case "subjectaccessreviews":
		review := authorizationv1.SubjectAccessReview{}
		decodeInto(r.Body, &review)
		review.Status.Allowed = s.decide(review.Spec.User, review.Spec.Groups, review.Spec.ResourceAttributes)
		return answer(review)
	case "selfsubjectrulesreviews": // pkg/watchset asks before it watches a kind in one namespace
		review := authorizationv1.SelfSubjectRulesReview{}
		decodeInto(r.Body, &review)
		s.hasRule(r.User, nil, review.Spec.Namespace, func(rule rbacv1.PolicyRule) bool {
			review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: rule.Verbs,
				APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
			return false
		})
		return answer(review)
	case "selfsubjectreviews":
		review := authenticationv1.SelfSubjectReview{}
		decodeInto(r.Body, &review)
		review.Status.UserInfo = authenticationv1.UserInfo{Username: r.User, Groups: groupsOf(r.User)}
		return answer(review)
	}
	panic("the model does not answer " + to.review)
}

func (s *Server) decide(user string, groups []string, a *authorizationv1.ResourceAttributes) bool {
	if a == nil {
		panic("the model decides about resources alone")
	}
	return s.AllowedTo(user, groups, Attributes{Verb: a.Verb, Group: a.Group, Resource: a.Resource, Child: a.Subresource,
		Namespace: a.Namespace, Name: a.Name})
}

// addBuiltinRoles adds those ClusterRoles that every cluster has. Their rules are few, but of each role's kind.
func (s *Server) addBuiltinRoles() {
	read := []string{"get", "list", "watch"}
	write := append([]string{"create", "delete", "deletecollection", "patch", "update"}, read...)
	resources := []string{"configmaps", "pods", "services", "persistentvolumeclaims", "serviceaccounts"}
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: verbs, Resources: resources}
	}
	own := map[string][]rbacv1.PolicyRule{
		"cluster-admin":             {rule("*", []string{"*"}, "*")},
		"system:aggregate-to-view":  {rule("", read, append(resources, "resourcequotas", "limitranges", "namespaces", "events")...)},
		"system:aggregate-to-edit":  {rule("", write, append(resources, "secrets")...), rule("apps", write, "deployments")},
		"system:aggregate-to-admin": {rule(rbacGroup, write, "roles", "rolebindings")},
	}
	for name, rules := range own {
		role := &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if target, aggregates := strings.CutPrefix(name, "system:aggregate-to-"); aggregates {
			role.Labels = map[string]string{rbacGroup + "/aggregate-to-" + target: "true"}
			s.installRole(role)
			role = &rbacv1.ClusterRole{TypeMeta: role.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: target},
				AggregationRule: &rbacv1.AggregationRule{}}
			for _, below := range map[string][]string{"view": {"view"}, "edit": {"view", "edit"}, "admin": {"view", "edit", "admin"}}[target] {
				role.AggregationRule.ClusterRoleSelectors = append(role.AggregationRule.ClusterRoleSelectors,
					metav1.LabelSelector{MatchLabels: map[string]string{rbacGroup + "/aggregate-to-" + below: "true"}})
			}
		}
		s.installRole(role)
	}
}

func (s *Server) installRole(role *rbacv1.ClusterRole) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(mustEncode(role), &u.Object); err != nil {
		panic(err)
	}
	s.install(u)
}

// aggregateRoles fills in the rules of ClusterRoles that are made of others. The model does so once.
func (s *Server) aggregateRoles() {
	roles := s.Kind(rbacGroup, "clusterroles")
	for _, r := range roles.All() {
		typed := rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Object, &typed); err != nil {
			panic(err)
		}
		if typed.AggregationRule == nil {
			continue
		}
		var rules []any
		for _, from := range roles.All() {
			if from.GetName() != r.GetName() && slices.ContainsFunc(typed.AggregationRule.ClusterRoleSelectors, func(l metav1.LabelSelector) bool {
				selector, err := metav1.LabelSelectorAsSelector(&l)
				return err == nil && selector.Matches(labels.Set(from.GetLabels()))
			}) {
				list, _, _ := unstructured.NestedSlice(from.Object, "rules")
				rules = append(rules, list...)
			}
		}
		u := r.DeepCopy()
		u.Object["rules"] = rules
		s.store(roles, r, u, Admin)
	}
}

// isTrusted reports whether a user is a part of Kubernetes, or a cluster admin, whose rights the model does not look at.
func (s *Server) isTrusted(user string) bool {
	return user == Admin || strings.HasPrefix(user, "system:") && !strings.HasPrefix(user, "system:serviceaccount:")
}
