package rights

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

func subject(text string) rbacv1.Subject {
	kind, name, _ := strings.Cut(text, " ")
	s := rbacv1.Subject{Kind: kind, Name: name}
	if kind == rbacv1.ServiceAccountKind {
		s.Namespace, s.Name, _ = strings.Cut(name, "/")
	}
	return s
}

func bind(namespace, name, role string, rules []rbacv1.PolicyRule, subjects ...string) binding {
	b := binding{Ref: Ref{kindRoleBinding, namespace, name}, role: Ref{Kind: kindClusterRole, Name: role}, rules: rules}
	if namespace == "" {
		b.Kind = kindClusterRoleBinding
	}
	for _, text := range subjects {
		b.subjects = append(b.subjects, subject(text))
	}
	return b
}

var everything = []rbacv1.PolicyRule{rule([]string{"*"}, []string{"*"}, []string{"*"})}

func sudoRule(group string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule([]string{""}, []string{"groups"}, []string{"impersonate"}, group)}
}

func editRule(tenant string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{rule([]string{"tenancy.warren.dev"}, []string{"lnamespaces"}, []string{"get", "update", "patch"}, tenant)}
}

// payments returns the tenant of the specification, with bindings that may exist in and around its tree.
func payments() *survey {
	users := []string{"User alice", "Group pay-devs"}
	sudoers := []string{"User bob", "Group pay-oncall", "ServiceAccount ci/deployer"}
	s := &survey{
		tenant: "payments", tree: []string{"payments", "pay-web"}, listed: true, wideRead: true,
		namespaced: map[schema.GroupResource]bool{
			{Resource: "pods"}: true, {Resource: "secrets"}: true, {Resource: "nodes"}: false, {Resource: "namespaces"}: false,
		},
		here: []binding{
			bind("payments", "warren:users", "admin", everything, users...),
			bind("payments", "warren:sudoers", "cluster-admin", everything, "Group payments-sudoers"),
			bind("pay-web", "warren:users", "admin", everything, users...),
			bind("pay-web", "warren:sudoers", "cluster-admin", everything, "Group payments-sudoers"),
			bind("pay-web", "erin", "view", nil, "User erin"),
		},
		wide: []binding{
			bind("", "warren:sudo:payments", "warren:sudo:payments", sudoRule("payments-sudoers"), sudoers...),
			bind("", "warren:edit:payments", "warren:edit:payments", editRule("payments"), "User mia", "Group payments-sudoers"),
			bind("", "warren:self:bob", "warren:self:bob", nil, "User bob"),
			bind("", "warren:sudo:shop", "warren:sudo:shop", sudoRule("shop-sudoers"), "User sue"),
			bind("", "warren:edit:shop", "warren:edit:shop", editRule("shop"), "User sam"),
			bind("", "cluster-admin", "cluster-admin", everything, "Group system:masters"),
			bind("", "nodes", "nodes", []rbacv1.PolicyRule{rule([]string{""}, []string{"nodes"}, []string{"*"})}, "User nora"),
			bind("", "logs", "logs", []rbacv1.PolicyRule{rule([]string{""}, []string{"pods/log"}, []string{"get"})}, "User lou"),
			bind("", "deleter", "deleter", []rbacv1.PolicyRule{rule([]string{""}, []string{"namespaces"}, []string{"delete"}, "pay-web")},
				"User del"),
			bind("", "other", "other", []rbacv1.PolicyRule{rule([]string{""}, []string{"namespaces"}, []string{"delete"}, "shop")}, "User oleg"),
			bind("", "anyone", "anyone", []rbacv1.PolicyRule{rule([]string{""}, []string{"users"}, []string{"impersonate"})}, "User imp"),
			bind("", "shift", "shift", []rbacv1.PolicyRule{rule([]string{"user.openshift.io"}, []string{"users"}, []string{"*"})}, "User shane"),
			bind("", "dns", "dns", []rbacv1.PolicyRule{rule([]string{""}, []string{"pods"}, []string{"list"})}, "ServiceAccount kube-system/dns"),
		},
		accounts: []binding{
			bind("ci", "builders", "build", []rbacv1.PolicyRule{rule([]string{"batch"}, []string{"jobs"}, []string{"create"})}, "Group builders"),
			bind("ci", "minter", "mint", []rbacv1.PolicyRule{rule([]string{""}, []string{"serviceaccounts/token"}, []string{"create"}, "deployer")},
				"User mint"),
			bind("ci", "other-minter", "mint-other", []rbacv1.PolicyRule{rule([]string{""}, []string{"serviceaccounts/token"}, []string{"create"},
				"other")}, "User otis"),
			bind("ci", "readers", "read", []rbacv1.PolicyRule{rule([]string{""}, []string{"pods"}, []string{"get"})}, "User rita"),
		},
	}
	s.spec.Users = []v1alpha1.Subject{{Kind: "User", Name: "alice"}, {Kind: "Group", Name: "pay-devs"}}
	s.spec.Managers = []v1alpha1.Subject{{Kind: "User", Name: "mia"}}
	s.spec.Sudoers = []v1alpha1.Subject{{Kind: "User", Name: "bob"}, {Kind: "Group", Name: "pay-oncall"},
		{Kind: "ServiceAccount", Namespace: "ci", Name: "deployer"}}
	return s
}

var gap = regexp.MustCompile(` {3,}`)

// drawn returns the report on a survey as text, without the padding of its columns.
func drawn(t *testing.T, s *survey) string {
	t.Helper()
	s.sudoers = s.boundSudoers()
	report := &Access{Tenant: s.tenant, Namespaces: s.tree}
	for _, e := range s.sortedEntries() {
		report.Subjects = append(report.Subjects, *e)
	}
	var out bytes.Buffer
	if err := (accessTable{report}).Write(&out); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, gap.ReplaceAllString(strings.TrimRight(line, " \n"), " | "))
	}
	return strings.Join(lines, "\n")
}

func TestEntries(t *testing.T) {
	const sudo = "cluster-admin, warren:edit:payments | all | " +
		"Group payments-sudoers: RoleBinding warren:sudoers (ClusterRole cluster-admin), " +
		"Group payments-sudoers: ClusterRoleBinding warren:edit:payments (ClusterRole warren:edit:payments)"
	const want = `KIND | NAME | LISTS | WITHOUT-SUDO | WITH-SUDO | NAMESPACES | VIA
User | alice | users | admin | <none> | all | RoleBinding warren:users (ClusterRole admin)
Group | pay-devs | users | admin | <none> | all | RoleBinding warren:users (ClusterRole admin)
User | mia | managers | warren:edit:payments | <none> | <none> | ClusterRoleBinding warren:edit:payments (ClusterRole warren:edit:payments)
User | bob | sudoers | <none> | ` + sudo + `
Group | pay-oncall | sudoers | <none> | ` + sudo + `
ServiceAccount | ci/deployer | sudoers | <none> | ` + sudo + `
User | erin | <none> | view | <none> | pay-web | RoleBinding erin (ClusterRole view)
Group | system:masters | <none> | cluster-admin | cluster-admin, warren:edit:payments | all | ` +
		`ClusterRoleBinding cluster-admin (ClusterRole cluster-admin), ServiceAccount ci/deployer: ClusterRoleBinding cluster-admin ` +
		`(ClusterRole cluster-admin)
User | lou | <none> | logs | <none> | all | ClusterRoleBinding logs (ClusterRole logs)
User | del | <none> | deleter | <none> | pay-web | ClusterRoleBinding deleter (ClusterRole deleter)
User | imp | <none> | anyone | <none> | <none> | ClusterRoleBinding anyone (ClusterRole anyone)
ServiceAccount | kube-system/dns | <none> | dns | <none> | all | ClusterRoleBinding dns (ClusterRole dns)
Group | builders | <none> | <none> | cluster-admin, warren:edit:payments | all | ServiceAccount ci/deployer: RoleBinding builders ` +
		`(ClusterRole build)
User | mint | <none> | <none> | cluster-admin, warren:edit:payments | all | ServiceAccount ci/deployer: RoleBinding minter ` +
		`(ClusterRole mint)`
	if diff := cmp.Diff(want, drawn(t, payments())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSudoersNobodyBound(t *testing.T) {
	s := payments()
	s.wide[0].subjects = s.wide[0].subjects[:1] // the operator refused the listed service account, and has withdrawn the group
	got := drawn(t, s)
	for _, line := range []string{"Group | pay-oncall | sudoers | <none> | <none> | <none> | <none>",
		"ServiceAccount | ci/deployer | sudoers | <none> | <none> | <none> | <none>"} {
		if !strings.Contains(got, line) {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, "mint") {
		t.Errorf("a service account that can't sudo has holders:\n%s", got)
	}
}

func TestWhatAUserSees(t *testing.T) {
	s := payments()
	s.spec, s.listed, s.wide, s.wideRead, s.accounts = v1alpha1.LNamespaceSpec{}, false, nil, false, nil
	const want = `KIND | NAME | LISTS | WITHOUT-SUDO | WITH-SUDO | NAMESPACES | VIA
User | alice | users | admin | <none> | all | RoleBinding warren:users (ClusterRole admin)
Group | pay-devs | users | admin | <none> | all | RoleBinding warren:users (ClusterRole admin)
Group | payments-sudoers | <none> | <none> | cluster-admin | all | RoleBinding warren:sudoers (ClusterRole cluster-admin)
User | erin | <none> | view | <none> | pay-web | RoleBinding erin (ClusterRole view)`
	if diff := cmp.Diff(want, drawn(t, s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConstrainedSudoIsNoRightOfItsOwn(t *testing.T) {
	s := payments()
	s.here = append(s.here, bind("payments", "warren:sudo", grants.ImpersonateOnRole, nil, "User bob"))
	if diff := cmp.Diff(drawn(t, payments()), drawn(t, s)); diff != "" {
		t.Errorf("-without +with:\n%s", diff)
	}
}

func TestPartOfKubernetes(t *testing.T) {
	for text, want := range map[string]bool{
		"ServiceAccount kube-system/namespace-controller": true, "User system:kube-scheduler": true, "ServiceAccount ci/deployer": false,
		"Group system:masters": false, "Group system:unauthenticated": false, "User bob": false, "User system:serviceaccount:ci:deployer": false,
	} {
		if got := partOfKubernetes(subjectOfList(subject(text))); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// REQ-A1: who may ask for sudo has it on request, in place of the service account that they would impersonate.
func TestSudoOnRequest(t *testing.T) {
	s := payments()
	temporary := "ServiceAccount warren-sudo/payments"
	s.here = []binding{
		bind("payments", "warren:sudo-requests", "cluster-admin", everything, temporary),
		bind("pay-web", "warren:sudo-requests", "cluster-admin", everything, temporary),
	}
	s.wide, s.spec = nil, v1alpha1.LNamespaceSpec{SudoRequests: &v1alpha1.SudoRequests{
		Eligible: []v1alpha1.Subject{{Kind: "User", Name: "carol"}}}}
	const way = " | <none> | cluster-admin (on-request) | all | ServiceAccount warren-sudo/payments: RoleBinding warren:sudo-requests " +
		"(ClusterRole cluster-admin)"
	t.Run("REQ-A1 kubectl warren access shows sudo on request for those who are eligible", func(t *testing.T) {
		if got := drawn(t, s); !strings.HasSuffix(got, "\nUser | carol | sudoRequests.eligible"+way) || strings.Count(got, "\n") != 1 {
			t.Error(got)
		}
	})
	t.Run("REQ-A1 if the LNamespace can't be read, the RoleBinding of the requesters tells who is eligible", func(t *testing.T) {
		s.spec = v1alpha1.LNamespaceSpec{}
		s.here = append(s.here, bind("payments", grants.RequestersBinding, "warren:sudo-requester", nil, "Group pay-oncall"))
		if got := drawn(t, s); !strings.Contains(got, "Group | pay-oncall | <none> | warren:sudo-requester | cluster-admin (on-request) | all") {
			t.Error(got)
		}
	})
	t.Run("nobody can be read", func(t *testing.T) {
		s.here = s.here[:2]
		if got := drawn(t, s); !strings.Contains(got, "ServiceAccount | warren-sudo/payments | <none> | <none> | cluster-admin (on-request)") {
			t.Error(got)
		}
	})
	t.Run("of another tenant", func(t *testing.T) {
		s.here = []binding{bind("payments", "x", "view", everything, "ServiceAccount warren-sudo/shop")}
		if got := drawn(t, s); !strings.Contains(got, "ServiceAccount | warren-sudo/shop | <none> | view | <none>") {
			t.Error(got)
		}
	})
}
