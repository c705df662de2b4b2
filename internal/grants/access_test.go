package grants_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
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

// payments returns the tenant in docs/resource-samples.
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

var legacy = grants.Facts{Mode: v1alpha1.SudoLegacy, Forms: grants.FormsOf(v1alpha1.SudoLegacy), UserClusterRole: "admin"}

func collect(objects grants.Objects) grants.Actual {
	result := grants.Actual{}
	result.Put(grants.KeyOf(objects.Users), objects.Users)
	result.Put(grants.KeyOf(objects.Sudoers), objects.Sudoers)
	if objects.Forms.Constrained {
		result.Put(grants.KeyOf(objects.SudoOn), objects.SudoOn)
	}
	for _, pair := range append([]grants.Pair{objects.Sudo, objects.Edit}, objects.Self...) {
		result.Put(grants.KeyOf(pair.Role), pair.Role)
		result.Put(grants.KeyOf(pair.Binding), pair.Binding)
	}
	return result
}

func TestForIsWhatTheSpecificationShows(t *testing.T) {
	got := collect(grants.For(payments(), legacy))
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
			if got := grants.For(tenant, legacy).Sudo.Role.Rules; len(got) != c.want {
				t.Errorf("want %d rules, got %v", c.want, got)
			}
		})
	}
}

func TestEmptyListsGrantNothing(t *testing.T) {
	t.Run("ACC-R07", func(t *testing.T) {
		tenant := payments()
		tenant.Spec = v1alpha1.LNamespaceSpec{}
		objects := grants.For(tenant, legacy)
		if n := len(objects.Users.Subjects) + len(objects.Bindings()); n != 0 {
			t.Errorf("want neither a subject nor a ClusterRoleBinding, got %d", n)
		}
		tenant.Spec.Sudoers = []v1alpha1.Subject{group("ops")}
		want := []rbacv1.Subject{{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "payments-sudoers"}}
		if diff := cmp.Diff(want, grants.For(tenant, legacy).Edit.Binding.Subjects); diff != "" {
			t.Errorf("subjects of warren:edit without managers (-want +got):\n%s", diff)
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
	const mine = `kubectl --as="$(kubectl auth whoami -o jsonpath={.status.userInfo.username})" --as-group=payments-sudoers`
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
			if diff := cmp.Diff(&c.want, grants.SudoStatus(tenant, legacy)); diff != "" {
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
		"ACC-S12 a ServiceAccount in the tree is " +
			"refused": {account("pay-web", "robot"), "ServiceAccount pay-web/robot lives in the tree of payments, whose users can all " +
			"act as it, so it can't be among the sudoers: list an account of another namespace, or bind this one to a Role"},
		"outside the tree": {account("ci", "deployer"), ""},
		"of the operator": {account("warren-system", "x"), "ServiceAccount warren-system/x is in a system namespace, whose service " +
			"accounts can't be listed: list an account of another namespace"},
		"reserved by us": {group("warren:x"), "Group warren:x has a reserved name: names that start with system: or " +
			"warren: can't be listed"},
		"a user": {user("foo-sudoers"), ""},
		"FLT-F44 a User without a name gets no right, but others of the list do": {
			user(""), `User "" can't be listed: its name is empty. Correct it, or remove it from the list`,
		},
		"FLT-F44 a Group without a name gets no right, but others of the list do": {
			group(""), `Group "" can't be listed: its name is empty. Correct it, or remove it from the list`,
		},
		"FLT-F44 a subject of an unknown kind gets no right, but others of the list do": {
			v1alpha1.Subject{Kind: "Robot", Name: "r2"}, `Robot "r2" can't be listed: its kind is not User, Group or ` +
				`ServiceAccount. Correct it, or remove it from the list`,
		},
		"FLT-F44 a ServiceAccount of an impossible name gets no right, but others of the list do": {
			account("ci", "Not_A_Name"), `ServiceAccount "ci/Not_A_Name" can't be listed: its name is not a DNS ` +
				`subdomain. Correct it, or remove it from the list`,
		},
		"FLT-F44 a ServiceAccount without a namespace gets no right, but others of the list do": {
			account("", "robot"), `ServiceAccount "/robot" can't be listed: its namespace is not a DNS label. ` +
				`Correct it, or remove it from the list`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tenant := payments()
			tenant.Spec.Sudoers = []v1alpha1.Subject{user("bob"), c.subject}
			refusals := grants.Refusals(tenant, around(tree))
			got := ""
			for _, r := range refusals {
				got += r.Why
			}
			if got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
			bound := len(grants.For(tenant, grants.Facts{Refused: refusals}).Sudo.Binding.Subjects)
			if want := 2 - len(refusals); bound != want {
				t.Errorf("want %d subjects bound, got %d", want, bound)
			}
		})
	}
}

// A part of case ACC-S28.
func TestAccountsOfTheTreeAreOnNoList(t *testing.T) {
	tenant := payments()
	robot := account("payments", "robot")
	tenant.Spec.Users, tenant.Spec.Managers, tenant.Spec.Sudoers = []v1alpha1.Subject{robot}, []v1alpha1.Subject{robot},
		[]v1alpha1.Subject{robot}
	refusals := grants.Refusals(tenant, around(func(string) bool { return true }))
	if len(refusals) != 3 {
		t.Fatalf("want the account refused in each list, got %v", refusals)
	}
	for key, object := range collect(grants.For(tenant, grants.Facts{Refused: refusals})) {
		if slices.ContainsFunc(grants.Subjects(object), func(s rbacv1.Subject) bool { return s.Name == "robot" }) {
			t.Errorf("%s binds it", key)
		}
	}
}

func TestRememberAccounts(t *testing.T) {
	tenant := payments()
	tenant.Spec.Users = []v1alpha1.Subject{account("ci", "deployer"), user("alice")}
	tenant.Spec.Managers = []v1alpha1.Subject{account("ci", "deployer"), account("n", "robot")}
	tenant.Spec.Sudoers = []v1alpha1.Subject{account("missing", "x"), account("", "nowhere"), account("a/b", "x")} // FLT-F44: not the last two
	uids := map[string]types.UID{"ci": "uid-ci", "n": "uid-n"}
	uidOf := func(namespace string) types.UID { return uids[namespace] }
	inTree := func(namespace string) bool { return namespace == "tree" }
	listed := func(namespace, name string, uid types.UID) v1alpha1.ListedServiceAccount {
		return v1alpha1.ListedServiceAccount{Namespace: namespace, Name: name, NamespaceUID: uid}
	}
	const digestOfCI, digestOfN = "sha256:effd9df7bd7f190c65dd932262ed20e771ef7ac117e24a4a48e95583135f6154",
		"sha256:49434037702eb6e1852929842eea17eeba21eebd6528127001de14d6f328ea8c"
	first := []v1alpha1.ListedServiceAccount{listed("ci", "deployer", digestOfCI), listed("n", "robot", digestOfN), listed("missing", "x", "")}
	if diff := cmp.Diff(first, grants.RememberAccounts(tenant, nil, inTree, uidOf)); diff != "" {
		t.Errorf("what is listed first -want +got:\n%s", diff)
	}

	uids = map[string]types.UID{"ci": "another", "n": "another", "missing": "made"}
	if diff := cmp.Diff(first, grants.RememberAccounts(tenant, first, inTree, uidOf)); diff != "" {
		t.Errorf("what is known stays -want +got:\n%s", diff)
	}
	for _, s := range grants.ServiceAccounts(tenant) {
		if why := grants.DoubtAccount(s, first, uidOf(s.Namespace)); why == "" {
			t.Errorf("%s is taken for the one that was listed", s)
		}
	}
	if why := grants.DoubtAccount(account("ci", "deployer"), first, "uid-ci"); why != "" {
		t.Errorf("ci/deployer is the one that was listed, and yet %q", why)
	}

	// Earlier versions recorded the UID itself and not its digest.
	earlier := []v1alpha1.ListedServiceAccount{listed("ci", "deployer", "uid-ci"), listed("n", "robot", "uid-n"), listed("missing", "x", "")}
	if diff := cmp.Diff(first, grants.RememberAccounts(tenant, earlier, inTree, uidOf)); diff != "" {
		t.Errorf("a plain UID becomes its digest -want +got:\n%s", diff)
	}
	if why := grants.DoubtAccount(account("ci", "deployer"), earlier, "uid-ci"); why != "" {
		t.Errorf("ci/deployer is the one that an earlier version listed, and yet %q", why)
	}
	if why := grants.DoubtAccount(account("ci", "deployer"), earlier, "another"); why == "" {
		t.Error("ci/deployer of another namespace is taken for the one that an earlier version listed")
	}

	everywhere := func(string) bool { return true }
	spoiled := []v1alpha1.ListedServiceAccount{listed("ci", "deployer", ""), listed("n", "robot", ""), listed("missing", "x", "")}
	if diff := cmp.Diff(spoiled, grants.RememberAccounts(tenant, first, everywhere, uidOf)); diff != "" {
		t.Errorf("what came into the tree is spoiled -want +got:\n%s", diff)
	}
	tenant.Spec = v1alpha1.LNamespaceSpec{}
	if got := grants.RememberAccounts(tenant, first, inTree, uidOf); len(got) != 0 {
		t.Errorf("what is on no list is forgotten, got %v", got)
	}
}

func around(inTree func(string) bool) grants.Surroundings {
	return grants.Surroundings{OperatorNamespace: "warren-system", InTree: inTree, Doubt: func(v1alpha1.Subject) string { return "" }}
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
