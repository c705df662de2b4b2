package hierarchy

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

func named(name string, labels ...string) *forest.Namespace {
	n := &forest.Namespace{Name: name, UID: "uid-" + name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

func root(name string) *forest.Namespace { return named(name, v1alpha1.LabelType, v1alpha1.TypeRoot) }

func below(name, parent string, labels ...string) *forest.Namespace {
	return named(name, append(labels, v1alpha1.LabelParent, parent)...)
}

func bound(name, parent string) *forest.Namespace {
	return below(name, parent, v1alpha1.LabelBound, v1alpha1.True)
}

// applied returns n with the annotation by which the operator records that it has applied the parent of the HierarchyConfiguration.
func applied(n *forest.Namespace, parent string) *forest.Namespace {
	n.Annotations[v1alpha1.AnnotationAppliedParent] = "uid-h:" + parent
	return n
}

func ancestry(n *forest.Namespace, path string) *forest.Namespace {
	n.Annotations[v1alpha1.AnnotationAncestry] = path
	return n
}

func going(n *forest.Namespace) *forest.Namespace {
	n.Terminating = true
	return n
}

func grown(things ...any) *forest.Snapshot {
	limit := int32(2)
	s := forest.New(forest.Rules{Limits: v1alpha1.Limits{SubNamespaces: &limit}})
	for _, thing := range things {
		switch thing := thing.(type) {
		case *forest.Namespace:
			s = s.WithNamespace(thing)
		case *forest.Hierarchy:
			thing.UID = "uid-h"
			s = s.WithHierarchy(thing)
		case *forest.Sub:
			s = s.WithSub(thing)
		}
	}
	return s
}

func asking(namespace, parent string) *forest.Hierarchy {
	return &forest.Hierarchy{Namespace: namespace, Parent: &parent}
}

func requiring(namespace string, names ...string) *forest.Hierarchy {
	return &forest.Hierarchy{Namespace: namespace, Required: names}
}

func TestFindings(t *testing.T) {
	cases := map[string]struct {
		reason   string
		s        *forest.Snapshot
		rejected string
		want     []string // conditions of namespace x: Ready first, then those that report a problem
	}{
		"Plain":   {"", grown(named("x")), "", []string{"True NotInForest: x is in no tree"}},
		"Settled": {"", grown(root("x")), "", []string{"True Settled: x has everything that its ancestors and this object ask for"}},
		"Missing": {"", grown(below("x", "p")), "", []string{"False ParentMissing: parent namespace p does not exist", "Halted",
			"MetadataSynced Unknown"}},
		"Refused": {
			"it stays where it is", grown(root("x"), below("y", "x"), asking("x", "y")), "",
			[]string{"False WouldCycle: would make a cycle: x -> y -> x", "ParentApplied"},
		},
		"Overruled": {
			"", grown(root("p"), root("q"), applied(below("x", "q"), "p"), asking("x", "p")), "",
			[]string{`False LabelChanged: x was moved from "p" to "q" by its label; set spec.parent to "q", or delete this object`, "ParentApplied"},
		},
		"OverruledOut": {
			"the label parent was removed", grown(root("p"), applied(named("x"), "p"), asking("x", "p")), "",
			[]string{`False LabelChanged: x was moved from "p" to "" by its label; clear spec.parent, or delete this object`, "ParentApplied"},
		},
		"OverruledByRoot": {
			"the label type=root replaced the label parent", grown(root("p"), applied(root("x"), "p"), asking("x", "p")), "",
			[]string{`False LabelChanged: x was moved from "p" to "" by its label; set spec.parent to "", or delete this object`, "ParentApplied"},
		},
		"OverruledByTemplate": {
			"the label type=template replaced the label parent",
			grown(root("p"), applied(named("x", v1alpha1.LabelType, v1alpha1.TypeTemplate), "p"), asking("x", "p")), "",
			[]string{`False LabelChanged: x was moved from "p" to "" by its label; delete this object`, "ParentApplied"},
		},
		"OverruledRoot": {
			"a wish to be a root is one too", grown(root("q"), applied(below("x", "q"), ""), asking("x", "")), "",
			[]string{`False LabelChanged: x was moved from "" to "q" by its label; set spec.parent to "q", or delete this object`, "ParentApplied"},
		},
		"Pending": {"", grown(root("p"), named("x"), asking("x", "p")), "",
			[]string{"False Pending: the namespace is about to be placed below the parent that spec.parent names", "ParentApplied Unknown"}},
		"PendingRoot": {"spec.parent may name no parent", grown(root("p"), below("x", "p"), asking("x", "")), "",
			[]string{"False Pending: the namespace is about to become a root, because spec.parent names no parent", "ParentApplied Unknown"}},
		"Applied": {"", grown(root("p"), applied(below("x", "p"), "p"), asking("x", "p")), "",
			[]string{"True Settled: x has everything that its ancestors and this object ask for"}},
		"Rejected": {"", grown(root("x")), "admission webhook says no", []string{"False MetadataRejected: admission webhook says no",
			"MetadataSynced"}},
		"SUB-K9 a bound namespace without its SubNamespace, as after a restore, is SubNamespaceMissing; the message has the command that " +
			"creates it": {
			"as after a restore of the namespace alone", grown(root("p"), bound("x", "p")), "",
			[]string{"False SubNamespaceMissing: the namespace is bound, but its SubNamespace p/x is missing: kubectl warren create x -n p " +
				"puts it back", "MetadataSynced"}},
		"SUB-K9 a bound namespace that has its SubNamespace is Settled": {
			"", grown(root("p"), bound("x", "p"), &forest.Sub{Parent: "p", Name: "x"}), "",
			[]string{"True Settled: x has everything that its ancestors and this object ask for"}},
		"SUB-K9 a bound namespace that is being deleted is not SubNamespaceMissing": {"", grown(root("p"), going(bound("x", "p"))), "",
			[]string{"True Settled: x has everything that its ancestors and this object ask for"}},
		"Template": {
			"", grown(named("x", v1alpha1.LabelType, v1alpha1.TypeRoot, v1alpha1.LabelTemplate, "t")), "",
			[]string{"False TemplateMissing: template t does not exist; what was inherited from the template stays", "MetadataSynced"},
		},
		"Children": {
			"", grown(root("x"), bound("c", "x"), &forest.Sub{Parent: "x", Name: "c"}, requiring("x", "c")), "",
			[]string{"True Settled: x has everything that its ancestors and this object ask for"},
		},
		"ChildConflict": {
			"a conflict is told before what merely waits", grown(root("x"), named("b"), requiring("x", "a", "b")), "",
			[]string{"False ChildConflict: namespace b exists outside of this tree: choose another name; if that namespace belongs here, a " +
				"cluster admin can bind it: kubectl warren graft b x; the operator tries again only when this SubNamespace is created again " +
				"or its spec changes, while the name is free", "ChildrenReady"},
		},
		"ChildAwaited": {
			"who requires it would get a namespace of others", grown(root("x"), below("y", "c"), requiring("x", "c")), "",
			[]string{`False ChildConflict: other namespaces wait for a parent named "c": choose another name for the required child, or have a ` +
				`cluster admin create the SubNamespace`, "ChildrenReady"},
		},
		"ChildBack": {
			"what stood below it may come back to it", grown(root("x"), ancestry(below("y", "c"), "x/c/y"), requiring("x", "c")), "",
			[]string{"False ChildPending: SubNamespace x/c is being created", "ChildrenReady"},
		},
		"ChildGoing": {
			"", grown(root("x"), going(bound("c", "x")), requiring("x", "c")), "",
			[]string{"False ChildPending: namespace c is being terminated", "ChildrenReady"},
		},
		"ChildLimits": {
			"", grown(root("x"), bound("a", "x"), &forest.Sub{Parent: "x", Name: "a"}, bound("b", "x"), &forest.Sub{Parent: "x", Name: "b"},
				requiring("x", "a", "b", "c")), "",
			[]string{"False LimitExceeded: c: tree x allows 2 sub-namespaces (2 in use): delete one, or ask a cluster admin to raise the limit",
				"ChildrenReady"},
		},
		"ChildrenOfNoTree": {
			"", grown(named("x"), requiring("x", "c")), "",
			[]string{"False NotInForest: x is in no tree, or is halted, so its required children can't be created", "ChildrenReady"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := listFindings(tc.s, "x", tc.rejected, "")
			r := readyCondition(tc.s, "x", all)
			got := []string{string(r.status) + " " + string(r.reason) + ": " + r.message}
			for _, f := range all {
				switch {
				case f.isBad():
					got = append(got, string(f.kind))
				case f.status == "Unknown":
					got = append(got, string(f.kind)+" Unknown")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nfindings: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// fakeCopies are the troubles that copies report.
type fakeCopies []copies.Trouble

func (fakeCopies) Known(string) bool { return true }

func (fakeCopies) UnobservedIn(string) []string { return nil }

func (fakeCopies) MayNotObserve(string) bool { return false }

func (f fakeCopies) Troubles(namespaces iter.Seq[string]) []copies.Trouble {
	asked := slices.Collect(namespaces)
	var all []copies.Trouble
	for _, t := range f {
		if slices.Contains(asked, t.Slot.Namespace) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, copies.Trouble.Compare)
	return all
}

func trouble(namespace, name, from string, reason v1alpha1.Reason) copies.Trouble {
	slot := copies.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: namespace, Name: name}
	return copies.Trouble{Slot: slot, Reason: reason, From: from, Text: "it is so"}
}

func TestPropagated(t *testing.T) {
	s := grown(named("t", v1alpha1.LabelType, v1alpha1.TypeTemplate), named("org", v1alpha1.LabelType, v1alpha1.TypeRoot,
		v1alpha1.LabelTemplate, "t"),
		below("a", "org"), below("b", "a"))
	many := fakeCopies{}
	for name := range strings.FieldsSeq("k j i h g f e d c b a") {
		many = append(many, trouble("a", name, "org", v1alpha1.ReasonConflict))
	}
	cases := map[string]struct {
		reason, name string
		copies       fakeCopies
		want         string
	}{
		"InSync": {"", "org", nil, "True InSync: no problem is reported for the sources and copies in this namespace, and no conflict for " +
			"the copies below"},
		"Own": {"", "a", fakeCopies{trouble("a", "db", "org", v1alpha1.ReasonConflict)},
			`False Conflict: Secret "db" from "org": it is so`},
		"Above": {"", "org", fakeCopies{trouble("b", "db", "a", v1alpha1.ReasonConflict)}, `False DescendantConflict: b: Secret "db"`},
		"Below": {"what is above is not one's own", "b", fakeCopies{trouble("a", "db", "org", v1alpha1.ReasonConflict)},
			"True InSync: no problem is reported for the sources and copies in this namespace, and no conflict for the copies below"},
		"Rejected": {"only conflicts are told above", "org", fakeCopies{trouble("b", "db", "a", v1alpha1.ReasonRejected)},
			"True InSync: no problem is reported for the sources and copies in this namespace, and no conflict for the copies below"},
		"Worst": {"", "a", fakeCopies{trouble("a", "x", "org", v1alpha1.ReasonRejected),
			trouble("a", "y", "org", v1alpha1.ReasonConflict)}, `False Conflict: Secret "y" from "org": it is so`},
		"SEC-W35 if a template's source cannot be copied in a tree that references it, the template's condition names the source, not the " +
			"namespace": {"its own sources alone, and not where", "t", fakeCopies{trouble("a", "x", "org", v1alpha1.ReasonConflict),
			trouble("b", "y", "t", v1alpha1.ReasonConflict)},
			`False DescendantConflict: Secret "y" can't be copied into a namespace that this template reaches: an object of that name is there`},
		"Many": {
			"ten are named", "org", many,
			`False DescendantConflict: a: Secret "a"; a: Secret "b"; a: Secret "c"; a: Secret "d"; a: Secret "e"; a: Secret "f"; a: Secret "g"; ` +
				`a: Secret "h"; a: Secret "i"; a: Secret "j"; and 1 more`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := findPropagated(s, tc.name, tc.copies)
			if diff := cmp.Diff(tc.want, string(f.status)+" "+string(f.reason)+": "+f.message); diff != "" {
				t.Errorf("\n%s\npropagated(%s): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
			if f.reason == v1alpha1.ReasonDescendantConflict && f.isBad() {
				t.Error("a conflict further down makes nobody unready")
			}
		})
	}
}

func TestMovedVia(t *testing.T) {
	other := below("x", "q")
	other.UID = "another"
	cases := map[string]struct {
		reason   string
		old, now *forest.Namespace
		want     string
	}{
		"Label":        {"", below("x", "p"), below("x", "q"), "label"},
		"SubNamespace": {"", bound("x", "p"), bound("x", "q"), "subnamespace"},
		"Hierarchy":    {"", below("x", "p"), applied(below("x", "q"), "q"), "hierarchy"},
		"Root":         {"", applied(below("x", "p"), "p"), applied(root("x"), ""), "hierarchy"},
		"Stays":        {"", below("x", "p"), below("x", "p", "a", "b"), ""},
		"Comes":        {"", nil, below("x", "p"), ""},
		"Replaced":     {"it is another namespace", below("x", "p"), other, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := movedVia(tc.old, tc.now); got != tc.want {
				t.Errorf("\n%s\nmovedVia: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRefusedChildren(t *testing.T) {
	const taken = "namespace b exists outside of this tree: choose another name; if that namespace belongs here, a cluster admin can bind " +
		"it: kubectl warren graft b x; the operator tries again only when this SubNamespace is created again or its spec changes, while " +
		"the name is free"
	const refused = "making the required SubNamespace x/a: no"
	for want, s := range map[string]*forest.Snapshot{
		refused:                       grown(root("x"), requiring("x", "a")),
		taken:                         grown(root("x"), named("b"), requiring("x", "a", "b")),
		"every required child exists": grown(root("x"), bound("a", "x"), &forest.Sub{Parent: "x", Name: "a"}, requiring("x", "a")),
	} {
		if got := childrenReady(s, "x", refused).message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
