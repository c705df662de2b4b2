package forest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// configured is the HierarchyConfiguration of a namespace.
func configured(namespace string, changes ...func(*forest.Hierarchy)) *forest.Hierarchy {
	h := &forest.Hierarchy{Namespace: namespace, UID: "uid-h"}
	for _, change := range changes {
		change(h)
	}
	return h
}

func asks(parent string) func(*forest.Hierarchy) {
	return func(h *forest.Hierarchy) { h.Parent = &parent }
}

func declares(keys ...string) func(*forest.Hierarchy) {
	return func(h *forest.Hierarchy) { h.Propagated[0] = keys }
}

func overrides(keys ...string) func(*forest.Hierarchy) {
	return func(h *forest.Hierarchy) { h.Overridden[0] = keys }
}

func allows(h *forest.Hierarchy) { h.AllowCascading = true }

func gotten(parent string) trait {
	return annotation(v1alpha1.AnnotationAppliedParent, "uid-h:"+parent)
}

func forestOf(hierarchies []*forest.Hierarchy, namespaces ...*forest.Namespace) *forest.Snapshot {
	s := grown(namespaces...)
	for _, h := range hierarchies {
		s = s.WithHierarchy(h)
	}
	return s
}

const (
	parentKey  = v1alpha1.LabelParent
	appliedKey = v1alpha1.AnnotationAppliedParent
)

func TestRequests(t *testing.T) {
	org, team := namespace("org", root, placed("org")), namespace("team", below("org"), placed("org/team"))
	cases := map[string]struct {
		reason  string
		h       *forest.Hierarchy
		n       *forest.Namespace
		refused v1alpha1.Reason
		want    patch
	}{
		"Plain": {
			"the edge, what follows from it and the record of it come in one change",
			configured("x", asks("team")), namespace("x"), "",
			patch{keys{parentKey: "team", "org" + treeKey: "2", "team" + treeKey: "1", "x" + treeKey: "0"},
				keys{ancestryKey: "org/team/x", parentUIDKey: v1alpha1.DigestUID("uid-team"), appliedKey: "uid-h:team"}},
		},
		"Root": {
			"a root becomes a child",
			configured("x", asks("org")), namespace("x", root, placed("x")), "",
			patch{keys{v1alpha1.LabelType: "-", parentKey: "org", "org" + treeKey: "1"},
				keys{ancestryKey: "org/x", parentUIDKey: v1alpha1.DigestUID("uid-org"), appliedKey: "uid-h:org"}},
		},
		"ToARoot": {
			"\"\" asks for a root",
			configured("x", asks("")), namespace("x", below("org"), placed("org/x"), gotten("org")), "",
			patch{keys{v1alpha1.LabelType: "root", parentKey: "-", "org" + treeKey: "-"}, keys{ancestryKey: "x", parentUIDKey: "-",
				appliedKey: "uid-h:"}},
		},
		"Cleared": {
			"a field that was cleared asks for a root, and nothing is recorded",
			configured("x"), namespace("x", below("org"), placed("org/x"), gotten("org")), "",
			patch{keys{v1alpha1.LabelType: "root", parentKey: "-", "org" + treeKey: "-"},
				keys{ancestryKey: "x", parentUIDKey: "-", appliedKey: "-"}},
		},
		"CarriedOut": {
			"the label stands, whatever it says",
			configured("x", asks("team")), namespace("x", below("org"), placed("org/x"), gotten("team")), "", patch{keys{}, nil},
		},
		"OfAnother": {
			"the record of an object that is gone doesn't count",
			configured("x", asks("team")), namespace("x", below("org"), placed("org/x"), annotation(appliedKey, "uid-old:team")), "",
			patch{keys{parentKey: "team", "org" + treeKey: "2", "team" + treeKey: "1"},
				keys{ancestryKey: "org/team/x", parentUIDKey: v1alpha1.DigestUID("uid-team"), appliedKey: "uid-h:team"}},
		},
		"OfNoneLeft": {
			"with the object the record goes, and the place stays",
			nil, namespace("x", below("org"), placed("org/x"), gotten("team")), "", patch{keys{}, keys{appliedKey: "-"}},
		},
		"Gone": {
			"the edge is written though the parent is missing; nothing else is",
			configured("x", asks("gone")), namespace("x", below("org"), placed("org/x")), "",
			patch{keys{parentKey: "gone"}, keys{appliedKey: "uid-h:gone"}},
		},
		"Itself": {"", configured("x", asks("x")), namespace("x", root, placed("x")), v1alpha1.ReasonWouldCycle, patch{keys{}, nil}},
		"Protected": {"", configured("x", asks("kube-system")), namespace("x", root, placed("x")), v1alpha1.ReasonIllegalParent,
			patch{keys{}, nil}},
		"Member": {"", configured("x", asks("org")), namespace("x", template), v1alpha1.ReasonIllegalParent, patch{keys{}, nil}},
		"Bound": {
			"", configured("x", asks("team")), namespace("x", below("org"), bound, placed("org/x")), v1alpha1.ReasonBound, patch{keys{}, nil},
		},
		"BoundAndCleared": {
			"a bound namespace stays where its SubNamespace is",
			configured("x"), namespace("x", below("org"), bound, placed("org/x"), gotten("org")), "", patch{keys{}, keys{appliedKey: "-"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []*forest.Hierarchy
			if tc.h != nil {
				all = append(all, tc.h)
			}
			s := forestOf(all, org, team, tc.n)
			var refused v1alpha1.Reason
			if r := forest.RequestOf(s, "x"); len(r.Obstacles) > 0 {
				refused = r.Obstacles[0].Reason
			}
			if refused != tc.refused {
				t.Errorf("%s: refused with %q, want %q", tc.reason, refused, tc.refused)
			}
			got := patchOf(forest.DesiredChange(s, "x"))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParentReplaced(t *testing.T) {
	stood := func(ancestry, parentUID string) trait {
		return func(n *forest.Namespace) {
			placed(ancestry)(n)
			n.Annotations[v1alpha1.AnnotationParentUID] = parentUID
		}
	}
	org, mallory, p := namespace("org", root), namespace("mallory", root), namespace("p", below("mallory"))
	cases := map[string]struct {
		reason string
		s      *forest.Snapshot
		name   string
		want   v1alpha1.Reason
	}{
		"Elsewhere": {"another namespace took the name, in another tree",
			forestOf(nil, org, mallory, p, namespace("x", below("p"), stood("org/p/x", "uid-first"))), "x", v1alpha1.ReasonParentReplaced},
		"Below": {"who hangs below waits too", forestOf(nil, org, mallory, p, namespace("x", below("p"), stood("org/p/x", "uid-first")),
			namespace("y", below("x"))), "y", v1alpha1.ReasonAncestorHalted},
		"SamePlace": {"it came back where it was", forestOf(nil, org, namespace("p", below("org")),
			namespace("x", below("p"), stood("org/p/x", "uid-first"))), "x", ""},
		"Moved": {"it is the very same, and was moved", forestOf(nil, org, mallory, p, namespace("x", below("p"), stood("org/p/x", "uid-p"))),
			"x", ""},
		"Digest": {"it is the very same, as this version records it",
			forestOf(nil, org, mallory, p, namespace("x", below("p"), stood("org/p/x", v1alpha1.DigestUID("uid-p")))), "x", ""},
		"Other": {"another one, as this version records it", forestOf(nil, org, mallory, p,
			namespace("x", below("p"), stood("org/p/x", v1alpha1.DigestUID("uid-first")))), "x", v1alpha1.ReasonParentReplaced},
		"Placed": {"x was moved below another parent",
			forestOf(nil, org, mallory, p, namespace("x", below("mallory"), stood("org/p/x", "uid-first"))), "x", ""},
		"Accepted": {"a cluster admin took the ancestry off",
			forestOf(nil, org, mallory, p, namespace("x", below("p"), annotation(v1alpha1.AnnotationParentUID, "uid-first"))), "x", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.s.Place(tc.name).Halt.Reason; got != tc.want {
				t.Errorf("%s: halted for %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestDeclaredKeys(t *testing.T) {
	tree := func(traits ...trait) []*forest.Namespace {
		return []*forest.Namespace{namespace("org", append(traits, root)...), namespace("team", below("org"), label("cost", "8")),
			namespace("svc", below("team")), namespace("job", below("svc"))}
	}
	cases := map[string]struct {
		reason string
		of     string
		s      *forest.Snapshot
		want   string
	}{
		"Undeclared": {"no configuration lets it flow", "svc", forestOf(nil, tree()...), ""},
		"Declared": {"as if the configuration named it", "job", forestOf([]*forest.Hierarchy{configured("team", declares("cost"))}, tree()...),
			"8"},
		"Topmost": {"the value nearest the root wins, on the namespace in between too", "team",
			forestOf([]*forest.Hierarchy{configured("org", declares("cost")), configured("team", declares("cost"))}, tree(label("cost", "1"))...),
			"1"},
		"NoValue": {"who declares it need not have it", "svc", forestOf([]*forest.Hierarchy{configured("org", declares("cost"))}, tree()...),
			"8"},
		"Overridden": {"what is overridden stops", "svc",
			forestOf([]*forest.Hierarchy{configured("team", declares("cost")), configured("svc", overrides("cost"))}, tree()...), ""},
		"Further": {"and does not go on below", "job",
			forestOf([]*forest.Hierarchy{configured("team", declares("cost")), configured("svc", overrides("cost"))}, tree()...), ""},
		"Reserved": {"our keys never flow", "svc", forestOf([]*forest.Hierarchy{configured("team", declares(v1alpha1.LabelParent))}, tree()...),
			""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if value := forest.DesiredChange(tc.s, tc.of).Labels["cost"]; value != nil {
				got = *value
			}
			if got != tc.want {
				t.Errorf("%s: %s gets cost=%q, want %q", tc.reason, tc.of, got, tc.want)
			}
		})
	}
}

func TestCascadingOfAHierarchyConfiguration(t *testing.T) {
	if got := patchOf(forest.DesiredChange(forestOf([]*forest.Hierarchy{configured("x", allows)}, namespace("x", root, placed("x"))),
		"x")); got.Annotations[cascadingKey] != "true" {
		t.Errorf("the permission is not written: %v", got)
	}
	if got := patchOf(forest.DesiredChange(forestOf(nil, namespace("x", root, placed("x"), cascading)), "x")); got.Annotations[cascadingKey] !=
		"-" {
		t.Errorf("the permission does not end with the object that gave it: %v", got)
	}
	left := forestOf(nil, namespace("r", root), namespace("x", below("r"), bound, placed("r/x"), cascading)).
		WithSub(&forest.Sub{Parent: "r", Name: "x", Deleting: true})
	if got := patchOf(forest.DesiredChange(left, "x")); got.Annotations[cascadingKey] != "" {
		t.Errorf("what was left to a namespace that goes is taken away: %v", got)
	}
}

// HIER-M21: a SubNamespace of the new parent must not come to own a namespace that a HierarchyConfiguration places.
func TestPlacedIsUnbound(t *testing.T) {
	cut := &forest.Namespace{Name: "solo", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot, v1alpha1.LabelBound: "true"}}
	if moved := forest.Placed(cut, "org"); moved.Bound() || moved.Parent() != "org" || !cut.Bound() {
		t.Errorf("moved %v from %v", moved.Labels, cut.Labels)
	}
}
