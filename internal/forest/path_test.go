package forest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestSources(t *testing.T) {
	type want struct {
		Names   []string
		Unknown string
		OK      bool
	}
	tree := some(namespace("r", root, references("t2")), namespace("a", below("r")), namespace("b", below("a")))
	chain := some(namespace("t1", template), namespace("t2", template, references("t1")))
	cases := map[string]struct {
		reason string
		grown  []*forest.Namespace
		of     string
		want   want
	}{
		"Missing":     {reason: "nothing is written to what is not there", of: "x"},
		"NotInForest": {reason: "what the operator wrote there is to go", grown: some(namespace("x")), of: "x", want: want{OK: true}},
		"Protected":   {reason: "the operator writes nothing there", grown: some(namespace("x", protected), namespace("kube-x")), of: "x"},
		"ProtectedByName": {
			reason: "nor where the configuration protects the name", grown: some(namespace("kube-x")), of: "kube-x",
		},
		"Terminating": {reason: "a namespace that goes is left alone", grown: some(namespace("x", root, terminating)), of: "x"},
		"Halted":      {reason: "a halted namespace has no path", grown: some(namespace("x", below("p"))), of: "x"},
		"Root":        {reason: "a root gets nothing from itself", grown: some(namespace("x", root)), of: "x", want: want{OK: true}},
		"TemplatesRankAboveTheRoot": {
			reason: "the chain outermost first, then the ancestors", grown: slices.Concat(tree, chain), of: "b",
			want: want{Names: []string{"t1", "t2", "r", "a"}, OK: true},
		},
		"RootOfTemplates": {
			reason: "the root itself gets what its templates hold", grown: slices.Concat(tree, chain), of: "r",
			want: want{Names: []string{"t1", "t2"}, OK: true},
		},
		"TemplateOfTemplate": {reason: "a template gets its own chain", grown: chain, of: "t2", want: want{Names: []string{"t1"}, OK: true}},
		"Instance": {
			reason: "an instance gets the chain alone", grown: append(chain, namespace("i", references("t2"))), of: "i",
			want: want{Names: []string{"t1", "t2"}, OK: true},
		},
		"TemplateOfASubNamespaceDoesNotCount": {
			reason: "a sub-namespace goes by its parent", of: "a",
			grown: append(chain, namespace("r", root), namespace("a", below("r"), references("t1"))),
			want:  want{Names: []string{"r"}, OK: true},
		},
		"TemplateMissing": {
			reason: "the tree goes on without what can't be judged", grown: tree, of: "b",
			want: want{Names: []string{"r", "a"}, Unknown: "template t2 does not exist", OK: true},
		},
		"TemplateMissingFurtherUp": {
			reason: "one hole makes the chain unknown", grown: append(tree, namespace("t2", template, references("t1"))), of: "b",
			want: want{Names: []string{"r", "a"}, Unknown: "template t1 does not exist", OK: true},
		},
		"TemplateTerminating": {
			reason: "its sources vanish with it, which is no deletion", of: "r",
			grown: some(namespace("r", root, references("t")), namespace("t", template, terminating)),
			want:  want{Unknown: "template t is being terminated", OK: true},
		},
		"NoTemplate": {
			reason: "a plain namespace is no template", of: "i", grown: some(namespace("i", references("p")), namespace("p")),
			want: want{Unknown: "p is not a template namespace", OK: true},
		},
		"ProtectedTemplate": {
			reason: "nor is a protected one", of: "i", grown: some(namespace("i", references("p")), namespace("p", template, protected)),
			want: want{Unknown: "p is not a template namespace", OK: true},
		},
		"TemplateCycle": {
			reason: "a cycle above the instance", of: "i",
			grown: some(namespace("i", references("t1")), namespace("t1", template, references("t2")), namespace("t2", template, references("t1"))),
			want:  want{Unknown: "template t1 is in a cycle", OK: true},
		},
		"TemplateInItsOwnCycle": {
			reason: "a member of the cycle", of: "t2",
			grown: some(namespace("t1", template, references("t2")), namespace("t2", template, references("t1"))),
			want:  want{Unknown: "template t2 is in a cycle", OK: true},
		},
		"TemplateOfItself": {
			reason: "the shortest cycle", of: "t", grown: some(namespace("t", template, references("t"))),
			want: want{Unknown: "template t is in a cycle", OK: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := grown(tc.grown...)
			sources, ok := s.Sources(tc.of)
			if diff := cmp.Diff(tc.want, want{sources.Names, sources.Unknown, ok}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nSources(%q): -want, +got:\n%s", tc.reason, tc.of, diff)
			}
			if got := forest.TemplateProblem(s, tc.of); got != tc.want.Unknown {
				t.Errorf("TemplateProblem(%q) = %q, want %q", tc.of, got, tc.want.Unknown)
			}
			for _, name := range tc.want.Names {
				if !sources.Has(name) {
					t.Errorf("Has(%q) = false", name)
				}
			}
			if sources.Has(tc.of) {
				t.Errorf("Has(%q) = true: a namespace gets nothing from itself", tc.of)
			}
		})
	}
}

func TestFrozen(t *testing.T) {
	s := grown(namespace("r", root, references("t2")), namespace("a", below("r")), namespace("z", root),
		namespace("t2", template, references("t1")), namespace("t1", typed(v1alpha1.TypeTemplate), terminating),
		namespace("t9", template), namespace("i", references("t9")))
	for name, tc := range map[string]struct {
		reason     string
		of, source string
		want       bool
	}{
		"Terminating":   {"the template that goes", "a", "t1", true},
		"SoundInChain":  {"a sound template of a chain that is not", "a", "t2", true},
		"OtherTemplate": {"perhaps the missing part of the chain led to it", "a", "t9", true},
		"Vanished":      {"perhaps it was the missing part of the chain", "a", "gone", true},
		"Ancestor":      {"an ancestor can be judged", "a", "r", false},
		"OtherTree":     {"so can what left the path", "a", "z", false},
		"KnownChain":    {"where the chain is known nothing is frozen", "i", "t1", false},
		"VanishedKnown": {"where the chain is known nothing is frozen", "i", "gone", false},
	} {
		t.Run(name, func(t *testing.T) {
			sources, _ := s.Sources(tc.of)
			if got := sources.Frozen(tc.source); got != tc.want {
				t.Errorf("%s: Frozen(%q) at %s = %t", tc.reason, tc.source, tc.of, got)
			}
		})
	}
}

func TestBelow(t *testing.T) {
	s := grown(namespace("t", template), namespace("t2", template, references("t")), namespace("r", root, references("t2")),
		namespace("a", below("r")), namespace("b", below("a"), terminating), namespace("i", references("t")),
		namespace("l1", below("l3")), namespace("l2", below("l1")), namespace("l3", below("l2")), namespace("tail", below("l2")),
		namespace("orphan", below("gone")))
	for of, want := range map[string][]string{
		"t": {"a", "b", "i", "r", "t2"}, "r": {"a", "b"}, "b": nil, "l1": {"l2", "l3", "tail"}, "tail": nil, "gone": {"orphan"},
	} {
		t.Run(of, func(t *testing.T) {
			if diff := cmp.Diff(want, slices.Sorted(s.Below(of))); diff != "" {
				t.Errorf("Below(%q): -want, +got:\n%s", of, diff)
			}
		})
	}
	for range s.Below("t") {
		break // a caller may stop early
	}
}

func TestDescendants(t *testing.T) {
	s := grown(namespace("t", template), namespace("r", root, references("t")), namespace("a", below("r")),
		namespace("b", below("a"), terminating),
		namespace("c", below("b"), terminating), namespace("l1", below("l2")), namespace("l2", below("l1")))
	type count struct{ all, terminating int }
	want := map[string]count{"r": {3, 2}, "a": {2, 2}, "c": {0, 0}, "t": {0, 0}, "l1": {1, 0}, "nosuch": {0, 0}}
	for name, w := range want {
		t.Run(name, func(t *testing.T) {
			if all, going := s.Descendants(name); all != w.all || going != w.terminating {
				t.Errorf("Descendants(%q) = %d, %d, want %d, %d", name, all, going, w.all, w.terminating)
			}
		})
	}
}

func TestSelectableLabels(t *testing.T) {
	stale := label("old.tree.tenancy.warren.dev/depth", "1")
	s := grown(namespace("r", root), namespace("a", below("r"), stale, label("tier", "web")),
		namespace("lost", below("gone"), placed("gone/lost"), label("tier", "db")), namespace("bare"))
	s = s.WithNamespace(&forest.Namespace{Name: "nil"})
	for name, tc := range map[string]struct {
		reason string
		of     string
		want   map[string]string
	}{
		"FromTheSnapshot": {
			"tree labels as they will be, not as they are written", "a",
			map[string]string{"r.tree.tenancy.warren.dev/depth": "1", "a.tree.tenancy.warren.dev/depth": "0", "tier": "web",
				v1alpha1.LabelParent: "r"},
		},
		"Halted":   {"a halted namespace has no tree labels", "lost", map[string]string{"tier": "db", v1alpha1.LabelParent: "gone"}},
		"NoLabels": {"no labels are no labels", "nil", map[string]string{}},
		"Missing":  {"nor has a missing namespace", "nosuch", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, s.SelectableLabels(tc.of)); diff != "" {
				t.Errorf("%s\nSelectableLabels(%q): -want, +got:\n%s", tc.reason, tc.of, diff)
			}
		})
	}
	if got := s.Namespace("a").Labels["old.tree.tenancy.warren.dev/depth"]; got != "1" {
		t.Error("SelectableLabels changed the snapshot")
	}
}

func TestIsBelow(t *testing.T) {
	f := grown(namespace("acme", root), namespace("a", below("acme")), namespace("a1", below("a")), namespace("lost", below("nowhere")),
		namespace("deep", below("lost")), namespace("x", below("y")), namespace("y", below("x")), namespace("self", below("self")))
	names := append(slices.Collect(f.All()), "nowhere", "")
	for _, ancestor := range names {
		tree := f.Subtree(ancestor)
		for _, name := range names {
			if got, want := f.IsBelow(name, ancestor), slices.Contains(tree, name); got != want {
				t.Errorf("%q is below %q: %t, want %t", name, ancestor, got, want)
			}
		}
	}
}
