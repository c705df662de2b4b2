package rolevetting_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// admin returns a ClusterRole admin that aggregates the rights of these contributors.
func admin(contributors ...rolevetting.Contributor) *rolevetting.Role {
	role := &rolevetting.Role{Name: "admin", Contributors: contributors}
	for _, c := range contributors {
		role.Rules = append(role.Rules, c.Rules...)
	}
	return role
}

func contributor(name string, rules ...rbacv1.PolicyRule) rolevetting.Contributor {
	return rolevetting.Contributor{Name: name, Rules: rules}
}

func through(name string, rules ...rbacv1.PolicyRule) rolevetting.Contributor {
	return rolevetting.Contributor{Name: name, Rules: rules, Aggregated: true}
}

func TestCompare(t *testing.T) {
	pods := rule("", words("pods"), words("get"))
	widgets := rule("example.com", words("widgets"), words("get"))
	namespaces := rule("", words("namespaces"), words("update"))
	list := &rolevetting.List{Rules: []rolevetting.Right{
		{Resource: "pods", Verb: "get"}, {Resource: "pods", Verb: "list"},
		{Resource: "configmaps", Verb: "get", ResourceNames: words("a", "b")},
	}}
	cases := map[string]struct {
		role *rolevetting.Role
		want []string // severity and message
	}{
		"nothing is new where less is held": {admin(contributor("basic", pods)), nil},
		"new, from one": {admin(contributor("basic", pods), contributor("x", widgets)),
			words("new get widgets.example.com, from ClusterRole x")},
		"new, from two": {
			admin(contributor("x", widgets), contributor("y", widgets)), words("new get widgets.example.com, from ClusterRoles x, y"),
		},
		"the one that wrote it, not those that passed it on": {
			admin(through("edit", widgets), contributor("x", widgets)), words("new get widgets.example.com, from ClusterRole x"),
		},
		"one that only passes it on": {admin(through("edit", widgets)), words("new get widgets.example.com, from ClusterRole edit")},
		"nobody but the role": {&rolevetting.Role{Name: "own", Rules: []rbacv1.PolicyRule{widgets}},
			words("new get widgets.example.com, from ClusterRole own")},
		"danger comes first and once": {admin(contributor("x", widgets, namespaces)), words("danger update namespaces, from ClusterRole x",
			"new get widgets.example.com, from ClusterRole x")},
		"names that are listed": {admin(contributor("x", rule("", words("configmaps"), words("get"), "b"))), nil},
		"one name more": {admin(contributor("x", rule("", words("configmaps"), words("get"), "b", "c"))),
			words("new get configmaps named c, from ClusterRole x")},
		"every name": {admin(contributor("x", rule("", words("configmaps"), words("get")))),
			words("new get configmaps, from ClusterRole x")},
		"names where every name is listed": {admin(contributor("x", rule("", words("pods"), words("get"), "p"))), nil},
		"who brings every name is told": {admin(contributor("x", rule("", words("configmaps"), words("get"), "c")),
			contributor("y", rule("", words("configmaps"), words("get")))), words("new get configmaps, from ClusterRole y")},
		"who brings another name is not": {admin(contributor("x", rule("", words("configmaps"), words("get"), "a")),
			contributor("y", rule("", words("configmaps"), words("get"), "c"))), words("new get configmaps named c, from ClusterRole y")},
		"ACC-T07 verb * on one kind of an operator is one finding new": {
			admin(contributor("kafkas.kafka.strimzi.io-v1beta2-admin", rule("kafka.strimzi.io", words("kafkas"), words("*")))),
			words("new * kafkas.kafka.strimzi.io, from ClusterRole kafkas.kafka.strimzi.io-v1beta2-admin")},
		"ACC-T07 verb * on a kind of the platform is one finding danger": {
			admin(contributor("x", rule("rbac.authorization.k8s.io", words("rolebindings"), words("*")))),
			words("danger * rolebindings.rbac.authorization.k8s.io, from ClusterRole x")},
		"everything is one dangerous right": {admin(contributor("x", rule("*", words("*"), words("*")))),
			words("danger * *.*, from ClusterRole x")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range rolevetting.Compare(c.role, list) {
				got = append(got, string(f.Severity)+" "+f.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestADangerousRightIsDangerousThoughItIsListed(t *testing.T) {
	role := admin(contributor("x", rule("", words("namespaces"), words("update"))))
	list := &rolevetting.List{Rules: rolevetting.Rights(role.Rules)}
	if got := rolevetting.Compare(role, list); len(got) != 1 || got[0].Severity != rolevetting.Danger {
		t.Errorf("got %+v", got)
	}
}

func TestPending(t *testing.T) {
	role := admin(contributor("a", rule("", words("x"), words("get"))), contributor("b", rule("", words("y"), words("get"), "n")))
	if got := role.Pending(); got != "" {
		t.Errorf("all is there, but got %q", got)
	}
	role.Rules = role.Rules[:1]
	if got := role.Pending(); got != "b" {
		t.Errorf("got %q, want b", got)
	}
	role.Rules = append(role.Rules, rule("", words("y"), words("get"), "m"))
	if got := role.Pending(); got != "b" {
		t.Errorf("another name: got %q, want b", got)
	}
}

func TestJudgeWithoutAListOfTheVersion(t *testing.T) {
	role := admin(contributor("x", rule("", words("namespaces"), words("get"))))
	findings, list, err := lists(t, "1.34", "1.36").Judge(role, version.MajorMinor(1, 37))
	if err != nil {
		t.Fatal(err)
	}
	last := findings[len(findings)-1]
	if last.Severity != rolevetting.New || !strings.HasPrefix(last.Message, "no vetted list for 1.37") || list.Kubernetes != "1.36" {
		t.Errorf("got %+v, compared with %s", last, list.Kubernetes)
	}
	findings, _, err = lists(t, "1.37").Judge(role, version.MajorMinor(1, 37))
	if err != nil || rolevetting.Count(findings, rolevetting.New) != 1 {
		t.Errorf("with a list: %+v, %v", findings, err)
	}
}

func TestJoin(t *testing.T) {
	cases := map[string]struct {
		room int
		want string
	}{
		"all": {20, "one; two; three"}, "some": {8, "one; two; and 1 more"}, "none": {2, "3 findings"},
	}
	for name, c := range cases {
		if got := rolevetting.Join(words("one", "two", "three"), c.room); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
