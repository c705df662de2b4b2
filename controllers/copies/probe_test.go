package copies

import (
	"context"
	"errors"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// oneCopy serves the metadata of one object.
type oneCopy struct {
	copying.API
	meta metav1.PartialObjectMetadata
}

func (o *oneCopy) Metadata(context.Context, schema.GroupVersionResource, string, string) (*metav1.PartialObjectMetadata, error) {
	return o.meta.DeepCopy(), nil
}

// A copy still belongs to the operator after somebody has removed its label, but no watch shows its deletion any more. If the copy and its
// source are in mode create, the operator does not write over the copy. Instead it reads the copy again later, like somebody else's object.
func TestProbeFindsACopyWithoutItsLabel(t *testing.T) {
	const create, update = v1alpha1.ModeCreate, v1alpha1.ModeUpdate
	slot := copies.Slot{Kind: secretKind.GroupKind(), Namespace: "child", Name: "s"}
	v := view.New(forest.Rules{})
	v.Observe(namespaceAt("acme", "1", v1alpha1.LabelType, v1alpha1.TypeRoot))
	v.Observe(namespaceAt("child", "2", v1alpha1.LabelParent, "acme"))
	for name, tt := range map[string]struct {
		mode, wanted string
		labelled     bool
		obstacle     bool
	}{
		"PROP-K8 a read finds a copy in mode update that lost its label":                    {update, update, false, false},
		"PROP-K12 a copy in mode create that lost its label is read as an unrelated object": {create, create, false, true},
		"PROP-K12 such a copy is found if its source is in mode update by now":              {create, update, false, false},
		"with its label, in mode create":                                                    {create, create, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			hash := copies.Hash{Mode: tt.mode, Place: copies.PlaceOf(slot, "acme"), Content: copies.Unwritten}
			api := &oneCopy{meta: *namespaceAt("s", "9")}
			api.meta.Namespace, api.meta.Annotations = "child", map[string]string{v1alpha1.AnnotationSourceHash: hash.String()}
			if tt.labelled {
				api.meta.Labels[v1alpha1.LabelInheritedFrom] = "acme"
			}
			w := &copyWrite{Requests: NewRequests(api, v, copies.Rules{}, nil, nil)}
			w.Slot, w.Action.Source, w.Action.Hash.Mode = slot, slot.At("acme"), tt.wanted
			err := w.readObstacle(t.Context())
			if isObstacle := errors.Is(err, copies.ErrObstacle); isObstacle != tt.obstacle || !isObstacle && w.result.Found == nil {
				t.Errorf("found %+v, %v", w.result.Found, err)
			}
		})
	}
}

// What others have added to a copy, and may keep there, is not lost together with the operator's label.
func TestProbeKeepsTheLabelsOfACopyWithoutItsLabel(t *testing.T) {
	t.Run("PROP-K17 a copy that gets back the label that somebody has taken off keeps the labels "+
		"that others may set there", func(t *testing.T) {
		slot := copies.Slot{Kind: secretKind.GroupKind(), Namespace: "child", Name: "s"}
		v := view.New(forest.Rules{})
		v.Observe(namespaceAt("acme", "1", v1alpha1.LabelType, v1alpha1.TypeRoot))
		v.Observe(namespaceAt("child", "2", v1alpha1.LabelParent, "acme"))
		hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(slot, "acme"), Content: copies.Unwritten}
		api := &oneCopy{meta: *namespaceAt("s", "9", "example.com/tool", "theirs")}
		api.meta.Namespace, api.meta.Annotations = "child", map[string]string{v1alpha1.AnnotationSourceHash: hash.String()}
		w := &copyWrite{Requests: NewRequests(api, v, copies.Rules{}, nil, nil)}
		w.Slot, w.Action.Source, w.Action.Hash.Mode = slot, slot.At("acme"), v1alpha1.ModeUpdate
		if err := w.readObstacle(t.Context()); err != nil || w.result.Found == nil {
			t.Fatal(w.result.Found, err)
		}
		want := map[string]string{"example.com/tool": "theirs", v1alpha1.LabelInheritedFrom: "acme"}
		if got := w.result.Found.Labels; !maps.Equal(got, want) {
			t.Errorf("labels %v, want %v", got, want)
		}
	})
}
