package grants_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// asking is payments, with people who may ask for sudo.
func asking() *v1alpha1.LNamespace {
	tenant := payments()
	tenant.Spec.SudoRequests = &v1alpha1.SudoRequests{
		Eligible:  []v1alpha1.Subject{user("carol"), group("pay-oncall"), user("system:admin"), account("ci", "deployer")},
		Approvers: []v1alpha1.Subject{group("pay-leads")},
	}
	return tenant
}

// planned returns the verb of each RoleBinding of sudo on request in a plan.
func planned(objects grants.Objects, actual grants.Actual) map[string]grants.Verb {
	verbs := map[string]grants.Verb{}
	for _, step := range grants.PlanFor("payments", objects, grants.Withheld{}, actual).Steps {
		for _, binding := range objects.Requests {
			if grants.KeyOf(step.Desired) == grants.KeyOf(binding) {
				verbs[binding.Name] = step.Verb
			}
		}
	}
	return verbs
}

func TestRequestsAreBoundWhereTheComponentIs(t *testing.T) {
	facts := legacy
	if diff := cmp.Diff(map[string]grants.Verb{}, planned(grants.For(asking(), facts), grants.Actual{})); diff != "" {
		t.Errorf("without component requests (-want +got):\n%s", diff)
	}
	facts.Requests = true
	objects := grants.For(asking(), facts)
	want := map[string]grants.Verb{"warren:sudo-requests": grants.VerbEnsure, "warren:requesters": grants.VerbEnsure,
		"warren:approvers": grants.VerbEnsure}
	if diff := cmp.Diff(want, planned(objects, grants.Actual{})); diff != "" {
		t.Errorf("with component requests (-want +got):\n%s", diff)
	}
	actual := grants.Actual{}
	for _, binding := range objects.Requests {
		actual.Put(grants.KeyOf(binding), binding)
	}
	if diff := cmp.Diff(map[string]grants.Verb{}, planned(objects, actual)); diff != "" {
		t.Errorf("a second plan (-want +got):\n%s", diff)
	}
	for name := range want {
		want[name] = grants.VerbRemove
	}
	if diff := cmp.Diff(want, planned(grants.For(payments(), facts), actual)); diff != "" {
		t.Errorf("without anybody eligible (-want +got):\n%s", diff)
	}
}

func TestRequestsBindWhoIsListed(t *testing.T) {
	got := map[string][]rbacv1.Subject{}
	for _, binding := range grants.For(asking(), legacy).Requests {
		got[binding.Name] = binding.Subjects
	}
	person := func(kind, name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	want := map[string][]rbacv1.Subject{
		"warren:sudo-requests": {{Kind: "ServiceAccount", Namespace: "warren-sudo", Name: "payments"}},
		"warren:requesters":    {person("User", "carol"), person("Group", "pay-oncall")},
		"warren:approvers":     {person("Group", "pay-leads"), person("User", "mia")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}
