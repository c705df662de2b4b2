package forest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// patch is a Change in a form that is short to write: the value "-" removes a key.
type patch struct{ Labels, Annotations map[string]string }

func patchOf(c forest.Change) patch {
	return patch{plain(c.Labels), plain(c.Annotations)}
}

func plain(keys map[string]*string) map[string]string {
	result := map[string]string{}
	for key, value := range keys {
		if result[key] = "-"; value != nil {
			result[key] = *value
		}
	}
	return result
}

type keys = map[string]string

const (
	ancestryKey  = "tenancy.warren.dev/ancestry"
	parentUIDKey = "tenancy.warren.dev/parent-uid"
	inheritedKey = "tenancy.warren.dev/inherited"
	cascadingKey = "tenancy.warren.dev/cascading"
	treeKey      = ".tree.tenancy.warren.dev/depth"
)

func TestDesiredPlace(t *testing.T) {
	cases := map[string]struct {
		reason string
		grown  []*forest.Namespace
		of     string
		want   patch
	}{
		"Missing": {reason: "nothing is written to what is not there", of: "x"},
		"Plain":   {reason: "a namespace outside the forest is not touched", grown: some(namespace("x", label("team", "a"))), of: "x"},
		"Root": {
			reason: "a root is its own ancestor", grown: some(namespace("x", root)), of: "x",
			want: patch{keys{"x" + treeKey: "0"}, keys{ancestryKey: "x"}},
		},
		"Deep": {
			reason: "one tree label for each ancestor and itself, and the path, in one write", of: "c",
			grown: some(namespace("a", root), namespace("b", below("a")), namespace("c", below("b"))),
			want: patch{keys{"a" + treeKey: "2", "b" + treeKey: "1", "c" + treeKey: "0"},
				keys{ancestryKey: "a/b/c", parentUIDKey: v1alpha1.DigestUID("uid-b")}},
		},
		"Settled": {
			reason: "no write without a difference", of: "b",
			grown: some(namespace("a", root), namespace("b", below("a"), placed("a/b"))),
		},
		"Moved": {
			reason: "old tree labels go as new ones come", of: "b",
			grown: some(namespace("z", root), namespace("b", below("z"), placed("a/b"))),
			want:  patch{keys{"a" + treeKey: "-", "z" + treeKey: "1"}, keys{ancestryKey: "z/b", parentUIDKey: v1alpha1.DigestUID("uid-z")}},
		},
		"Template": {
			reason: "a template has no tree labels", grown: some(namespace("t", template, placed("t"))), of: "t",
			want: patch{keys{"t" + treeKey: "-"}, keys{ancestryKey: "-"}},
		},
		"Left": {
			reason: "whoever leaves the forest loses what the operator wrote, in one change, and keeps the rest", of: "x",
			grown: some(namespace("x", placed("a/x"), label("team", "a"), label("own", "1"), annotation("memo", "m"),
				annotation("note", "n"), inherited("@memo,team"), cascading, annotation(v1alpha1.AnnotationLNamespaceUID, "u"))),
			want: patch{keys{"a" + treeKey: "-", "x" + treeKey: "-", "team": "-"},
				keys{ancestryKey: "-", parentUIDKey: "-", inheritedKey: "-", "memo": "-", cascadingKey: "-"}},
		},
		"Forged": {
			reason: "tree labels on a plain namespace are taken off", grown: some(namespace("x", label("a"+treeKey, "1"), label("b", "c"))), of: "x",
			want: patch{Labels: keys{"a" + treeKey: "-"}},
		},
		"ForgedList": {
			reason: "a list that names keys of ours, or of the API server, takes nothing away", of: "x",
			grown: some(namespace("x", root, placed("x"), label("kubernetes.io/metadata.name", "x"),
				inherited("@tenancy.warren.dev/ancestry,kubernetes.io/metadata.name,tenancy.warren.dev/type"))),
			want: patch{Annotations: keys{inheritedKey: "-"}},
		},
		"Halted": {
			reason: "a halted namespace keeps what it has",
			grown:  some(namespace("x", below("p"), placed("p/x"), label("team", "a"), inherited("team"))), of: "x",
		},
		"Protected": {
			reason: "nothing is written to a protected namespace",
			grown:  some(namespace("x", protected, placed("a/x"), inherited("team"), label("team", "a"))), of: "x",
		},
		"ProtectedByName": {reason: "nor where the configuration protects the name", grown: some(namespace("kube-x", placed("a/kube-x"))),
			of: "kube-x"},
		"Terminating": {reason: "nor to a terminating one", grown: some(namespace("x", root, terminating)), of: "x"},
		"NoMaps": {
			reason: "a namespace that has no key at all", grown: some(&forest.Namespace{Name: "x"}), of: "x",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := grown(tc.grown...)
			c := forest.DesiredChange(s, tc.of)
			if diff := cmp.Diff(tc.want, patchOf(c), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDesired(%q): -want, +got:\n%s", tc.reason, tc.of, diff)
			}
			if n := s.Namespace(tc.of); n != nil {
				if again := forest.DesiredChange(s.WithNamespace(written(n, c)), tc.of); !again.Empty() {
					t.Errorf("a second write is wanted: %v", patchOf(again))
				}
			}
		})
	}
}

func TestDesiredOfATenantsRoot(t *testing.T) {
	owned := annotation(v1alpha1.AnnotationLNamespaceUID, "u")
	cases := map[string]struct {
		reason string
		tenant forest.Tenant
		root   *forest.Namespace
		want   patch
	}{
		"CascadingOn": {
			reason: "the permission must outlive the LNamespace", tenant: forest.Tenant{UID: "u", AllowCascading: true},
			root: namespace("x", root, owned, placed("x")), want: patch{Annotations: keys{cascadingKey: "true"}},
		},
		"CascadingOff": {
			reason: "and follows it while it lives", tenant: forest.Tenant{UID: "u"},
			root: namespace("x", root, owned, placed("x"), cascading), want: patch{Annotations: keys{cascadingKey: "-"}},
		},
		"Terminating": {
			reason: "but is never changed once the namespace goes", tenant: forest.Tenant{UID: "u"},
			root: namespace("x", root, owned, placed("x"), cascading, terminating),
		},
		"NotItsOwn": {
			reason: "an LNamespace says nothing of a namespace that it did not make", tenant: forest.Tenant{UID: "v", Template: "t",
				AllowCascading: true},
			root: namespace("x", root, owned, placed("x")),
		},
		"TypeRestored": {
			reason: "a wiped type and template come back with what follows from them", tenant: forest.Tenant{UID: "u", Template: "t"},
			root: namespace("x", owned),
			want: patch{keys{v1alpha1.LabelType: "root", v1alpha1.LabelTemplate: "t", "x" + treeKey: "0", "team": "base"},
				keys{ancestryKey: "x", inheritedKey: "team"}},
		},
		"TemplateTakenBack": {
			reason: "the template is the LNamespace's to say", tenant: forest.Tenant{UID: "u"},
			root: namespace("x", root, owned, placed("x"), references("t"), label("team", "base"), inherited("team")),
			want: patch{keys{v1alpha1.LabelTemplate: "-", "team": "-"}, keys{inheritedKey: "-"}},
		},
		"Deleting": {
			reason: "an LNamespace that goes restores nothing", tenant: forest.Tenant{UID: "u", Deleting: true},
			root: namespace("x", root, owned, placed("x"), references("t"), label("team", "base"), inherited("team")),
		},
		"Placed": {
			reason: "where a parent stands, the label stands", tenant: forest.Tenant{UID: "u"},
			root: namespace("x", below("gone"), owned, placed("x")),
		},
		"RestoredIntoAHalt": {
			reason: "what restoring can't heal keeps its derived keys", tenant: forest.Tenant{UID: "u", Template: "No_Name"},
			root: namespace("x", root, owned, placed("x")), want: patch{Labels: keys{v1alpha1.LabelTemplate: "No_Name"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.tenant.Name = "x"
			s := grown(tc.root, namespace("t", template, label("team", "base"))).WithTenant(&tc.tenant)
			c := forest.DesiredChange(s, "x")
			if diff := cmp.Diff(tc.want, patchOf(c), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDesired: -want, +got:\n%s", tc.reason, diff)
			}
			if again := forest.DesiredChange(s.WithNamespace(written(tc.root, c)), "x"); !again.Empty() {
				t.Errorf("a second write is wanted: %v", patchOf(again))
			}
		})
	}
}

func TestNewChildIsCompleteInItsFirstVersion(t *testing.T) {
	sub := &forest.Sub{Parent: "r", Name: "c", Labels: keys{"app": "web", "foo": "x"}, Annotations: keys{"note": "n"}}
	unaware := grown(namespace("r", root, label("team", "neco"), annotation("memo", "m"), label("other", "o"),
		label("pod-security.kubernetes.io/enforce", "restricted")))
	s := unaware.WithSub(sub)
	want := &forest.Namespace{
		Name: "c",
		Labels: keys{
			v1alpha1.LabelCreatedBy: "warren", v1alpha1.LabelParent: "r", v1alpha1.LabelBound: "true",
			"r" + treeKey: "1", "c" + treeKey: "0", "team": "neco", "app": "web", "pod-security.kubernetes.io/enforce": "restricted",
		},
		Annotations: keys{ancestryKey: "r/c", parentUIDKey: v1alpha1.DigestUID("uid-r"), "memo": "m", "note": "n",
			inheritedKey: "@memo,@note,app,pod-security.kubernetes.io/enforce,team"},
	}
	child := forest.NewChild(s, sub)
	if diff := cmp.Diff(want, forest.NewChild(unaware, sub)); diff != "" {
		t.Errorf("NewChild, where the snapshot doesn't hold the SubNamespace yet: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, child); diff != "" {
		t.Errorf("NewChild: -want, +got:\n%s", diff)
	}
	if s.Namespace("c") != nil {
		t.Error("NewChild changed the snapshot")
	}
	if again := forest.DesiredChange(s.WithNamespace(child), "c"); !again.Empty() {
		t.Errorf("a second write is wanted: %v", patchOf(again))
	}
}

func TestNewRootIsCompleteInItsFirstVersion(t *testing.T) {
	s := grown(namespace("t", template, label("team", "base")))
	tenant := &forest.Tenant{Name: "x", UID: "u", Template: "t", AllowCascading: true}
	want := &forest.Namespace{
		Name: "x",
		Labels: keys{v1alpha1.LabelCreatedBy: "warren", v1alpha1.LabelType: "root", v1alpha1.LabelTemplate: "t",
			"x" + treeKey: "0", "team": "base"},
		Annotations: keys{v1alpha1.AnnotationLNamespaceUID: "u", ancestryKey: "x", inheritedKey: "team", cascadingKey: "true"},
	}
	made := forest.NewRoot(s, tenant)
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("NewRoot: -want, +got:\n%s", diff)
	}
	if s.Namespace("x") != nil || s.Tenant("x") != nil {
		t.Error("NewRoot changed the snapshot")
	}
	if again := forest.DesiredChange(s.WithTenant(tenant).WithNamespace(made), "x"); !again.Empty() {
		t.Errorf("a second write is wanted: %v", patchOf(again))
	}
	if _, ok := forest.NewRoot(s, &forest.Tenant{Name: "y", UID: "v"}).Labels[v1alpha1.LabelTemplate]; ok {
		t.Error("a root without a template has no empty label")
	}
}

func TestAdoption(t *testing.T) {
	mark := annotation(v1alpha1.AnnotationAdopt, v1alpha1.True)
	tenant := &forest.Tenant{Name: "x", UID: "u", Template: "t"}
	cases := map[string]struct {
		reason string
		old    *forest.Namespace
		want   patch
	}{
		"Plain": {
			reason: "its keys come, the mark goes, the rest stays", old: namespace("x", mark, label("own", "1"), label("team", "mine")),
			want: patch{keys{v1alpha1.LabelType: "root", v1alpha1.LabelTemplate: "t", "x" + treeKey: "0", "team": "base"},
				keys{v1alpha1.AnnotationAdopt: "-", v1alpha1.AnnotationLNamespaceUID: "u", ancestryKey: "x", inheritedKey: "team"}},
		},
		"FormerRoot": {
			reason: "an earlier LNamespace's mark is replaced", old: namespace("x", mark, root, placed("x"),
				annotation(v1alpha1.AnnotationLNamespaceUID, "old"), cascading),
			want: patch{keys{v1alpha1.LabelTemplate: "t", "team": "base"},
				keys{v1alpha1.AnnotationAdopt: "-", v1alpha1.AnnotationLNamespaceUID: "u", inheritedKey: "team", cascadingKey: "-"}},
		},
		"NoMaps": {
			reason: "a namespace that has no key at all", old: &forest.Namespace{Name: "x"},
			want: patch{keys{v1alpha1.LabelType: "root", v1alpha1.LabelTemplate: "t", "x" + treeKey: "0", "team": "base"},
				keys{v1alpha1.AnnotationLNamespaceUID: "u", ancestryKey: "x", inheritedKey: "team"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := grown(tc.old, namespace("t", template, label("team", "base")))
			c := forest.Adoption(s, tenant)
			if diff := cmp.Diff(tc.want, patchOf(c), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nAdoption: -want, +got:\n%s", tc.reason, diff)
			}
			if again := forest.DesiredChange(s.WithTenant(tenant).WithNamespace(written(tc.old, c)), "x"); !again.Empty() {
				t.Errorf("a second write is wanted: %v", patchOf(again))
			}
		})
	}
}
