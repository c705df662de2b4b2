// Package config_test looks at what config ships, without a cluster.
package config_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster"
)

var update = flag.Bool("update", false, "write testdata/operator_rbac.yaml")

const golden = "testdata/operator_rbac.yaml"

// budget is the number of rules that the operator may hold.
const budget = 20

// role is one that binds the operator's service account, and where it holds.
type role struct {
	Kind  string              `json:"kind"`
	Name  string              `json:"name"`
	In    string              `json:"in"` // a namespace, or "the cluster"
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// operatorsRoles are the roles that the manifests bind to the operator, with what they aggregate.
func operatorsRoles(t *testing.T, overlay string) []role {
	t.Helper()
	manifests, err := devcluster.Render(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var roles []role
	for _, u := range manifests {
		if u.GetKind() != "ClusterRoleBinding" && u.GetKind() != "RoleBinding" {
			continue
		}
		b := read[rbacv1.RoleBinding](t, u.Object) // both have the same fields
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Name == "warren-controller-manager"
		}) {
			continue
		}
		in := b.Namespace
		if u.GetKind() == "ClusterRoleBinding" {
			in = "the cluster"
		}
		for _, r := range named(t, manifests, b.RoleRef) {
			roles = append(roles, role{Kind: b.RoleRef.Kind, Name: r.Name, In: in, Rules: r.Rules})
		}
	}
	return roles
}

// named returns the role of a reference, and what it gathers by a label.
func named(t *testing.T, manifests devcluster.Manifests, ref rbacv1.RoleRef) []rbacv1.ClusterRole {
	t.Helper()
	var found []rbacv1.ClusterRole
	for _, u := range manifests {
		if u.GetKind() == ref.Kind && u.GetName() == ref.Name {
			found = append(found, read[rbacv1.ClusterRole](t, u.Object))
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s %s stands %d times in the manifests", ref.Kind, ref.Name, len(found))
	}
	if found[0].AggregationRule == nil {
		return found
	}
	for _, u := range manifests {
		if u.GetKind() == "ClusterRole" && u.GetLabels()["tenancy.warren.dev/aggregate-to-kinds"] == "true" {
			found = append(found, read[rbacv1.ClusterRole](t, u.Object))
		}
	}
	return found[1:]
}

func read[T any](t *testing.T, object map[string]any) T {
	t.Helper()
	var into T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

// What the operator may do is a promise to cluster admins: it changes only together with this file.
func TestOperatorsRightsAreTheGoldenOnes(t *testing.T) {
	text, err := yaml.Marshal(operatorsRoles(t, "config/overlays/standard"))
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("# Every right of the operator's service account in overlay standard. Written by make manifests; a change is a "+
		"change of the\n# threat model, docs/security.md.\n"), text...)
	if *update {
		if err := os.WriteFile(golden, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s differs (-golden +config); if the new rights are meant: make manifests\n%s", golden, diff)
	}
}

func TestOperatorsRightsAreFewAndNamed(t *testing.T) {
	for _, overlay := range overlays(t) {
		n := 0
		for _, r := range operatorsRoles(t, "config/overlays/"+overlay) {
			n += len(r.Rules)
			for _, rule := range r.Rules {
				for _, wrong := range wrongs(rule) {
					t.Errorf("overlay %s: %s %s: %s in %+v", overlay, r.Kind, r.Name, wrong, rule)
				}
			}
		}
		most := budget
		if overlay == "open" {
			most += 10 // those of components budgets and requests
		}
		if n == 0 || n > most {
			t.Errorf("overlay %s: the operator holds %d rules, and may hold 1 to %d", overlay, n, most)
		}
	}
}

// SEC-X9: what is copied but is no RBAC is out of the hardened operator's reach, but for where it binds its role itself.
func TestHardenedHoldsNoPropagatedKindInTheCluster(t *testing.T) {
	standard, hardened := 0, 0
	for overlay, n := range map[string]*int{"standard": &standard, "hardened": &hardened} {
		for _, r := range operatorsRoles(t, "config/overlays/"+overlay) {
			for _, rule := range r.Rules {
				if r.In == "the cluster" && (slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "configmaps")) {
					*n++
				}
			}
		}
	}
	if standard != 2 || hardened != 0 {
		t.Errorf("rules on Secrets and ConfigMaps in the whole cluster: standard has %d, want 2; hardened has %d, want none", standard, hardened)
	}
}

func overlays(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("overlays")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// forbidden are resources on which the operator holds no verb at all, written those that it only reads.
var (
	forbidden  = []string{"pods", "nodes", "serviceaccounts", "serviceaccounts/token", "certificatesigningrequests", "pods/exec", "secrets/*"}
	readOnly   = []string{"customresourcedefinitions", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}
	propagated = []string{"secrets", "configmaps", "roles", "rolebindings", "clusterroles", "clusterrolebindings"}
	reads      = []string{"get", "list", "watch"}
)

// wrongs says what a rule holds that the operator must never hold.
func wrongs(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs, rule.NonResourceURLs} {
		for _, word := range words {
			if slices.Contains([]rune(word), '*') {
				found = append(found, "a *")
			}
		}
	}
	if slices.Contains(rule.Verbs, "impersonate") {
		found = append(found, "verb impersonate")
	}
	has := func(resources []string) bool {
		return slices.ContainsFunc(rule.Resources, func(r string) bool { return slices.Contains(resources, r) })
	}
	writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return !slices.Contains(reads, v) })
	switch {
	case has(forbidden):
		found = append(found, "a resource that is not the operator's business")
	case has(readOnly) && writes:
		found = append(found, "a write on what it may only read")
	case has(propagated) && slices.Contains(rule.Verbs, "patch"):
		found = append(found, "verb patch on a kind that it copies")
	}
	return found
}

func TestWrongsAreFound(t *testing.T) {
	for name, rule := range map[string]rbacv1.PolicyRule{
		"wildcard":      {APIGroups: []string{"*"}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		"part of it":    {NonResourceURLs: []string{"/api/*"}, Verbs: []string{"get"}},
		"impersonation": {APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}},
		"tokens":        {APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
		"own policies": {Resources: []string{"validatingadmissionpolicybindings"}, ResourceNames: []string{"warren-copy"},
			Verbs: []string{"get", "delete"}},
		"patch": {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}},
	} {
		if len(wrongs(rule)) == 0 {
			t.Errorf("%s: nothing wrong was found in %+v", name, rule)
		}
	}
}

// bind and escalate are worth cluster-admin but for the cage.
func TestEscalateComesWithTheCage(t *testing.T) {
	for _, overlay := range overlays(t) {
		escalates := false
		for _, r := range operatorsRoles(t, "config/overlays/"+overlay) {
			for _, rule := range r.Rules {
				escalates = escalates || slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind")
			}
		}
		manifests, err := devcluster.Render("config/overlays/" + overlay)
		if err != nil {
			t.Fatal(err)
		}
		bound := map[string]bool{}
		for _, u := range manifests {
			if u.GetKind() == "ValidatingAdmissionPolicyBinding" {
				bound[u.GetName()] = true
			}
		}
		for _, cage := range []string{"rbac", "namespaces", "objects", "webhooks"} {
			if name := fmt.Sprintf("warren-operator-cage-%s", cage); escalates && !bound[name] {
				t.Errorf("overlay %s lets the operator escalate, but doesn't bind %s", overlay, name)
			}
		}
	}
}
