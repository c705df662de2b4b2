package rolevetting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// rule returns a rule for resources of one API group.
func rule(group string, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs, ResourceNames: names}
}

// words returns its arguments as a list.
func words(all ...string) []string { return all }

func TestRights(t *testing.T) {
	cases := map[string]struct {
		rules []rbacv1.PolicyRule
		want  []rolevetting.Right
	}{
		"none": {nil, []rolevetting.Right{}},
		"one right for each group, resource and verb, sorted": {
			[]rbacv1.PolicyRule{{APIGroups: words("b", ""), Resources: words("y", "x/z"), Verbs: words("list", "get")}},
			[]rolevetting.Right{
				{APIGroup: "", Resource: "x/z", Verb: "get"}, {APIGroup: "", Resource: "x/z", Verb: "list"},
				{APIGroup: "", Resource: "y", Verb: "get"}, {APIGroup: "", Resource: "y", Verb: "list"},
				{APIGroup: "b", Resource: "x/z", Verb: "get"}, {APIGroup: "b", Resource: "x/z", Verb: "list"},
				{APIGroup: "b", Resource: "y", Verb: "get"}, {APIGroup: "b", Resource: "y", Verb: "list"},
			},
		},
		"a right that is given twice is one": {
			[]rbacv1.PolicyRule{rule("", words("x"), words("get", "get")), rule("", words("x"), words("get"))},
			[]rolevetting.Right{{Resource: "x", Verb: "get"}},
		},
		"names of several rules come together": {
			[]rbacv1.PolicyRule{rule("", words("x"), words("get"), "c", "a"), rule("", words("x"), words("get"), "b", "a")},
			[]rolevetting.Right{{Resource: "x", Verb: "get", ResourceNames: words("a", "b", "c")}},
		},
		"every name is more than some, before": {
			[]rbacv1.PolicyRule{rule("", words("x"), words("get")), rule("", words("x"), words("get"), "a")},
			[]rolevetting.Right{{Resource: "x", Verb: "get"}},
		},
		"and after": {
			[]rbacv1.PolicyRule{rule("", words("x"), words("get"), "a"), rule("", words("x"), words("get"))},
			[]rolevetting.Right{{Resource: "x", Verb: "get"}},
		},
		"URLs are nothing in a RoleBinding": {
			[]rbacv1.PolicyRule{{NonResourceURLs: words("*"), Verbs: words("*")}}, []rolevetting.Right{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, rolevetting.Rights(c.rules)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRightInWords(t *testing.T) {
	for want, right := range map[string]rolevetting.Right{
		"update namespaces":                  {Resource: "namespaces", Verb: "update"},
		"create pods/exec":                   {Resource: "pods/exec", Verb: "create"},
		"patch deployments.apps/scale":       {APIGroup: "apps", Resource: "deployments/scale", Verb: "patch"},
		"* *.*":                              {APIGroup: "*", Resource: "*", Verb: "*"},
		"get widgets.example.com named a, b": {APIGroup: "example.com", Resource: "widgets", Verb: "get", ResourceNames: words("a", "b")},
		"update */scale named something":     {APIGroup: "", Resource: "*/scale", Verb: "update", ResourceNames: words("something")},
	} {
		if got := right.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// ACC-T02: which rights are dangerous, as docs/behaviour/access.md 2.8 defines it.
func TestDangerous(t *testing.T) {
	const ours = "tenancy.warren.dev"
	cases := []struct {
		group, resource, verb string
		want                  bool
	}{
		{"", "namespaces", "update", true},
		{"", "namespaces", "create", true},
		{"", "namespaces", "deletecollection", true},
		{"", "namespaces", "get", false},
		{"", "namespaces", "watch", false},
		{"", "namespaces/status", "patch", true},
		{"", "namespaces/finalize", "update", true},
		{"other.example.com", "namespaces", "update", false},
		{ours, "lnamespaces", "delete", true},
		{ours, "lnamespaces", "list", false},
		{"", "lnamespaces", "delete", false},
		{ours, "subnamespaces", "create", false},
		{"", "resourcequotas", "patch", true},
		{"", "resourcequotas", "get", false},
		{"", "nodes", "update", true},
		{"", "nodes", "list", false},
		{"rbac.authorization.k8s.io", "roles", "escalate", true},
		{"rbac.authorization.k8s.io", "roles", "bind", true},
		{"rbac.authorization.k8s.io", "rolebindings", "create", false},
		{"", "serviceaccounts", "impersonate", false},
		{"", "serviceaccounts", "impersonate:serviceaccount", false},
		{"x", "serviceaccounts", "impersonate", true},
		{"", "users", "impersonate", true},
		{"authentication.k8s.io", "users", "impersonate:user-info", true},
		{"", "pods", "impersonate-on:user-info:get", false}, // useless without the right to impersonate a user
		{"", "pods", "*", true},
		{"apps", "deployments", "*", true},
		{"", "users", "*", true},
		{"", "serviceaccounts", "*", true},
		{"rbac.authorization.k8s.io", "roles", "*", true},
		{"authentication.k8s.io", "userextras/scopes", "*", true},
		{"certificates.k8s.io", "signers", "*", true},
		{ours, "subnamespaces", "*", true},
		{"security.openshift.io", "securitycontextconstraints", "*", true},
		{"project.openshift.io", "projects", "*", true},
		{"kafka.strimzi.io", "kafkas", "impersonate:*", true},
		{"kafka.strimzi.io", "kafkas/*", "*", true},
		{"*.strimzi.io", "kafkas", "*", true},
		{"kafka.strimzi.io", "*", "*", true},
		{"kafka.strimzi.io", "kafkas", "*", false},
		{"kafka.strimzi.io", "kafkas/status", "*", false},
		{"logging.openshift.io", "clusterloggings", "*", false},
		{"cluster.x-k8s.io", "machines", "*", false},
		{"", "*", "get", true},
		{"*", "pods", "get", true},
		{"", "*/scale", "get", true},
		{"", "secrets", "delete", false},
	}
	for _, c := range cases {
		for _, names := range [][]string{nil, words("a")} {
			right := rolevetting.Right{APIGroup: c.group, Resource: c.resource, Verb: c.verb, ResourceNames: names}
			if got := right.Dangerous(); got != c.want {
				t.Errorf("%s: got %t", right, got)
			}
		}
	}
}
