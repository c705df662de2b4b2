package grants_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// in returns the facts of mode Legacy, but with these forms of impersonation.
func in(forms grants.Forms) grants.Facts {
	facts := legacy
	facts.Forms = forms
	return facts
}

var (
	constrained = grants.FormsOf(v1alpha1.SudoConstrained)
	both        = grants.Forms{Legacy: true, Constrained: true}
)

func TestForInModeConstrained(t *testing.T) {
	want := samples(t)
	maps.Copy(want, read(t, "testdata/constrained.yaml"))
	got := collect(grants.For(payments(), in(constrained)))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(metav1.TypeMeta{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("objects of payments (-want +got):\n%s", diff)
	}
}

// In each form, every rule about impersonation names the users or groups that its holder may impersonate.
func TestNoFormLetsAnyoneBecomeAnybody(t *testing.T) {
	for _, forms := range []grants.Forms{legacy.Forms, constrained, both} {
		objects := grants.For(payments(), in(forms))
		for _, pair := range append([]grants.Pair{objects.Sudo}, objects.Self...) {
			if got := grants.FormsIn(pair.Role); got != forms {
				t.Errorf("%s holds %v, want %v", grants.KeyOf(pair.Role), got, forms)
			}
			for _, rule := range pair.Role.Rules {
				extra := cmp.Equal(rule.Resources, []string{"userextras/tenancy.warren.dev/reason"})
				on := rule.Verbs[0] != "impersonate" && rule.Verbs[0] != "impersonate:user-info"
				if !extra && !on && len(rule.ResourceNames) != 1 {
					t.Errorf("%s: %v", grants.KeyOf(pair.Role), rule)
				}
			}
		}
	}
}

func TestSwitch(t *testing.T) {
	actual := samples(t)
	roles := []string{"ensure ClusterRole warren:sudo:payments", "ensure ClusterRole warren:self:bob"}
	for _, step := range []struct {
		forms grants.Forms
		want  []string
	}{
		{both, append([]string{"ensure RoleBinding payments/warren:sudo"}, roles...)},
		{constrained, roles},
		{both, roles},
		{legacy.Forms, append([]string{"remove RoleBinding payments/warren:sudo"}, roles...)},
	} {
		objects := grants.For(payments(), in(step.forms))
		plan := grants.PlanFor("payments", objects, grants.Withheld{}, actual)
		if diff := cmp.Diff(step.want, told(plan)); diff != "" {
			t.Errorf("to %v (-want +got):\n%s", step.forms, diff)
		}
		carry(plan, "payments", actual)
		if again := grants.PlanFor("payments", objects, grants.Withheld{}, actual); len(again.Steps) != 0 {
			t.Errorf("to %v: a second plan is not empty: %v", step.forms, told(again))
		}
	}
	if diff := cmp.Diff(samples(t), actual, cmpopts.IgnoreTypes(metav1.TypeMeta{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("there and back again (-want +got):\n%s", diff)
	}
}

// In mode Constrained, removing a sudoer takes one write more than in mode Legacy. In both, the first write already ends sudo.
func TestRevocationInModeConstrained(t *testing.T) {
	tenant, actual := payments(), collect(grants.For(payments(), in(constrained)))
	tenant.Spec.Sudoers = tenant.Spec.Sudoers[1:]
	plan := grants.PlanFor("payments", grants.For(tenant, in(constrained)), grants.Withheld{}, actual)
	want := []string{
		"ensure ClusterRoleBinding warren:sudo:payments", "ensure RoleBinding payments/warren:sudo",
		"release ClusterRole warren:self:bob", "release ClusterRoleBinding warren:self:bob",
	}
	if diff := cmp.Diff(want, told(plan)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Expected recognises every object that the operator wrote, in each form, so that leftovers can be removed.
func TestExpectedKnowsEachForm(t *testing.T) {
	for _, forms := range []grants.Forms{legacy.Forms, constrained, both} {
		for key, object := range collect(grants.For(payments(), in(forms))) {
			object.SetOwnerReferences(nil)
			expected, ok := grants.Expected(object)
			if role, isRole := object.(*rbacv1.ClusterRole); ok && isRole {
				ok = cmp.Equal(role.Rules, expected.(*rbacv1.ClusterRole).Rules)
			}
			if !ok || !grants.Removable(object, expected) {
				t.Errorf("%v: %s is not known", forms, key)
			}
		}
	}
}
