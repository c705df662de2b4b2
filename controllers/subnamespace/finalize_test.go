package subnamespace

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/namespaces"
	"github.com/warren-tenancy/warren/internal/view"
)

// endings is an API server that records what the reconciler asks for when a SubNamespace is deleted.
type endings struct {
	client.Client
	crdGone, crdTerminating bool
	deleted                 []string
	finalizers              []string
}

func (e *endings) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	e.deleted = append(e.deleted, object.GetName())
	return nil
}

func (e *endings) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	var sent struct {
		Metadata struct{ Finalizers []string }
	}
	err = json.Unmarshal(body, &sent)
	e.finalizers = sent.Metadata.Finalizers
	return err
}

// Get returns the CustomResourceDefinition of SubNamespace, which shows whether the kind is still served.
func (e *endings) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if e.crdGone {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, key.Name)
	}
	if e.crdTerminating {
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	}
	return nil
}

// ending returns a reconciler for the tree of payments. Its child pay-web is bound to a SubNamespace; change may alter pay-web.
func ending(api *endings, change func(*metav1.PartialObjectMetadata)) *Reconciler {
	v := view.New(forest.Rules{})
	v.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "payments", UID: "1", ResourceVersion: "1", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
	}})
	child := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "pay-web", UID: "2", ResourceVersion: "2", Labels: map[string]string{v1alpha1.LabelParent: "payments",
			v1alpha1.LabelBound: v1alpha1.True},
	}}
	change(child)
	v.Observe(child)
	r := &Reconciler{Client: api, Live: api, Namespaces: &namespaces.Writer{Client: api, View: v}, View: v, Events: record.NewFakeRecorder(1)}
	r.resetState()
	return r
}

func TestTheEndOfASubNamespace(t *testing.T) {
	unchanged := func(*metav1.PartialObjectMetadata) {}
	for name, tt := range map[string]struct {
		api     endings
		child   func(*metav1.PartialObjectMetadata)
		deleted []string
	}{
		"SUB-D1 the Namespace of a deleted SubNamespace is deleted":       {endings{}, unchanged, []string{"pay-web"}},
		"SUB-D12 while the CRD is being deleted, no Namespace is deleted": {endings{crdTerminating: true}, unchanged, nil},
		"SUB-D12 when the CRD is deleted, no Namespace is deleted":        {endings{crdGone: true}, unchanged, nil},
		"SUB-D13 a Namespace that was moved to another tree is not deleted": {endings{},
			func(n *metav1.PartialObjectMetadata) { n.Labels[v1alpha1.LabelParent] = "other" }, nil},
		"the namespace is not bound": {endings{}, func(n *metav1.PartialObjectMetadata) { delete(n.Labels, v1alpha1.LabelBound) }, nil},
		"SUB-D2 a SubNamespace does not wait for a Namespace that is terminating": {
			endings{}, func(n *metav1.PartialObjectMetadata) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sub := wanted("payments", "pay-web")
			sub.ResourceVersion = "3"
			sub.DeletionTimestamp, sub.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.FinalizerSubNamespace, "example.com/keep"}
			r := ending(&tt.api, tt.child)
			if result, err := r.finalize(t.Context(), sub); err != nil || !result.IsZero() {
				t.Errorf("got %+v, %v", result, err)
			}
			if !slices.Equal(tt.api.deleted, tt.deleted) {
				t.Errorf("deletes %v, want %v", tt.api.deleted, tt.deleted)
			}
			if !slices.Equal(tt.api.finalizers, []string{"example.com/keep"}) {
				t.Errorf("leaves the finalizers %v: whoever waits for the SubNamespace waits for the namespace", tt.api.finalizers)
			}
		})
	}
}
