package copies

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

var secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// apiServer returns Namespaces, and counts the reads.
type apiServer struct {
	namespaces map[string]*metav1.PartialObjectMetadata
	reads      int
}

func (a *apiServer) Metadata(_ context.Context, _ schema.GroupVersionResource, _, name string) (*metav1.PartialObjectMetadata, error) {
	a.reads++
	return a.namespaces[name].DeepCopy(), nil
}

func namespaceAt(name, version string, labels ...string) *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version,
		Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

// seenTo is a view whose watch has reached this resourceVersion.
type seenTo struct {
	*view.View
	version string
}

func (s seenTo) SeenVersion() string { return s.version }

func TestRemovalChecks(t *testing.T) {
	slot := copies.Slot{Kind: secretKind.GroupKind(), Namespace: "child", Name: "s"}
	grown := func() (*removalChecks, *apiServer, *view.View) {
		a := &apiServer{namespaces: map[string]*metav1.PartialObjectMetadata{
			"old":   namespaceAt("old", "1", v1alpha1.LabelType, v1alpha1.TypeRoot),
			"new":   namespaceAt("new", "2", v1alpha1.LabelType, v1alpha1.TypeRoot),
			"child": namespaceAt("child", "3", v1alpha1.LabelParent, "old"),
		}}
		v := view.New(forest.Rules{})
		for _, n := range a.namespaces {
			v.Observe(n)
		}
		state := copyengine.NewState(v.Snapshot(), copyengine.Settings{
			Kinds:  []copyengine.Kind{{GroupVersionKind: secretKind, Mode: copies.OptIn}},
			Timing: copyengine.DefaultTiming()})
		hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(slot, "new"), Content: copies.Unwritten}
		state.Apply(time.Now(), copyengine.ObjectSeen{Watch: copyengine.Watch{Kind: slot.Kind, Role: copyengine.CopiesAlone},
			Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "child", Name: "s", UID: "u", ResourceVersion: "10",
				Labels:      map[string]string{v1alpha1.LabelInheritedFrom: "new"},
				Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash.String()},
			}}})
		return newRemovalChecks(seenTo{v, "5"}, a, func(look func(*copyengine.State)) { look(state) }), a, v
	}

	t.Run("PROP-V6 no read precedes the deletion of a copy that is older than what the watch of Namespaces has shown", func(t *testing.T) {
		c, a, _ := grown()
		if err := c.checkRemoval(t.Context(), slot, "new", "4"); err != nil || a.reads != 0 {
			t.Errorf("%v after %d reads", err, a.reads)
		}
	})
	t.Run("PROP-V7 if a copy's group is not Kubernetes' own, its version is not compared with that of Namespaces: the operator reads the "+
		"namespaces above before it deletes the copy", func(t *testing.T) {
		c, a, _ := grown()
		widget := copies.Slot{Kind: schema.GroupKind{Group: "example.com", Kind: "Widget"}, Namespace: "child", Name: "w"}
		if err := c.checkRemoval(t.Context(), widget, "new", "4"); err != nil || a.reads != 2 {
			t.Errorf("%v after %d reads, want those of child and old", err, a.reads)
		}
	})
	t.Run("PROP-V6 the namespaces above are read once for all copies that existed at that read", func(t *testing.T) {
		c, a, _ := grown()
		for _, version := range []string{"10", "9", "10"} {
			if err := c.checkRemoval(t.Context(), slot, "new", version); err != nil {
				t.Error(err)
			}
		}
		if a.reads != 2 {
			t.Errorf("%d reads, want those of child and old", a.reads)
		}
	})
	t.Run("PROP-V6 a copy that is younger than that read is not deleted before another one", func(t *testing.T) {
		c, _, _ := grown()
		if err := c.checkRemoval(t.Context(), slot, "new", "11"); !errors.Is(err, copies.ErrBehind) {
			t.Errorf("%v", err)
		}
	})
	t.Run("PROP-V6 if the read shows that a namespace has moved meanwhile, its copies stay, and the forest is corrected", func(t *testing.T) {
		c, a, v := grown()
		a.namespaces["child"] = namespaceAt("child", "8", v1alpha1.LabelParent, "new")
		if err := c.checkRemoval(t.Context(), slot, "new", "10"); !errors.Is(err, copies.ErrBehind) {
			t.Errorf("%v", err)
		}
		if !v.InTree("child", "new") {
			t.Error("the forest does not know where child is")
		}
	})
	t.Run("PROP-V6 a plan that is older than what another worker's read has shown deletes nothing", func(t *testing.T) {
		c, a, v := grown()
		v.Observe(namespaceAt("child", "8", v1alpha1.LabelParent, "new"))
		if err := c.checkRemoval(t.Context(), slot, "new", "10"); !errors.Is(err, copies.ErrBehind) || a.reads != 0 {
			t.Errorf("%v after %d reads, while the State has the old forest", err, a.reads)
		}
	})
	t.Run("PROP-V6 a plan that is older than the halt of its namespace deletes nothing", func(t *testing.T) {
		c, a, v := grown()
		v.Observe(namespaceAt("child", "8", v1alpha1.LabelParent, "missing"))
		if err := c.checkRemoval(t.Context(), slot, "new", "4"); !errors.Is(err, copies.ErrBehind) || a.reads != 0 {
			t.Errorf("%v after %d reads, while the State takes child for managed", err, a.reads)
		}
	})
}
