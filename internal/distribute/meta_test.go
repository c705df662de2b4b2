package distribute

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestAnAdoptedObjectKeepsItsOwnersKeys(t *testing.T) {
	t.Run("DIST-D102 an adopted object keeps its own label `propagate` and annotation `select` when it is updated, "+
		"overwritten and handed back", func(t *testing.T) {
		d := distribution(t, v1alpha1.ConflictOverwrite, v1alpha1.DriftRevert, v1alpha1.DeletionDelete)
		owners := metav1.ObjectMeta{
			Namespace: "d1", Name: "regcred", UID: "u", ResourceVersion: "1",
			Labels:      map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeNone, "app": "web"},
			Annotations: map[string]string{v1alpha1.AnnotationSelect: "team=a"},
		}
		adopted := owners.DeepCopy()
		d.Adopt(adopted)
		meta := &metav1.PartialObjectMetadata{ObjectMeta: *adopted}
		for name, kept := range map[string]map[string]string{
			"an update":    NewReader().Copy(d.Template.Slot("d1"), meta).Over(d.Template).Kept.Labels,
			"an overwrite": OverForeign(&metav1.PartialObjectMetadata{ObjectMeta: owners}, d.Template).Kept.Labels,
		} {
			if diff := cmp.Diff(owners.Labels, kept); diff != "" {
				t.Errorf("after %s: %s", name, diff)
			}
		}
		HandBackMeta(adopted)
		if diff := cmp.Diff(owners, *adopted); diff != "" {
			t.Errorf("handed back: %s", diff)
		}
	})
}

func TestACopyIsNoSource(t *testing.T) {
	d := distribution(t, v1alpha1.ConflictOverwrite, v1alpha1.DriftIgnore, v1alpha1.DeletionDelete)
	for name, c := range map[string]struct {
		mode  copies.KindMode
		label string
	}{
		"DIST-D35 a copy of a kind in mode All is no source of propagation": {mode: copies.All},
		"DIST-D35 a copy of a kind in mode OptIn is no source of propagation, though it has label " +
			"`propagate`": {copies.OptIn, v1alpha1.ModeUpdate},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "d1", Name: "regcred", Labels: map[string]string{}}
			if c.label != "" {
				meta.Labels[v1alpha1.LabelPropagate] = c.label
			}
			if _, is := (copies.Rules{}).SourceOf(d.Template.Slot("d1"), &meta, c.mode); !is {
				t.Fatal("a user's own object is a source")
			}
			marks := d.Marks("d1", false)
			maps.Copy(meta.Labels, marks.Labels)
			meta.Annotations = marks.Annotations
			if _, is := (copies.Rules{}).SourceOf(d.Template.Slot("d1"), &meta, c.mode); is {
				t.Error("a copy is a source")
			}
		})
	}
}
