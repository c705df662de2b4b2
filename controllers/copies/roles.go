package copies

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// A RoleBinding that names a Role means another Role in each namespace. When a user writes a source that does so, the
// API server checks that the user holds the rights of the Role beside the source. The operator may bind every Role, so
// the API server does not check what the operator writes. That is why a copy of such a binding is written only beside a
// copy of that very Role. Otherwise users could bind themselves to a Role of that name that a more powerful user has
// created below.

// checkRole returns an OtherRoleError unless the Role that the binding names is the same at the slot as at the
// binding's source. For a copy in mode create it returns an UnkeptBindingError. It reads the Roles from the API server,
// because what a watch has shown may be a moment old. A copy written by mistake would grant another Role until a plan
// deletes it. Where the operator does not see Roles, no plan would. One read suffices where the Role at the slot is a
// copy from the source's own namespace. Where that Role comes from another namespace, the Role beside the source is
// read, too: both must have the same origin.
func (w *copyWrite) checkRole(ctx context.Context, body *copies.Body) error {
	if body.Role == "" {
		return nil
	}
	if w.Action.Hash.Mode == v1alpha1.ModeCreate {
		return copies.UnkeptBindingError(body.Role)
	}
	source := w.Action.Source.Namespace
	there, err := w.originOfRole(ctx, w.Slot.Namespace, body.Role)
	if err != nil || there == source {
		return err
	}
	meant := ""
	if there != "" && there != w.Slot.Namespace {
		if meant, err = w.originOfRole(ctx, source, body.Role); err != nil {
			return err
		}
	}
	if meant == "" || there != meant {
		return copies.OtherRoleError{Namespace: w.Slot.Namespace, Role: body.Role, Source: source}
	}
	return nil
}

// originOfRole returns where the Role of this name in namespace comes from: the namespace of its source if the Role is
// a copy that only the operator may change, otherwise namespace itself. It returns "" if there is no such Role, or it
// is being deleted.
func (w *copyWrite) originOfRole(ctx context.Context, namespace, name string) (string, error) {
	slot := copies.Slot{Kind: rbacv1.SchemeGroupVersion.WithKind("Role").GroupKind(), Namespace: namespace, Name: name}
	meta, err := w.api.Metadata(ctx, rbacv1.SchemeGroupVersion.WithResource("roles"), namespace, name)
	countRead(slot, "copy")
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case meta.DeletionTimestamp != nil:
		return "", nil // the next Role of that name may be another
	}
	from, hash := meta.Labels[v1alpha1.LabelInheritedFrom], copies.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	if from != "" && hash.Mode == v1alpha1.ModeUpdate && hash.Place == copies.PlaceOf(slot, from) {
		return from, nil
	}
	return namespace, nil
}
