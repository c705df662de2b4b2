package propagation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

var (
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	secretsIn  = func(namespace string) propagate.Slot {
		return propagate.Slot{Kind: secretKind.GroupKind(), Namespace: namespace, Name: "db"}
	}
)

// object is the metadata of Secret db in a namespace.
func object(namespace, uid, resourceVersion string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "db", UID: types.UID(uid), ResourceVersion: resourceVersion, Labels: labels,
	}}
}

// copyOf is a copy of ours, in mode update, of Secret db in from.
func copyOf(namespace, from, uid, resourceVersion string) *metav1.PartialObjectMetadata {
	meta := object(namespace, uid, resourceVersion, map[string]string{v1alpha1.LabelInheritedFrom: from})
	hash := propagate.Hash{Mode: v1alpha1.ModeUpdate, Place: propagate.PlaceOf(secretsIn(namespace), from), Content: "00000000000000000000000000000000"}
	meta.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: hash.String()}
	return meta
}

// tablesOf are tables over the root acme, and a below it, that know all Secrets.
func tablesOf() *tables { return tablesUnder(forest.Rules{}) }

// tablesUnder are those of tablesOf under other rules.
func tablesUnder(rules forest.Rules) *tables {
	f := forest.New(rules).
		WithNamespace(&forest.Namespace{Name: "acme", UID: "acme", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}}).
		WithNamespace(&forest.Namespace{Name: "a", UID: "a", Labels: map[string]string{v1alpha1.LabelParent: "acme"}})
	t := newTables(f, propagate.Rules{}, newBodies())
	t.setKind(secretKind.GroupKind(), propagate.OptIn, true)
	return t
}

var (
	fromSources = origin{Kind{GroupVersionKind: secretKind, Mode: propagate.OptIn}, sourcesAlone}
	fromCopies  = origin{Kind{GroupVersionKind: secretKind, Mode: propagate.OptIn}, copiesAlone}
	optedIn     = map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate}
)

func TestTablesKeepWhatIsNewest(t *testing.T) {
	tb := tablesOf()
	if e := tb.putObject(fromCopies, copyOf("a", "acme", "u1", "7")); len(e.keys) != 1 || e.keys[0] != slotKey(secretsIn("a")) || len(e.freed) != 1 {
		t.Fatalf("got %v, want the slot of the copy", e)
	}
	if e := tb.putObject(fromCopies, copyOf("a", "acme", "u1", "6")); len(e.keys) != 0 {
		t.Fatalf("got %v for an older version, want nothing", e)
	}
	if e := tb.removeObject(fromCopies, copyOf("a", "acme", "other", "8")); len(e.keys) != 0 {
		t.Fatalf("got %v: another object of that name has gone", e)
	}
	tb.noteAnswer(secretsIn("a"), copyOf("a", "acme", "u1", "9"))
	if _, c := tb.planWithCopy(secretsIn("a")); c == nil || c.ResourceVersion != "9" || c.Digest == 0 {
		t.Fatalf("got %v, want the answer to our write", c)
	}
	if e := tb.noteAbsent(secretsIn("a"), "u1"); len(e.freed) != 1 {
		t.Fatalf("got %v, want its namespace freed", e)
	}
	tb.noteAnswer(secretsIn("a"), copyOf("a", "acme", "u1", "7"))
	if _, c := tb.planWithCopy(secretsIn("a")); c != nil {
		t.Fatal("the watch has been beyond this answer, and has seen the copy go")
	}
}

func TestTablesReplace(t *testing.T) {
	tb := tablesOf()
	known := facts{tb}
	tb.putObject(fromSources, object("acme", "s", "1", optedIn))
	tb.putObject(fromCopies, copyOf("a", "acme", "u1", "2"))
	tb.replaceObjects(fromCopies, nil)
	if known.source(secretsIn("acme")) == nil {
		t.Fatal("a list of copies says nothing about sources")
	}
	if _, c := tb.planWithCopy(secretsIn("a")); c != nil {
		t.Fatal("the copy is not in the list")
	}
	e := tb.replaceObjects(fromSources, nil)
	if len(e.keys) != 2 || known.source(secretsIn("acme")) != nil {
		t.Fatalf("got %v, want the source gone and looked for", e)
	}
}

// The watch of the whole cluster that takes the place of the watches of namespaces begins with a list, which may be older than what those
// watches have shown: a source must not become an older version again, nor a copy be taken for gone.
func TestTablesKeepWhatNamespacesHaveShown(t *testing.T) {
	t.Run("INF-I75", func(t *testing.T) {
		tb := tablesOf()
		known := facts{tb}
		tb.setNarrow(secretKind.GroupKind())
		tb.putObject(fromSources, object("acme", "s", "5", optedIn))
		tb.putObject(fromCopies, copyOf("a", "acme", "u1", "6"))
		old := object("acme", "s", "3", map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeNone})
		tb.replaceObjectsIn(fromSources, propagate.Everywhere, "4", []*metav1.PartialObjectMetadata{old})
		tb.removeObject(fromSources, object("acme", "s", "4", nil))
		if s := known.source(secretsIn("acme")); s == nil || s.Mode != v1alpha1.ModeUpdate {
			t.Fatalf("got %v, want the newer source", s)
		}
		tb.replaceObjectsIn(fromCopies, propagate.Everywhere, "4", nil)
		if _, c := tb.planWithCopy(secretsIn("a")); c == nil {
			t.Fatal("the copy was made after that list")
		}
		tb.replaceObjectsIn(fromCopies, propagate.Everywhere, "7", nil)
		tb.replaceObjectsIn(fromSources, propagate.Everywhere, "7", nil)
		if _, c := tb.planWithCopy(secretsIn("a")); c != nil || known.source(secretsIn("acme")) != nil {
			t.Fatal("what a later list doesn't have is gone")
		}
	})
}

func TestTablesForgetWhereNobodyLooks(t *testing.T) {
	tb := tablesOf()
	known := facts{tb}
	tb.setNarrow(secretKind.GroupKind())
	tb.putObject(fromSources, object("acme", "s", "5", optedIn))
	tb.putObject(fromSources, object("elsewhere", "e", "6", optedIn))
	tb.putObject(fromCopies, copyOf("elsewhere", "acme", "u1", "7"))
	inForest := func(namespace string) bool { return namespace == "acme" }
	tb.forgetElsewhere(fromSources, inForest)
	if known.source(secretsIn("acme")) == nil || known.source(secretsIn("elsewhere")) != nil {
		t.Fatal("nobody would learn that the source elsewhere goes")
	}
	if _, c := tb.planWithCopy(secretsIn("elsewhere")); c == nil {
		t.Fatal("the watch of copies goes on")
	}
	tb.forgetElsewhere(fromCopies, inForest)
	if _, c := tb.planWithCopy(secretsIn("elsewhere")); c != nil {
		t.Fatal("nobody would learn that the copy elsewhere goes")
	}
}
