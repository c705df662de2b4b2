package forest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// The LNamespace of root t limits its tree to three sub-namespaces and depth two. For the tree of root r, the configuration's limits apply.
func limited() *forest.Snapshot {
	three, two, one := int32(3), int32(2), int32(1)
	s := grown(namespace("t", root, annotation(v1alpha1.AnnotationLNamespaceUID, "u")), namespace("a", below("t")), namespace("b", below("a")),
		namespace("c", below("t"), terminating), namespace("r", root), namespace("x", below("r")), namespace("y", below("x")))
	rules := s.Rules()
	rules.Limits = v1alpha1.Limits{SubNamespaces: &one}
	return s.WithRules(rules).WithTenant(&forest.Tenant{Name: "t", UID: "u", Limits: v1alpha1.Limits{SubNamespaces: &three, Depth: &two}})
}

func TestLimits(t *testing.T) {
	s := limited()
	moved := func(name, parent string) []string {
		n := *s.Namespace(name)
		n.Labels = patched(n.Labels, map[string]*string{v1alpha1.LabelParent: &parent})
		return forest.Crowded(s.WithNamespace(&n), s, name)
	}
	const more, higher = ": delete one, or ask a cluster admin to raise the limit", ": choose a place nearer to the root"
	const orRaise = ", or ask a cluster admin to raise the limit"
	cases := map[string]struct{ got, want string }{
		"Full":       {forest.NoRoom(s, "t", 0, 1), "tenant t allows 3 sub-namespaces (3 in use, 1 terminating)" + more},
		"JustFull":   {forest.NoRoom(s, "t", 0, 0), ""},
		"UnderWay":   {forest.NoRoom(s, "t", 1, 1), "tenant t allows 3 sub-namespaces (4 in use, 1 terminating): delete 2" + orRaise},
		"Configured": {forest.NoRoom(s, "r", 0, 1), "tree r allows 1 sub-namespaces (2 in use): delete 2" + orRaise},
		"DeepEnough": {forest.TooDeep(s, "t", 2), ""},
		"TooDeep":    {forest.TooDeep(s, "t", 3), "tenant t: depth 3 exceeds the limit of 2" + higher + orRaise},
		"HIER-M22 no tree may be deeper than 128": {forest.TooDeep(s, "r", 129), "tree r: depth 129 exceeds the limit of 128" + higher},
		"WithinAFull":   {strings.Join(moved("b", "t"), "; "), ""},
		"WithinTooDeep": {strings.Join(moved("c", "b"), "; "), "tenant t: depth 3 exceeds the limit of 2" + higher + orRaise},
		"Into": {strings.Join(moved("x", "a"), "; "),
			"tenant t: depth 3 exceeds the limit of 2" + higher + orRaise +
				"; tenant t allows 3 sub-namespaces (3 in use, 1 terminating), and the move adds 2: delete 2" + orRaise},
		"In line": {forest.NoRoom(s, "t", 0, 4), "tenant t allows 3 sub-namespaces (3 in use, 1 terminating)" + more},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("said %q, want %q", tc.got, tc.want)
			}
		})
	}
}

func TestBudgetOfTheConfigurationHoldsForOtherKeys(t *testing.T) {
	// This is QUOTA-04 in part: both hold, and an LNamespace's own amount comes before the configuration's.
	quantity := resource.MustParse
	s := limited()
	rules := s.Rules()
	rules.Limits.Hard = v1alpha1.Budget{"pods": quantity("5"), "secrets": quantity("7")}
	s = s.WithRules(rules).WithTenant(&forest.Tenant{Name: "t", UID: "u",
		Limits: v1alpha1.Limits{Hard: v1alpha1.Budget{"requests.cpu": quantity("2"), "secrets": quantity("9")}}})
	want := v1alpha1.Budget{"pods": quantity("5"), "requests.cpu": quantity("2"), "secrets": quantity("9")}
	if diff := cmp.Diff(want, s.Limits("t").Hard); diff != "" {
		t.Errorf("tenant: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(rules.Limits.Hard, s.Limits("r").Hard); diff != "" {
		t.Errorf("other tree: -want, +got:\n%s", diff)
	}
}

func TestNotAdoptable(t *testing.T) {
	mark := func(value string) trait { return annotation(v1alpha1.AnnotationAdopt, value) }
	marked, tenant := mark("alice"), &forest.Tenant{Name: "n", UID: "uid-n", Creator: "alice"}
	cases := map[string]struct {
		n    *forest.Namespace
		want string
	}{
		"Marked":     {namespace("n", marked), ""},
		"MarkedRoot": {namespace("n", marked, root), ""},
		"Unmarked": {namespace("n", root), "exists; a cluster admin can name who may adopt it: kubectl annotate namespace n " +
			"tenancy.warren.dev/adopt=alice --overwrite"},
		"ForAnother": {namespace("n", mark("eve")), "exists; a cluster admin can name who may adopt it"},
		"ForTheUID":  {namespace("n", mark("uid-n")), ""},
		"ForAdmins":  {namespace("n", mark("system:masters")), "exists; a cluster admin can name who may adopt it"},
		"ForNobody": {namespace("n", mark("true")), "adopt=true names no user; a cluster admin can name who may adopt the namespace: " +
			"kubectl annotate " +
			"namespace n tenancy.warren.dev/adopt=alice --overwrite"},
		"Terminating": {namespace("n", marked, terminating), "is being terminated"},
		"Protected":   {namespace("n", marked, protected), "is protected or halted"},
		"Halted":      {namespace("n", marked, below("gone")), "is protected or halted"},
		"Template":    {namespace("n", marked, template), "is a sub-namespace or a template"},
		"Sub":         {namespace("n", marked, below("r")), "is a sub-namespace or a template"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := forest.NotAdoptable(grown(namespace("r", root), tc.n), tc.n, tenant)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("NotAdoptable = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNotAdoptableWithoutCreator(t *testing.T) {
	n := namespace("n")
	admins := &forest.Tenant{Name: "n", UID: "uid-n"}
	got := forest.NotAdoptable(grown(n), n, admins)
	if want := "adopt=system:masters --overwrite"; !strings.HasSuffix(got, want) {
		t.Errorf("NotAdoptable = %q, want it to end in %q, because a cluster admin made the LNamespace", got, want)
	}
	for mark, adopts := range map[string]bool{"system:masters": true, "uid-n": true, "alice": false, "true": false} {
		marked := namespace("n", annotation(v1alpha1.AnnotationAdopt, mark))
		if why := forest.NotAdoptable(grown(marked), marked, admins); (why == "") != adopts {
			t.Errorf("ACC-N16 the LNamespace of a cluster admin, and mark %s: %q", mark, why)
		}
	}
	got = forest.NotAdoptable(grown(n), n, &forest.Tenant{Name: "n", UID: "uid-n", Creator: "o'neil; x"})
	if want := `adopt='o'\''neil; x' --overwrite`; !strings.HasSuffix(got, want) {
		t.Errorf("NotAdoptable = %q, want it to end in %q", got, want)
	}
}
