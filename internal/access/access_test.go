package access_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/access"
)

func user(name string) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name}
}

func group(name string) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: name}
}

func account(namespace, name string) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectServiceAccount, Namespace: namespace, Name: name}
}

// payments is the tenant of the samples.
func payments() *v1alpha1.LNamespace {
	return &v1alpha1.LNamespace{
		ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "UID_PAYMENTS"},
		Spec: v1alpha1.LNamespaceSpec{
			Users:    []v1alpha1.Subject{user("alice"), group("pay-devs")},
			Managers: []v1alpha1.Subject{user("mia")},
			Sudoers:  []v1alpha1.Subject{user("bob"), group("pay-oncall"), account("ci", "deployer")},
		},
	}
}

var legacy = access.Facts{Mode: v1alpha1.SudoLegacy, Forms: access.FormsOf(v1alpha1.SudoLegacy), UserClusterRole: "admin"}

func collect(objects access.Objects) access.Actual {
	result := access.Actual{}
	result.Put(access.KeyOf(objects.Users), objects.Users)
	result.Put(access.KeyOf(objects.Sudoers), objects.Sudoers)
	if objects.Forms.Constrained {
		result.Put(access.KeyOf(objects.SudoOn), objects.SudoOn)
	}
	for _, pair := range append([]access.Pair{objects.Sudo, objects.Edit}, objects.Self...) {
		result.Put(access.KeyOf(pair.Role), pair.Role)
		result.Put(access.KeyOf(pair.Binding), pair.Binding)
	}
	return result
}

func TestForIsWhatTheSpecificationShows(t *testing.T) {
	got := collect(access.For(payments(), legacy))
	if diff := cmp.Diff(samples(t), got, cmpopts.IgnoreTypes(metav1.TypeMeta{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("objects of payments (-want +got):\n%s", diff)
	}
}

func TestSudoRulesFollowTheKindsOfSudoers(t *testing.T) {
	cases := map[string]struct {
		sudoers []v1alpha1.Subject
		want    int
	}{
		"none":              {want: 2},
		"a user":            {sudoers: []v1alpha1.Subject{user("bob")}, want: 2},
		"a group":           {sudoers: []v1alpha1.Subject{group("ops")}, want: 3},
		"a service account": {sudoers: []v1alpha1.Subject{account("ci", "deployer")}, want: 3},
	}
	for name, c := range cases {
		t.Run("ACC-S22 "+name, func(t *testing.T) {
			tenant := payments()
			tenant.Spec.Sudoers = c.sudoers
			if got := access.For(tenant, legacy).Sudo.Role.Rules; len(got) != c.want {
				t.Errorf("want %d rules, got %v", c.want, got)
			}
		})
	}
}

func TestEmptyListsGrantNothing(t *testing.T) {
	t.Run("ACC-R07", func(t *testing.T) {
		tenant := payments()
		tenant.Spec = v1alpha1.LNamespaceSpec{}
		objects := access.For(tenant, legacy)
		if n := len(objects.Users.Subjects) + len(objects.Sudo.Binding.Subjects) + len(objects.Self); n != 0 {
			t.Errorf("want no subject, got %d", n)
		}
		want := []rbacv1.Subject{{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "payments-sudoers"}}
		if diff := cmp.Diff(want, objects.Edit.Binding.Subjects); diff != "" {
			t.Errorf("subjects of warren:edit (-want +got):\n%s", diff)
		}
		for key, object := range collect(objects) {
			if role, ok := object.(*rbacv1.ClusterRole); ok {
				for _, rule := range role.Rules {
					if len(rule.ResourceNames) == 0 && rule.Resources[0] != "userextras/tenancy.warren.dev/reason" {
						t.Errorf("%s has a rule without resourceNames: %v", key, rule)
					}
				}
			}
		}
	})
}

func TestSudoStatus(t *testing.T) {
	const mine = "kubectl --as=$USER --as-group=payments-sudoers"
	cases := map[string]struct {
		sudoers []v1alpha1.Subject
		want    v1alpha1.SudoStatus
	}{
		"users": {[]v1alpha1.Subject{user("bob")},
			v1alpha1.SudoStatus{Group: "payments-sudoers", Mode: v1alpha1.SudoLegacy, Command: mine}},
		"a user and a group": {[]v1alpha1.Subject{group("ops"), user("bob")},
			v1alpha1.SudoStatus{Group: "payments-sudoers", User: "warren:sudo:payments", Mode: v1alpha1.SudoLegacy, Command: mine}},
		"groups only": {[]v1alpha1.Subject{group("ops")},
			v1alpha1.SudoStatus{Group: "payments-sudoers", User: "warren:sudo:payments", Mode: v1alpha1.SudoLegacy,
				Command: "kubectl --as=warren:sudo:payments --as-group=payments-sudoers"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenant := payments()
			tenant.Spec.Sudoers = c.sudoers
			if diff := cmp.Diff(&c.want, access.SudoStatus(tenant, legacy)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tree := func(namespace string) bool { return namespace == "payments" || namespace == "pay-web" }
	cases := map[string]struct {
		subject v1alpha1.Subject
		want    string
	}{
		"ACC-S12 in the tree": {account("pay-web", "robot"), "ServiceAccount pay-web/robot lives in the tree of payments: every user of the tree could become sudoer; bind it to a role instead"},
		"outside the tree":    {account("ci", "deployer"), ""},
		"of the operator":     {account("warren-system", "x"), "ServiceAccount warren-system/x lives in a namespace of the system, whose service accounts can't be managers or sudoers"},
		"reserved by us":      {group("warren:x"), "Group warren:x has a reserved name: names that start with system: or warren: can't be managers or sudoers"},
		"a user":              {user("foo-sudoers"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenant := payments()
			tenant.Spec.Sudoers = []v1alpha1.Subject{user("bob"), c.subject}
			refusals := access.Refusals(tenant, tree, "warren-system")
			got := ""
			for _, r := range refusals {
				got += r.Why
			}
			if got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
			bound := len(access.For(tenant, access.Facts{Refused: refusals}).Sudo.Binding.Subjects)
			if want := 2 - len(refusals); bound != want {
				t.Errorf("want %d subjects bound, got %d", want, bound)
			}
		})
	}
}

func TestManagersOfTheTreeAreWelcome(t *testing.T) {
	tenant := payments()
	tenant.Spec.Managers = []v1alpha1.Subject{account("payments", "robot")}
	if got := access.Refusals(tenant, func(string) bool { return true }, "warren-system"); len(got) != 1 || got[0].List != access.ListSudoers {
		t.Errorf("want the sudoer ci/deployer refused alone, got %v", got)
	}
}

func owned(names ...string) []metav1.OwnerReference {
	references := make([]metav1.OwnerReference, 0, len(names))
	for i := 0; i < len(names); i += 2 {
		references = append(references, metav1.OwnerReference{
			APIVersion: "tenancy.warren.dev/v1alpha1", Kind: "LNamespace", Name: names[i], UID: types.UID(names[i+1]),
		})
	}
	return references
}
