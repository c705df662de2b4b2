package grants_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// ofOne returns tenant payments with mia as its only manager and its only sudoer.
func ofOne() *v1alpha1.LNamespace {
	tenant := payments()
	tenant.Spec.Managers, tenant.Spec.Sudoers = []v1alpha1.Subject{user("mia")}, []v1alpha1.Subject{user("mia")}
	return tenant
}

func TestWhoHasASolePair(t *testing.T) {
	mia, bob, ops := user("mia"), user("bob"), group("ops")
	cases := map[string]struct {
		managers, sudoers []v1alpha1.Subject
		want              bool
	}{
		"one person":      {[]v1alpha1.Subject{mia}, []v1alpha1.Subject{mia}, true},
		"two persons":     {[]v1alpha1.Subject{mia}, []v1alpha1.Subject{bob}, false},
		"two managers":    {[]v1alpha1.Subject{mia, bob}, []v1alpha1.Subject{mia}, false},
		"two on both":     {[]v1alpha1.Subject{mia, bob}, []v1alpha1.Subject{mia, bob}, false},
		"no sudoer":       {[]v1alpha1.Subject{mia}, nil, false},
		"nobody":          {nil, nil, false},
		"a group":         {[]v1alpha1.Subject{ops}, []v1alpha1.Subject{ops}, false},
		"a user and more": {[]v1alpha1.Subject{mia, ops}, []v1alpha1.Subject{mia, ops}, false},
	}
	for name, c := range cases {
		t.Run("ACC-R20 "+name, func(t *testing.T) {
			tenant := payments()
			tenant.Spec.Managers, tenant.Spec.Sudoers = c.managers, c.sudoers
			if got := grants.For(tenant, legacy).Sole != nil; got != c.want {
				t.Errorf("want a sole pair: %v, got %v", c.want, got)
			}
		})
	}
}

func TestSoleName(t *testing.T) {
	for _, name := range []string{"bob", "https://acc/1#2%3", "a~1b", "~", "a:b", "Zoë Müller"} {
		full := grants.SoleName("pay", name)
		if got, ok := grants.SoleUser(full, "pay"); !ok || got != name || strings.ContainsAny(full, "/%") {
			t.Errorf("%q became %q and then %q, %v", name, full, got, ok)
		}
		if _, ok := grants.SoleUser(full, "payments"); ok {
			t.Errorf("%q is taken for a pair of another tenant", full)
		}
	}
}

// settle plans and carries out plans until nothing is left to do. It returns the steps of each pass, and calls check after each step.
func settle(t *testing.T, tenant *v1alpha1.LNamespace, actual grants.Actual, check func(after string)) [][]string {
	t.Helper()
	var passes [][]string
	for range 5 {
		plan := grants.PlanFor(tenant.Name, grants.For(tenant, legacy), grants.Withheld{}, actual)
		if len(plan.Steps) == 0 {
			return passes
		}
		passes = append(passes, told(plan))
		for _, step := range plan.Steps {
			carry(grants.Plan{Steps: []grants.Step{step}}, tenant.Name, actual)
			check(string(step.Verb) + " " + grants.KeyOf(step.Desired).String())
		}
	}
	t.Fatalf("there is no end: %v", passes)
	return nil
}

// may reports whether the existing pairs let a user make a request, as the API server would decide.
func may(actual grants.Actual, name, resource, object string) bool {
	for key, existing := range actual {
		binding, ok := existing.(*rbacv1.ClusterRoleBinding)
		role, found := actual[grants.Key{Kind: "ClusterRole", Name: key.Name}].(*rbacv1.ClusterRole)
		if !ok || !found || !bindsUser(binding, name) {
			continue
		}
		for _, rule := range role.Rules {
			if rule.Resources[0] == resource && len(rule.ResourceNames) == 1 && rule.ResourceNames[0] == object {
				return true
			}
		}
	}
	return false
}

func bindsUser(binding *rbacv1.ClusterRoleBinding, name string) bool {
	for _, s := range binding.Subjects {
		if s.Kind == rbacv1.UserKind && s.Name == name {
			return true
		}
	}
	return false
}

func TestARightHasNoGapBetweenTheForms(t *testing.T) {
	both := payments()
	both.Spec.Managers, both.Spec.Sudoers = []v1alpha1.Subject{user("mia"), user("bob")}, []v1alpha1.Subject{user("mia"), user("bob")}
	separate := func() grants.Actual { // as an earlier version wrote the pairs of such a tenant
		objects := grants.For(ofOne(), legacy)
		objects.Sole = nil
		return collect(objects)
	}
	sole := func() grants.Actual {
		actual := grants.Actual{}
		settle(t, ofOne(), actual, func(string) {})
		return actual
	}
	cases := map[string]struct {
		tenant *v1alpha1.LNamespace
		actual grants.Actual
		last   []string // the steps of the last pass
	}{
		"ACC-R22 the separate pairs of an earlier version are removed last, and mia has her rights after each " +
			"write": {ofOne(), separate(), []string{
			"remove ClusterRoleBinding warren:sudo:payments", "remove ClusterRole warren:sudo:payments",
			"remove ClusterRoleBinding warren:edit:payments", "remove ClusterRole warren:edit:payments",
			"release ClusterRole warren:self:mia", "release ClusterRoleBinding warren:self:mia",
		}},
		"ACC-R21 if somebody joins, the sole pair is removed last, and mia has her rights after each write": {both, sole(), []string{
			"remove ClusterRoleBinding warren:sole:payments:mia", "remove ClusterRole warren:sole:payments:mia",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			passes := settle(t, c.tenant, c.actual, func(after string) {
				for resource, object := range map[string]string{"groups": "payments-sudoers", "users": "mia", "lnamespaces": "payments"} {
					if !may(c.actual, "mia", resource, object) {
						t.Errorf("after %q mia has no right to %s %s", after, resource, object)
					}
				}
				if may(c.actual, "bob", "users", "mia") {
					t.Errorf("after %q bob may become mia", after)
				}
			})
			if diff := cmp.Diff(c.last, passes[len(passes)-1]); diff != "" {
				t.Errorf("the last pass (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanOfASolePair(t *testing.T) {
	cases := map[string]struct {
		edit     func(*v1alpha1.LNamespace)
		withheld grants.Withheld
		want     []string
	}{
		"ACC-R20 a sole pair that is as wanted needs no write": {want: []string{}},
		"ACC-R21 another takes both places: the pair of the first goes before": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Managers[0], l.Spec.Sudoers[0] = user("bob"), user("bob") },
			want: []string{
				"remove ClusterRoleBinding warren:sole:payments:mia", "remove ClusterRole warren:sole:payments:mia",
				"ensure ClusterRole warren:sole:payments:bob",
				"ensure ClusterRoleBinding warren:sole:payments:bob after ClusterRole warren:sole:payments:bob",
			},
		},
		"ACC-R21 if the sole person is no longer a sudoer, the sole pair is removed first": {
			edit: func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = nil },
			want: []string{
				"remove ClusterRoleBinding warren:sole:payments:mia", "remove ClusterRole warren:sole:payments:mia",
				"ensure ClusterRole warren:sudo:payments", "ensure ClusterRole warren:edit:payments",
				"ensure ClusterRoleBinding warren:edit:payments after ClusterRole warren:edit:payments",
			},
		},
		"the group is in use": {
			withheld: grants.Withheld{Sudo: true},
			want: []string{
				"remove ClusterRoleBinding warren:sole:payments:mia", "remove ClusterRole warren:sole:payments:mia",
				"ensure ClusterRole warren:edit:payments",
				"ensure ClusterRoleBinding warren:edit:payments after ClusterRole warren:edit:payments",
			},
		},
		"nobody knows yet whether the group is in use": {withheld: grants.Withheld{SudoAdditions: true}, want: []string{}},
		"somebody joins while nobody knows yet": {
			edit:     func(l *v1alpha1.LNamespace) { l.Spec.Managers = append(l.Spec.Managers, user("bob")) },
			withheld: grants.Withheld{SudoAdditions: true},
			want: []string{
				"ensure ClusterRole warren:edit:payments",
				"ensure ClusterRoleBinding warren:edit:payments after ClusterRole warren:edit:payments",
				"ensure ClusterRole warren:self:mia", "ensure ClusterRoleBinding warren:self:mia after ClusterRole warren:self:mia",
			},
		},
		"while it is being deleted": {
			edit:     func(l *v1alpha1.LNamespace) { l.Spec.Managers = nil },
			withheld: grants.Withheld{Additions: true},
			want:     []string{"remove ClusterRoleBinding warren:sole:payments:mia", "remove ClusterRole warren:sole:payments:mia"},
		},
		"everything is withdrawn": {
			withheld: grants.Withheld{Everything: true},
			want: []string{
				"remove ClusterRoleBinding warren:sole:payments:mia", "remove ClusterRole warren:sole:payments:mia",
				"remove RoleBinding payments/warren:users", "remove RoleBinding payments/warren:sudoers",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenant, actual := ofOne(), grants.Actual{}
			settle(t, tenant, actual, func(string) {})
			if c.edit != nil {
				c.edit(tenant)
			}
			if diff := cmp.Diff(c.want, told(grants.PlanFor(tenant.Name, grants.For(tenant, legacy), c.withheld, actual))); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// Other pairs will replace the sole pair, but it stays until they exist; a conflict may prevent that for ever. A user who was added to the
// sole pair without permission is removed at once all the same.
func TestASolePairThatStaysHoldsNobodyElse(t *testing.T) {
	tenant, actual := ofOne(), grants.Actual{}
	settle(t, tenant, actual, func(string) {})
	binding := actual[grants.Key{Kind: "ClusterRoleBinding", Name: "warren:sole:payments:mia"}].(*rbacv1.ClusterRoleBinding)
	binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"})
	tenant.Spec.Managers = append(tenant.Spec.Managers, user("bob"))
	t.Run("ACC-R23 a second subject of the sole pair is removed by the first write, also while the separate pairs don't exist "+
		"yet", func(t *testing.T) {
		plan := grants.PlanFor(tenant.Name, grants.For(tenant, legacy), grants.Withheld{}, actual)
		if first := plan.Steps[0]; told(plan)[0] != "narrow ClusterRoleBinding warren:sole:payments:mia" || !first.Revokes {
			t.Fatalf("got %v", told(plan))
		}
		carry(plan, tenant.Name, actual)
		if may(actual, "mallory", "users", "mia") {
			t.Error("mallory may become mia")
		}
		if !may(actual, "mia", "users", "mia") {
			t.Error("mia has lost the sole pair")
		}
	})
}
