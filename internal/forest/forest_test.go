package forest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/warren-tenancy/warren/internal/forest"
)

func TestChildrenAndInstances(t *testing.T) {
	s := grown(namespace("c", below("p")), namespace("b", below("p"), bound), namespace("a", below("p"), bound, terminating),
		namespace("i", references("p")))
	check := func(what string, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", what, diff)
		}
	}
	check("children of a parent that does not exist, in alphabetical order", s.Children("p"), []string{"a", "b", "c"})
	check("instances, likewise", s.Instances("p"), []string{"i"})
	check("bound children that are not terminating", forest.BoundChildren(s, "p"), []string{"b"})
	moved := s.WithNamespace(namespace("b", below("q"))).WithNamespace(namespace("i", below("q"))).WithoutNamespace("c").
		WithoutNamespace("nosuch")
	check("children of the old parent after moves", moved.Children("p"), []string{"a"})
	check("children of the new one", moved.Children("q"), []string{"b", "i"})
	check("instances after the reference has gone", moved.Instances("p"), nil)
	check("children in the older snapshot", s.Children("p"), []string{"a", "b", "c"})
	check("all namespaces", slices.Sorted(moved.All()), []string{"a", "b", "i"})
	if moved.Len() != 3 || s.Len() != 4 {
		t.Errorf("Len() = %d and %d, want 3 and 4", moved.Len(), s.Len())
	}
	for range s.All() {
		break // a caller may stop early
	}
}

func TestSubs(t *testing.T) {
	sub := func(parent, name string) *forest.Sub { return &forest.Sub{Parent: parent, Name: name} }
	s := grown().WithSub(sub("p", "b")).WithSub(sub("p", "a")).WithSub(sub("q", "a")).WithSub(&forest.Sub{Parent: "p", Name: "a", UID: "u"})
	names := func(subs []*forest.Sub) (names []string) {
		for _, sub := range subs {
			names = append(names, sub.Parent+"/"+sub.Name)
		}
		return names
	}
	cases := map[string]struct{ got, want []string }{
		"InParent":     {names(s.Subs("p")), []string{"p/a", "p/b"}},
		"Named":        {names(s.SubsNamed("a")), []string{"p/a", "q/a"}},
		"NamedNowhere": {names(s.SubsNamed("z")), nil},
		"AfterRemoval": {names(s.WithoutSub("p", "a").SubsNamed("a")), []string{"q/a"}},
		"ParentsOther": {names(s.WithoutSub("p", "a").Subs("p")), []string{"p/b"}},
		"LastOfAName":  {names(s.WithoutSub("p", "b").SubsNamed("b")), nil},
		"NotThere":     {names(s.WithoutSub("p", "z").Subs("p")), []string{"p/a", "p/b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
	if got := s.Sub("p", "a"); got == nil || got.UID != "u" {
		t.Errorf("Sub(p, a) = %v, want the one put last", got)
	}
	if s.Sub("q", "b") != nil {
		t.Error("Sub(q, b) exists in p alone")
	}
}

func TestTenants(t *testing.T) {
	s := grown().WithTenant(&forest.Tenant{Name: "x", UID: "u"})
	if s.Tenant("x") == nil || s.WithoutTenant("x").Tenant("x") != nil || s.Tenant("y") != nil {
		t.Error("a tenant is known from WithTenant to WithoutTenant")
	}
}

func TestWithRules(t *testing.T) {
	s := grown(namespace("kube-x", root))
	open := s.WithRules(forest.Rules{})
	if s.Place("kube-x").InTree() || !open.Place("kube-x").InTree() {
		t.Error("each snapshot judges by its own rules")
	}
	if open.Rules().ProtectedName != nil || s.Rules().ProtectedName == nil {
		t.Error("Rules are those that the snapshot judges by")
	}
}

func TestAffected(t *testing.T) {
	tree := grown(namespace("t", template, label("team", "base")), namespace("r", root, references("t"), placed("r"), label("team", "base"),
		inherited("team")),
		namespace("a", below("r"), placed("r/a")), namespace("b", below("a")), namespace("c", below("r")),
		namespace("z", root), namespace("y", below("z")), namespace("x", below("y")), namespace("q", root), namespace("p"),
		namespace("i", references("p")))
	with := func(n *forest.Namespace) *forest.Snapshot { return tree.WithNamespace(n) }
	cases := map[string]struct {
		reason string
		now    *forest.Snapshot
		name   string
		want   []string
	}{
		"OwnWrite": {
			"the operator's own keys concern only where they stand",
			with(namespace("a", below("r"), placed("r/a"), label("team", "base"), inherited("team"))), "a",
			[]string{"a"},
		},
		"Unrelated": {"nor do keys that don't flow", with(namespace("a", below("r"), label("tier", "web"))), "a", []string{"a"}},
		"Shadowed":  {"nor a value that the one from above replaces", with(namespace("a", below("r"), label("team", "x"))), "a", []string{"a"}},
		"Flowing":   {"a key that flows concerns all below", with(namespace("a", below("r"), label("env", "x"))), "a", []string{"a", "b"}},
		"Moved":     {"a move concerns the whole subtree", with(namespace("a", below("z"))), "a", []string{"a", "b"}},
		"Terminating": {"so does the end of a namespace", with(namespace("r", root, references("t"), terminating)), "r",
			[]string{"a", "b", "c", "r"}},
		"TerminatingNoKeys": {
			"even where nothing flows", with(namespace("z", root, terminating)), "z", []string{"x", "y", "z"},
		},
		"Chained": {
			"another template above a template concerns the whole tree, though no key flows",
			with(namespace("t", template, references("u"), label("team", "base"))), "t",
			[]string{"a", "b", "c", "r", "t"},
		},
		"MovedNoKeys": {"a path is enough", with(namespace("y", below("q"))), "y", []string{"x", "y"}},
		"Replaced": {
			"another namespace of that name is another place",
			with(func() *forest.Namespace { n := namespace("z", root); n.UID = "new"; return n }()), "z",
			[]string{"x", "y", "z"},
		},
		"Bound":            {"who owns a namespace's life is its own affair", with(namespace("y", below("z"), bound)), "y", []string{"y"}},
		"BecomesATemplate": {"what references it can be judged now", with(namespace("p", template)), "p", []string{"i", "p"}},
		"Gone":             {"or that it is gone", tree.WithoutNamespace("a"), "a", []string{"a", "b"}},
		"Template": {"what flows from a template concerns all that reference it, and their trees",
			with(namespace("t", template, label("team", "new"))), "t", []string{"a", "b", "c", "r", "t"}},
		"Sub": {"a SubNamespace that sets nothing concerns its namespace", tree.WithSub(&forest.Sub{Parent: "r", Name: "a"}),
			"a", []string{"a"}},
		"New":           {"a new leaf concerns itself", with(namespace("n", below("r"))), "n", []string{"n"}},
		"NowReferenced": {"another reference concerns the tree", with(namespace("r", root)), "r", []string{"a", "b", "c", "r"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := forest.AffectedNamespaces(tc.now, tree, tc.name)
			if slices.Sort(got); !slices.Equal(got, tc.want) {
				t.Errorf("%s\nAffected(%q) = %v, want %v", tc.reason, tc.name, got, tc.want)
			}
		})
	}
}
