package authority_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

func nobody(string) bool { return false }

// to returns the change that adds a request for a parent, where there was none.
func to(parent string) authority.Change { return authority.Change{New: &parent} }

// from returns the change that withdraws the request for a parent.
func from(parent string) authority.Change { return authority.Change{Old: &parent} }

func between(old, parent string) authority.Change {
	return authority.Change{Old: &old, New: &parent}
}

// The cases are the rows of the table in docs/behaviour/hierarchy.md 2.4: which questions a change needs.
func TestQuestions(t *testing.T) {
	cycle := world(namespace("x", below("y")), namespace("y", below("z")), namespace("z", below("x")), namespace("w", below("z")))
	replaced := func(n *forest.Namespace) { n.Annotations[v1alpha1.AnnotationParentUID] = "uid-of-the-one-before" }
	unlimited := func(n ...*forest.Namespace) *forest.Snapshot {
		return world(n...).WithTenant(&forest.Tenant{Name: "payments", UID: "uid-payments"}).
			WithTenant(&forest.Tenant{Name: "shop", UID: "uid-shop"})
	}
	stolen := unlimited(namespace("mid", below("shop")), namespace("y", below("mid"), stood("payments/mid/y"), replaced),
		namespace("z", below("y"), stood("payments/mid/y/z")))
	taken := unlimited(namespace("mid"), namespace("ending", terminating), namespace("y", below("mid"), stood("payments/mid/y"), replaced),
		namespace("z", below("ending"), stood("payments/ending/z"), replaced), namespace("v", below("mid"), stood("payments/v"), replaced))
	orphan := func(n ...*forest.Namespace) *forest.Snapshot {
		return world(append(n, namespace("x", below("gone"), stood("org/gone/x")), namespace("y", below("lost"), stood("vanished/lost/y")),
			namespace("z", below("gone"), stood("payments/gone/z")))...)
	}
	cases := map[string]struct {
		reason string
		s      *forest.Snapshot
		name   string
		change authority.Change
		want   []string
	}{
		"WhereItIs":         {"M01: the label says so already", world(), "svc-1", between("team-b", "team-a"), nil},
		"NothingAsked":      {"M01: no request", world(), "svc-1", authority.Change{}, nil},
		"SameRequest":       {"M01: the same request, though the label says otherwise", world(), "svc-1", between("lab", "lab"), nil},
		"RootStays":         {"M01: a root asks to be a root", world(), "org", to(""), nil},
		"PlainJoins":        {"M02", world(), "solo", to("org"), []string{adm("org"), "all(solo)"}},
		"RootJoins":         {"M03: what is below comes along", world(), "other", to("team-a"), []string{adm("team-a"), "all(other)"}},
		"BecomesRoot":       {"M04", world(), "svc-1", to(""), []string{adm("org")}},
		"TenantLeft":        {"M05: nobody walks out of limits and bill", world(), "pay-x", to(""), []string{adm("payments"), cl}},
		"TenantLeftForTree": {"M05", world(), "pay-x", to("team-a"), []string{adm("payments"), cl, adm("team-a"), "all(pay-x)"}},
		"TenantLeftForPlain": {"M05, M10: a place in no tenant", world(), "pay-x", to("solo"),
			[]string{adm("payments"), cl, adm("solo"), "all(pay-x)"}},
		"TenantLeftForNone": {"M05, M11", world(), "pay-x", to("nosuch"),
			[]string{adm("payments"), cl, "create hierarchy in nosuch", "CreateNamespaces", "all(pay-x)"}},
		"IntoAnotherTenant": {"M25: who may change the tenant that it leaves", world(), "pay-x", to("shop"),
			[]string{"change(payments)", adm("shop"), "all(pay-x)"}},
		"MarkedJoins": {"M26: a cluster admin's mark is enough", world(namespace("m", marked("uid-org"))), "m", to("team-a"),
			[]string{adm("team-a")}},
		"MarkedForTenant": {"M26: by the UID of the LNamespace too", world(namespace("m", marked("uid-shop"))), "m", to("shop"),
			[]string{adm("shop")}},
		"MarkedAsBefore": {"M26: true names nobody", world(namespace("m", marked("true"))), "m", to("shop"),
			[]string{adm("shop"), "all(m)"}},
		"NewTree":           {"M06: a new tree is the cluster admin's to allow", world(), "solo", to(""), []string{cl}},
		"NewTreeOfInstance": {"M06", world(namespace("i", label(v1alpha1.LabelTemplate, "t"))), "i", to(""), []string{cl}},
		"Sideways":          {"M07: the nearest common ancestor of both parents", world(), "svc-1", to("team-b"), []string{adm("org")}},
		"Up":                {"M07", world(), "svc-1", to("org"), []string{adm("org")}},
		"Down":              {"M07", world(namespace("svc-1", below("org"))), "svc-1", to("team-a"), []string{adm("org")}},
		"UpWithinATeam":     {"M08: not the root's business", world(), "job", to("team-a"), []string{adm("team-a")}},
		"IntoAnotherTree":   {"M09", world(), "svc-1", to("lab"), []string{adm("org"), adm("lab"), "all(svc-1)"}},
		"BelowAPlainOne":    {"M10", world(), "svc-1", to("solo"), []string{adm("org"), adm("solo"), "all(svc-1)"}},
		"AwayFromAPlainOne": {"M10: itself is the root to ask", world(namespace("svc-1", below("solo"))), "svc-1", to("lab"),
			[]string{adm("solo"), adm("lab"), "all(svc-1)"}},
		"PlainOneIsNoTree": {"M06 must not be got around by M10", world(namespace("svc-1", below("solo"))), "svc-1", to(""),
			[]string{adm("solo"), cl}},
		"MissingParent": {"M11", world(), "solo", to("nosuch"), []string{"create hierarchy in nosuch", "CreateNamespaces", "all(solo)"}},
		"MissingParentMove": {"M11", world(), "svc-1", to("nosuch"),
			[]string{adm("org"), "create hierarchy in nosuch", "CreateNamespaces", "all(svc-1)"}},
		"OrphanBecomesRoot":   {"M12: a vanished middle frees nobody from the root", orphan(), "x", to(""), []string{adm("org")}},
		"OrphanJoins":         {"M12", orphan(), "x", to("org"), []string{adm("org")}},
		"OrphanJoinsOther":    {"M12", orphan(), "x", to("lab"), []string{adm("org"), adm("lab"), "all(x)"}},
		"OrphanOfATenant":     {"M12 with M05", orphan(), "z", to(""), []string{adm("payments"), cl}},
		"OrphanOfNobody":      {"M12: the root is gone too", orphan(), "y", to("org"), []string{adm("org"), "all(y)"}},
		"OrphanOfNobodyRoot":  {"M12, M06: a tree out of nothing", orphan(), "y", to(""), []string{cl}},
		"BelowAHaltedOne":     {"M14", cycle, "w", to("org"), []string{cl}},
		"OutOfACycle":         {"M15", cycle, "x", to(""), []string{adm("y"), adm("z")}},
		"OutOfACycleIntoTree": {"M15", cycle, "x", to("lab"), []string{adm("y"), adm("z"), adm("lab"), "all(x)"}},
		"StolenName": {"M27: who takes the name of its parent doesn't get it by that", stolen, "y", to("shop"),
			[]string{"change(payments)", adm("shop"), "all(y)"}},
		"StolenNameToRoot":  {"M27, M05", stolen, "y", to(""), []string{adm("payments"), cl}},
		"StolenNameAndBack": {"M27: home again", stolen, "y", to("payments"), []string{adm("payments")}},
		"TakenName": {"M27: a plain namespace takes the name", taken, "y", to("shop"),
			[]string{"change(payments)", adm("shop"), "all(y)"}},
		"TakenNameToNoTenant": {"M27, M05", taken, "y", to("org"), []string{adm("payments"), cl, adm("org"), "all(y)"}},
		"TakenNameToRoot":     {"M27, M05", taken, "y", to(""), []string{adm("payments"), cl}},
		"TakenNameAndBack":    {"M27: home again", taken, "y", to("payments"), []string{adm("payments")}},
		"TakenNameInTermination": {"M27: by a namespace that is being terminated", taken, "z", to("org"),
			[]string{adm("payments"), cl, adm("org"), "all(z)"}},
		"NotTakenButMovedThere": {"M10: its request named the plain one", taken, "v", to("shop"), []string{adm("mid"), adm("shop"), "all(v)"}},
		"BelowAStolenName":      {"M14", stolen, "z", to("shop"), []string{cl}},
		"WaitingInConflict": {"M21: an unrelated SubNamespace changes nothing", world().WithSub(&forest.Sub{Parent: "org", Name: "solo"}),
			"solo", to("org"), []string{adm("org"), "all(solo)"}},
		"Cleared":             {"clearing is leaving", world(), "svc-1", from("team-a"), []string{adm("org")}},
		"ClearedElsewhere":    {"the old request is left as well", world(), "svc-1", from("lab"), []string{adm("org"), adm("other")}},
		"ClearedByARoot":      {"it may be on its way into the tree that it asked for", world(), "org", from("lab"), []string{adm("other")}},
		"ClearedInATenant":    {"M05", world(), "pay-x", from("payments"), []string{adm("payments"), cl}},
		"ClearedWithoutTrace": {"a request for what is gone may have left a plain one halted", world(), "solo", from("nosuch"), []string{cl}},
		"ClearedOnTheWay": {"the tree that was asked for is there to be split", world(namespace("hut", below("solo"))), "hut", from("lab"),
			[]string{adm("solo"), adm("other")}},
		"OrphanOfItself": {"an ancestry that leads nowhere", world(namespace("x", below("gone"), stood("x"))), "x", to("org"),
			[]string{adm("org"), "all(x)"}},
		"BoundStays": {"rule 4: what is bound stays when the field is removed", world(namespace("svc-1", below("team-a"), bound)), "svc-1",
			from("team-a"), nil},
		"BoundConfirms": {"rule 4", world(namespace("svc-1", below("team-a"), bound)), "svc-1", to("team-a"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.change.Namespace = tc.name
			v := authority.Judge(tc.s, tc.change, nobody)
			if len(v.Problems) > 0 || v.Unknown != "" {
				t.Fatalf("%s\nunlawful: %q, unknown: %q", tc.reason, v.Problems, v.Unknown)
			}
			if diff := cmp.Diff(tc.want, written(v.Questions)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// These changes are forbidden to everybody, cluster admins included.
func TestUnlawful(t *testing.T) {
	deep := []*forest.Namespace{namespace("d0", root)}
	for i := range 128 {
		deep = append(deep, namespace(fmt.Sprintf("d%d", i+1), below(fmt.Sprintf("d%d", i))))
	}
	two := int32(2)
	flat := world().WithTenant(&forest.Tenant{Name: "shop", UID: "uid-shop", Limits: v1alpha1.Limits{Depth: &two}})
	cases := map[string]struct {
		reason string
		s      *forest.Snapshot
		name   string
		change authority.Change
		want   []string
	}{
		"BelowItsChild": {"M16", world(), "team-a", to("svc-1"), []string{"would make a cycle: team-a -> svc-1 -> team-a"}},
		"BelowItself":   {"M16", world(), "team-a", to("team-a"), []string{"would make a cycle: team-a -> team-a"}},
		"ATenantsRoot": {"M17", world(), "payments", to("org"),
			[]string{"payments belongs to LNamespace payments and stays a root: leave the parent out"}},
		"Protected": {"M18", world(namespace("p", label(v1alpha1.LabelProtected, v1alpha1.True))), "p", to("org"),
			[]string{"p is a protected namespace"}},
		"BelowProtected": {"M18", world(), "solo", to("kube-public"), []string{"kube-public is a protected namespace"}},
		"BelowATemplate": {"M19", world(namespace("t", label(v1alpha1.LabelType, v1alpha1.TypeTemplate))), "solo", to("t"),
			[]string{"parent namespace t is a template"}},
		"ATemplate": {"it would cease to be one", world(namespace("t", label(v1alpha1.LabelType, v1alpha1.TypeTemplate))), "t",
			to("org"), []string{"namespace t is a template"}},
		"AnInstance": {"M19", world(namespace("i", label(v1alpha1.LabelTemplate, "t"))), "i", to("org"),
			[]string{"a sub-namespace can't reference a template: i references t"}},
		"Going": {"M19", world(namespace("g", terminating)), "g", to("org"), []string{"namespace g is being terminated"}},
		"BelowGoing": {"M19", world(namespace("g", root, terminating)), "solo", to("g"),
			[]string{"parent namespace g is being terminated"}},
		"Bound": {"M20", world(namespace("b", below("org"), bound)), "b", to("other"),
			[]string{"b is bound to SubNamespace org/b, which owns its place: a cluster admin can move it with kubectl warren move"}},
		"BoundToRoot": {"M20", world(namespace("b", below("org"), bound)), "b", to(""),
			[]string{"b is bound to SubNamespace org/b, which owns its place: a cluster admin can move it with kubectl warren move"}},
		"TooMany": {"M22: a subtree counts as a whole", world(), "svc-1", to("shop"),
			[]string{"tenant shop allows 1 sub-namespaces (0 in use), and the move adds 2: ask a cluster admin to raise the limit"}},
		"TooDeep": {"M22: the deepest counts", flat, "team-a", to("shop"),
			[]string{"tenant shop: depth 3 exceeds the limit of 2: choose a place nearer to the root, or ask a cluster admin to raise the limit"}},
		"TooDeepForAnybody": {"M22", world(deep...), "solo", to("d128"),
			[]string{"tree d0: depth 129 exceeds the limit of 128: choose a place nearer to the root"}},
		"MarkedForOthers": {"M26: the mark names another tree", world(namespace("m", marked("uid-org"))), "m", to("shop"),
			[]string{"annotation tenancy.warren.dev/adopt of namespace m does not name the tree of shop; a cluster admin can " +
				"change it: kubectl warren mark m shop"}},
		"Everything": {"all in one answer", world(namespace("b", below("org"), bound, label(v1alpha1.LabelProtected, v1alpha1.True))), "b",
			to("kube-x"), []string{
				"b is a protected namespace", "b is bound to SubNamespace org/b, which owns its place: a cluster admin can move it with kubectl " +
					"warren move", "kube-x is a protected namespace",
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.change.Namespace = tc.name
			v := authority.Judge(tc.s, tc.change, nobody)
			if diff := cmp.Diff(tc.want, v.Problems); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if len(v.Questions) > 0 {
				t.Errorf("nobody is to be asked about what is unlawful: %v", v.Questions)
			}
		})
	}
}

// M13: a parent that exists but is not in the forest must be read before the change can be decided.
func TestUnknown(t *testing.T) {
	s := world(namespace("x", below("gone"), stood("org/gone/x")))
	v := authority.Judge(s, authority.Change{Namespace: "x", New: new(string)}, func(name string) bool { return name == "gone" })
	if v.Unknown != "gone" || len(v.Questions) > 0 {
		t.Errorf("Judge = %+v, want that gone is unknown", v)
	}
}

// all returns the message for a namespace that would join the tree of parent, and in which the user lacks some right.
func all(namespace, parent string) string {
	return fmt.Sprintf("needs every right in namespace %q (it joins another tree), or a cluster admin's mark: kubectl warren mark %s %s",
		namespace, namespace, parent)
}

func TestWords(t *testing.T) {
	s := world(namespace("w", below("z")), namespace("y", below("z")), namespace("z", below("y")))
	cases := map[string]struct {
		name, parent string
		want         []string
	}{
		"Joins":  {"solo", "org", []string{`needs update on hierarchyconfigurations in namespace "org" (proposed parent)`, all("solo", "org")}},
		"Common": {"svc-1", "team-b", []string{`needs update on hierarchyconfigurations in namespace "org" (most recent common ancestor)`}},
		"Leaves": {"pay-x", "shop", []string{`needs update on LNamespace "payments" (namespace "pay-x" leaves tenant payments)`,
			`needs update on hierarchyconfigurations in namespace "shop" (proposed parent)`, all("pay-x", "shop")}},
		"Tenant": {"pay-x", "", []string{`needs update on hierarchyconfigurations in namespace "payments" (root of the current tree)`,
			`needs update on namespaces cluster-wide (namespace "pay-x" leaves tenant payments)`}},
		"Cycle": {"y", "", []string{`needs update on hierarchyconfigurations in namespace "z" (member of the cycle)`}},
		"Missing": {"solo", "nosuch", []string{`needs update on hierarchyconfigurations in namespace "nosuch" (proposed parent)`,
			`needs create on namespaces cluster-wide (proposed parent)`, all("solo", "nosuch")}},
		"Halted": {"w", "org", []string{`ancestor "z" is halted (InCycle); resolve that first`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := authority.Judge(s, authority.Change{Namespace: tc.name, New: &tc.parent}, nobody)
			var got []string
			for _, q := range v.Questions {
				if q.Instead != "" {
					got = append(got, q.Instead)
				} else {
					got = append(got, q.Needs(func(string) bool { return true }))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	s := world(namespace("y", below("z")), namespace("z", below("y")))
	for parent, want := range map[string]string{
		"nosuch": "parent namespace nosuch does not exist: a namespace below it is halted until the parent exists; " +
			"correct the name, or create the parent",
		"solo": "parent namespace solo is not a root or a sub-namespace yet",
		"y":    "parent namespace y is halted (InCycle)",
		"org":  "",
	} {
		v := authority.Judge(s, authority.Change{Namespace: "svc-1", New: &parent}, nobody)
		if got := strings.Join(v.Warnings, "; "); got != want {
			t.Errorf("below %s: warned %q, want %q", parent, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	only := func(keys ...string) func(string) bool {
		return func(key string) bool { return strings.Contains(" "+strings.Join(keys, " ")+" ", " "+key+" ") }
	}
	rules := authority.KeyRules{Inherits: only("team"), Undelegated: only("enforce"), Declares: func(name, key string) bool {
		return key == "cost" && (name == "org" || name == "team-a") || key == "size" && name == "team-a"
	}}
	above := authority.Above(world(), "svc-1")
	if diff := cmp.Diff([]string{"org", "team-a"}, above); diff != "" {
		t.Errorf("Above: -want, +got:\n%s", diff)
	}
	keys := func(overridden ...string) authority.Keys { return authority.Keys{Overridden: overridden} }
	cases := map[string]struct {
		got  []authority.Question
		want []string
	}{
		"Delegated":   {rules.Propagating(authority.Keys{}, authority.Keys{Propagated: []string{"cost", "team"}}), nil},
		"Undelegated": {rules.Propagating(authority.Keys{}, authority.Keys{Propagated: []string{"cost", "enforce"}}), []string{cl}},
		"PropagatedBefore": {rules.Propagating(authority.Keys{Propagated: []string{"enforce"}},
			authority.Keys{Propagated: []string{"enforce"}}), nil},
		"OverridesInherited": {rules.Overriding(keys(), keys("team"), above, false), []string{cl}},
		"OverridesEnforce":   {rules.Overriding(keys(), keys("enforce"), above, false), []string{cl}},
		"OverridesDeclared":  {rules.Overriding(keys(), keys("size"), above, false), []string{adm("team-a")}},
		"TopmostDeclares":    {rules.Overriding(keys(), keys("cost"), above, false), []string{adm("org")}},
		"OverridesAnother":   {rules.Overriding(keys(), keys("any"), above, false), []string{adm("org")}},
		"OverriddenBefore":   {rules.Overriding(keys("size"), keys("size"), above, false), nil},
		"Moves":              {rules.Overriding(keys("size"), keys("size"), above, true), []string{adm("team-a")}},
		"InNoTree":           {rules.Overriding(keys(), keys("size"), nil, false), nil},
		"Requires":           {authority.Requiring("x", []string{"a"}, []string{"a", "b"}), []string{"CreateSubNamespaces"}},
		"RequiresLess":       {authority.Requiring("x", []string{"a", "b"}, []string{"a"}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, written(tc.got)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
