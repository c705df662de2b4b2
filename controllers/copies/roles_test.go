package copies

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copying"
)

// roleServer serves the metadata of Roles called reader, by namespace.
type roleServer struct {
	copying.API
	roles map[string]*metav1.PartialObjectMetadata
}

func (s *roleServer) Metadata(_ context.Context, r schema.GroupVersionResource, namespace,
	name string) (*metav1.PartialObjectMetadata, error) {
	if role := s.roles[namespace]; role != nil {
		return role, nil
	}
	return nil, apierrors.NewNotFound(r.GroupResource(), name)
}

func TestBindingsWaitForTheCopyOfTheirRole(t *testing.T) {
	roles := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	copyOf := func(from, namespace string) *metav1.PartialObjectMetadata {
		slot := copies.Slot{Kind: roles, Namespace: namespace, Name: "reader"}
		hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(slot, from), Content: copies.Unwritten}
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{v1alpha1.LabelInheritedFrom: from},
			Annotations: map[string]string{v1alpha1.AnnotationSourceHash: hash.String()},
		}}
	}
	terminating := func(role *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		role.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return role
	}
	for name, tt := range map[string]struct {
		roles   map[string]*metav1.PartialObjectMetadata
		refused bool
	}{
		"copies of one Role": {map[string]*metav1.PartialObjectMetadata{"a": copyOf("acme", "a"), "b": copyOf("acme", "b")}, false},
		"copy from the source's own namespace": {
			map[string]*metav1.PartialObjectMetadata{"b": copyOf("a", "b")}, false},
		"PROP-I17 while the copy of its Role is being deleted in a namespace, a RoleBinding is not copied there": {
			map[string]*metav1.PartialObjectMetadata{"a": copyOf("acme", "a"), "b": terminating(copyOf("acme", "b"))}, true},
		"PROP-I17 while the copy of its Role beside the source is being deleted, a RoleBinding is not copied": {
			map[string]*metav1.PartialObjectMetadata{"a": terminating(copyOf("acme", "a")), "b": copyOf("acme", "b")}, true},
		"no Role": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &copyWrite{Requests: &Requests{api: &roleServer{roles: tt.roles}}}
			w.Slot = copies.Slot{Kind: schema.GroupKind{Group: roles.Group, Kind: "RoleBinding"}, Namespace: "b", Name: "readers"}
			w.Action.Source, w.Action.Hash.Mode = w.Slot.At("a"), v1alpha1.ModeUpdate
			err := w.checkRole(t.Context(), &copies.Body{Role: "reader"})
			if refusal := (copies.OtherRoleError{}); errors.As(err, &refusal) != tt.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}
