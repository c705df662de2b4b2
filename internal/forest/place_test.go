package forest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestPlaceOfSoundNamespaces(t *testing.T) {
	cases := map[string]struct {
		reason string
		grown  []*forest.Namespace
		of     string
		want   forest.Place
	}{
		"Missing":    {reason: "what does not exist stands nowhere", of: "x"},
		"Plain":      {reason: "a namespace without keys of ours is not in the forest", grown: some(namespace("x")), of: "x"},
		"EmptyValue": {reason: "an empty value counts as absent", grown: some(namespace("x", typed(""), below(""), references(""))), of: "x"},
		"OtherType":  {reason: "another type puts nothing in the forest", grown: some(namespace("x", typed("rooot"))), of: "x"},
		"Root": {
			reason: "a root is the top of its own path", grown: some(namespace("x", root)), of: "x",
			want: forest.Place{Kind: forest.Root, Path: []string{"x"}},
		},
		"Template": {
			reason: "a template is in no tree", grown: some(namespace("x", template)), of: "x",
			want: forest.Place{Kind: forest.Template},
		},
		"Instance": {
			reason: "a reference alone makes an instance", grown: some(namespace("x", references("t"))), of: "x",
			want: forest.Place{Kind: forest.Instance},
		},
		"RootWithTemplate": {
			reason: "a root that references a template stays a root", grown: some(namespace("x", root, references("t"))), of: "x",
			want: forest.Place{Kind: forest.Root, Path: []string{"x"}},
		},
		"SubNamespace": {
			reason: "the path runs from the root down", of: "c",
			grown: some(namespace("c", below("b")), namespace("b", below("a")), namespace("a", root)),
			want:  forest.Place{Kind: forest.SubNamespace, Path: []string{"a", "b", "c"}},
		},
		"TerminatingItself": {
			reason: "a namespace that goes stands where it stood", of: "b",
			grown: some(namespace("a", root), namespace("b", below("a"), terminating)),
			want:  forest.Place{Kind: forest.SubNamespace, Path: []string{"a", "b"}},
		},
		"ProtectedPlain": {
			reason: "a protected namespace without a place is no problem", grown: some(namespace("x", protected), namespace("kube-x")), of: "x",
		},
		"ProtectedOtherType": {
			reason: "nor is one whose type means nothing", grown: some(namespace("x", protected, typed("rooot"))), of: "x",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, grown(tc.grown...).Place(tc.of)); diff != "" {
				t.Errorf("%s\nPlace(%q): -want, +got:\n%s", tc.reason, tc.of, diff)
			}
		})
	}
}

func halt(reason v1alpha1.Reason, message string) forest.Halt {
	return forest.Halt{Reason: reason, Message: message}
}

func some(namespaces ...*forest.Namespace) []*forest.Namespace { return namespaces }

func TestPlaceOfHaltedNamespaces(t *testing.T) {
	invalid := func(message string) forest.Halt { return halt(v1alpha1.ReasonInvalidLabels, message) }
	above := func(message string) forest.Halt { return halt(v1alpha1.ReasonAncestorHalted, message) }
	cycle := halt(v1alpha1.ReasonInCycle, "a -> c -> b -> a")
	ring := some(namespace("a", below("c")), namespace("b", below("a")), namespace("c", below("b")),
		namespace("d", below("c")), namespace("e", below("d")), namespace("self", below("self")))
	cases := map[string]struct {
		reason string
		grown  []*forest.Namespace
		want   map[string]forest.Halt
	}{
		"Cycle": {
			reason: "each member has one text, starting at the smallest name; whoever hangs below has a halted ancestor",
			grown:  ring,
			want: map[string]forest.Halt{
				"a": cycle, "b": cycle, "c": cycle, "d": above("ancestor c is halted (InCycle); resolve that first"),
				"e":    above("ancestor c is halted (InCycle); resolve that first"),
				"self": halt(v1alpha1.ReasonInCycle, "self -> self"),
			},
		},
		"ParentMissing": {
			reason: "those further below name the namespace whose parent is missing",
			grown:  some(namespace("x", below("p")), namespace("y", below("x")), namespace("z", below("y"))),
			want: map[string]forest.Halt{
				"x": halt(v1alpha1.ReasonParentMissing, "parent namespace p does not exist"),
				"y": above("ancestor x is halted (ParentMissing); resolve that first"),
				"z": above("ancestor x is halted (ParentMissing); resolve that first"),
			},
		},
		"ParentTerminating": {
			reason: "what vanishes with a namespace is no deletion to pass on",
			grown:  some(namespace("p", root, terminating), namespace("x", below("p")), namespace("y", below("x"))),
			want: map[string]forest.Halt{
				"p": {}, "x": halt(v1alpha1.ReasonParentTerminating, "parent namespace p is being terminated"),
				"y": above("ancestor x is halted (ParentTerminating); resolve that first"),
			},
		},
		"ParentTerminatingComesFirst": {
			reason: "a terminating parent is reported before that it is no root any more",
			grown:  some(namespace("p", terminating), namespace("x", below("p"))),
			want:   map[string]forest.Halt{"x": halt(v1alpha1.ReasonParentTerminating, "parent namespace p is being terminated")},
		},
		"ParentNotManaged": {
			reason: "a parent is a root or a sub-namespace and nothing else",
			grown: some(namespace("plain"), namespace("tmpl", template), namespace("inst", references("tmpl")), namespace("kube-x", root),
				namespace("a", below("plain")), namespace("b", below("tmpl")), namespace("c", below("inst")), namespace("d", below("kube-x")),
				namespace("e", below("a"))),
			want: map[string]forest.Halt{
				"a":      halt(v1alpha1.ReasonParentNotManaged, "parent namespace plain is neither a root nor a sub-namespace"),
				"b":      halt(v1alpha1.ReasonParentNotManaged, "parent namespace tmpl is neither a root nor a sub-namespace"),
				"c":      halt(v1alpha1.ReasonParentNotManaged, "parent namespace inst is neither a root nor a sub-namespace"),
				"d":      halt(v1alpha1.ReasonParentNotManaged, "parent namespace kube-x is neither a root nor a sub-namespace"),
				"e":      above("ancestor a is halted (ParentNotManaged); resolve that first"),
				"kube-x": halt(v1alpha1.ReasonProtected, "kube-x is a protected namespace"),
			},
		},
		"Protected": {
			reason: "a protected namespace is never in the forest, whatever its labels say",
			grown: some(namespace("a", root), namespace("p", below("a"), protected), namespace("q", references("t"), protected),
				namespace("default", root)),
			want: map[string]forest.Halt{
				"p":       halt(v1alpha1.ReasonProtected, "p is a protected namespace"),
				"q":       halt(v1alpha1.ReasonProtected, "q is a protected namespace"),
				"default": halt(v1alpha1.ReasonProtected, "default is a protected namespace"),
			},
		},
		"InvalidLabels": {
			reason: "labels that contradict each other, or name no namespace, are halted, and so is all below",
			grown: some(namespace("a", root, below("b")), namespace("b", root), namespace("c", template, below("b")),
				namespace("d", below("Not_A_Name")), namespace("e", root, references("no.name")), namespace("f", typed("rooot"), references("t")),
				namespace("g", below("e")), namespace("h", below("g")), namespace("i", below("a"))),
			want: map[string]forest.Halt{
				"a": invalid("a sub-namespace can't be a root or a template"),
				"c": invalid("a sub-namespace can't be a root or a template"),
				"d": invalid("label tenancy.warren.dev/parent: Not_A_Name is not a namespace name"),
				"e": invalid("label tenancy.warren.dev/template: no.name is not a namespace name"),
				"f": invalid("label tenancy.warren.dev/type must be root or template, not rooot"),
				"g": above("ancestor e is halted (InvalidLabels); resolve that first"),
				"h": above("ancestor e is halted (InvalidLabels); resolve that first"),
				"i": above("ancestor a is halted (InvalidLabels); resolve that first"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, got := grown(tc.grown...), map[string]forest.Halt{}
			for name := range tc.want {
				p := s.Place(name)
				got[name] = p.Halt
				if p.Halted() && (p.InTree() || p.Path != nil) {
					t.Errorf("%s is halted and has the path %v", name, p.Path)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nHalt: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlaceCeiling(t *testing.T) {
	s := grown(namespace("n000", root))
	for depth := 1; depth <= forest.MaxDepth+2; depth++ {
		s = s.WithNamespace(namespace(fmt.Sprintf("n%03d", depth), below(fmt.Sprintf("n%03d", depth-1))))
	}
	if p := s.Place("n128"); p.Halted() || p.Depth() != 128 {
		t.Errorf("depth 128 is allowed; got depth %d, %v", p.Depth(), p.Halt)
	}
	for _, name := range []string{"n129", "n130"} {
		want := forest.Place{Kind: forest.SubNamespace, Halt: halt(v1alpha1.ReasonDepthExceeded, "a tree is at most 128 deep")}
		if diff := cmp.Diff(want, s.Place(name)); diff != "" {
			t.Errorf("Place(%q): -want, +got:\n%s", name, diff)
		}
	}
}

func TestInTree(t *testing.T) {
	s := grown(namespace("a", root), namespace("b", below("a")), namespace("c", below("b")), namespace("z", root),
		namespace("lost", below("gone")), namespace("t", template))
	for name, tc := range map[string]struct {
		namespace, root string
		want            bool
	}{
		"RootItself":     {"a", "a", true},
		"Grandchild":     {"c", "a", true},
		"NotTheRoot":     {"c", "b", false},
		"OtherTree":      {"c", "z", false},
		"Halted":         {"lost", "gone", false},
		"HaltedInItself": {"lost", "lost", false},
		"Template":       {"t", "t", false},
		"Missing":        {"nosuch", "nosuch", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.InTree(tc.namespace, tc.root); got != tc.want {
				t.Errorf("InTree(%q, %q) = %t", tc.namespace, tc.root, got)
			}
		})
	}
}

// Placing leaves out only what has no influence on places: in random forests, namespaces have the same places with it as without it.
func TestPlacing(t *testing.T) {
	random, left := rand.New(rand.NewPCG(3, 4)), 0
	for round := range 60 {
		bytes := make([]byte, 400)
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		whole, script := forest.New(rules()), &script{bytes: bytes}
		for !script.done() {
			whole, _ = script.change(whole)
		}
		cut := forest.New(rules())
		for name := range whole.All() {
			n := whole.Namespace(name)
			cut = cut.WithNamespace(n.Placing())
			left += len(n.Labels) + len(n.Annotations) - len(n.Placing().Labels) - len(n.Placing().Annotations)
		}
		for name := range whole.All() {
			if diff := cmp.Diff(whole.Place(name), cut.Place(name)); diff != "" {
				t.Errorf("round %d, %s: -whole, +cut:\n%s", round, name, diff)
			}
		}
	}
	if left == 0 {
		t.Error("nothing was left out")
	}
}

func TestOwns(t *testing.T) {
	s := grown(namespace("a", root, annotation(v1alpha1.AnnotationLNamespaceUID, "u1")), namespace("b", root))
	for name, tc := range map[string]struct {
		root, uid string
		want      bool
	}{
		"ItsOwn":     {"a", "u1", true},
		"NameReused": {"a", "u2", false},
		"NoMark":     {"b", "u1", false},
		"EmptyUID":   {"b", "", false},
		"Missing":    {"c", "u1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Owns(tc.root, tc.uid); got != tc.want {
				t.Errorf("Owns(%q, %q) = %t", tc.root, tc.uid, got)
			}
		})
	}
}

func TestCascadingAllowed(t *testing.T) {
	s := grown(namespace("a", root, cascading), namespace("b", below("a")), namespace("c", below("b"), terminating),
		namespace("z", root), namespace("y", below("z"), cascading),
		namespace("no", below("z"), annotation(v1alpha1.AnnotationCascading, "false")),
		namespace("l1", below("l2")), namespace("l2", below("l1")))
	want := map[string]bool{"a": true, "b": true, "c": true, "z": false, "y": true, "no": false, "l1": false, "nosuch": false}
	got := map[string]bool{}
	for name := range want {
		got[name] = forest.CascadingAllowed(s, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CascadingAllowed: -want, +got:\n%s", diff)
	}
	everywhere := rules()
	everywhere.AllowCascading = true
	if !forest.CascadingAllowed(s.WithRules(everywhere), "z") {
		t.Error("the configuration allows it everywhere")
	}
}
