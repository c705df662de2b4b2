package propagation

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// cluster is the API server: it counts the reads of Namespaces.
type cluster struct {
	namespaces map[string]*metav1.PartialObjectMetadata
	reads      int
}

func (c *cluster) Metadata(_ context.Context, _ schema.GroupVersionResource, _, name string) (*metav1.PartialObjectMetadata, error) {
	c.reads++
	return c.namespaces[name].DeepCopy(), nil
}

func namespaceAt(name, version string, labels ...string) *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version, Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	return n
}

func TestConfirm(t *testing.T) {
	slot := propagate.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "child", Name: "s"}
	grown := func() (*above, *cluster, *view.View) {
		c := &cluster{namespaces: map[string]*metav1.PartialObjectMetadata{
			"old":   namespaceAt("old", "1", v1alpha1.LabelType, v1alpha1.TypeRoot),
			"new":   namespaceAt("new", "2", v1alpha1.LabelType, v1alpha1.TypeRoot),
			"child": namespaceAt("child", "3", v1alpha1.LabelParent, "old"),
		}}
		x := view.New(forest.Rules{})
		for _, n := range c.namespaces {
			x.Observe(n)
		}
		tables := newTables(x.Snapshot(), propagate.Rules{}, newBodies())
		tables.in.world.PutCopy(slot, &propagate.Copy{Ours: true, From: "new", ResourceVersion: "10", Hash: propagate.Hash{Mode: v1alpha1.ModeUpdate}})
		return &above{view: seenTo{x, "5"}, facts: facts{tables}, writer: c, looks: lru.New(mostLooks)}, c, x
	}

	t.Run("PROP-V6 a copy that is older than what the watch has brought goes without a look", func(t *testing.T) {
		a, c, _ := grown()
		if err := a.confirm(t.Context(), slot, "new", "4"); err != nil || c.reads != 0 {
			t.Errorf("%v after %d reads", err, c.reads)
		}
	})
	t.Run("PROP-V6 the way up is read once for all copies that were there", func(t *testing.T) {
		a, c, _ := grown()
		for _, version := range []string{"10", "9", "10"} {
			if err := a.confirm(t.Context(), slot, "new", version); err != nil {
				t.Error(err)
			}
		}
		if c.reads != 2 {
			t.Errorf("%d reads, want those of child and old", c.reads)
		}
	})
	t.Run("PROP-V6 a namespace that has moved meanwhile keeps its copies, and the forest learns of it", func(t *testing.T) {
		a, c, x := grown()
		c.namespaces["child"] = namespaceAt("child", "8", v1alpha1.LabelParent, "new")
		if err := a.confirm(t.Context(), slot, "new", "10"); !errors.Is(err, errBehind) {
			t.Errorf("%v", err)
		}
		if !x.InTree("child", "new") {
			t.Error("the forest doesn't know where child stands")
		}
	})
	t.Run("PROP-V6 a plan that is older than what another worker's read has brought deletes nothing", func(t *testing.T) {
		a, c, x := grown()
		x.Observe(namespaceAt("child", "8", v1alpha1.LabelParent, "new"))
		if err := a.confirm(t.Context(), slot, "new", "10"); !errors.Is(err, errBehind) || c.reads != 0 {
			t.Errorf("%v after %d reads, while the tables have the old forest", err, c.reads)
		}
	})
}

// seenTo is a view whose watch has come to a resourceVersion.
type seenTo struct {
	*view.View
	version string
}

func (s seenTo) SeenVersion() string { return s.version }
