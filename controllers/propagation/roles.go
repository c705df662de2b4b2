package propagation

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// A RoleBinding that names a Role means another Role in each namespace. Whoever wrote the source was asked by the API server for the
// rights of the Role that stands beside the source; the operator may bind every Role and is asked for nothing. So a copy of such a
// binding is written only where the copy of that very Role stands: else a user could bind themselves to whatever Role of that name
// somebody more powerful has made below.

// roles is the kind Role, which such a RoleBinding names.
var roles = rbacv1.SchemeGroupVersion.WithKind("Role").GroupKind()

// otherRoleError says that the Role that a RoleBinding names is another one where its copy would go, or none.
type otherRoleError struct{ namespace, role, source string }

func (e otherRoleError) Error() string {
	return fmt.Sprintf("Role %q of %s is not the copy of the one of %s: propagate that Role in mode update, or bind a ClusterRole", e.role, e.namespace, e.source)
}

// unkeptBindingError says that a RoleBinding in mode create names this Role: nobody would withdraw the copy when the Role's copy goes.
type unkeptBindingError string

func (e unkeptBindingError) Error() string {
	return fmt.Sprintf("it names Role %q, and such a RoleBinding is copied in mode update only: label it %s=%s, or bind a ClusterRole", string(e), v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
}

// checkRole returns an otherRoleError unless the Role that the binding names is the same at slot as at its source. It reads the Roles from
// the API server, because a binding is not checked again once it is written, and what a watch has shown may be a moment old. One read
// suffices where the Role at slot is a copy from the source's own namespace. Where that Role comes from another namespace, the Role beside
// the source is read, too: both must have the same origin.
func (c *copies) checkRole(ctx context.Context, slot propagate.Slot, source propagate.Slot, mode string, b body) error {
	if b.Role == "" {
		return nil
	}
	if mode == v1alpha1.ModeCreate {
		return unkeptBindingError(b.Role)
	}
	there, err := c.originOfRole(ctx, slot.Namespace, b.Role)
	if err != nil || there == source.Namespace {
		return err
	}
	meant := ""
	if there != "" && there != slot.Namespace {
		if meant, err = c.originOfRole(ctx, source.Namespace, b.Role); err != nil {
			return err
		}
	}
	if meant == "" || there != meant {
		return otherRoleError{slot.Namespace, b.Role, source.Namespace}
	}
	return nil
}

// originOfRole returns the namespace whose Role stands in namespace under this name: the namespace of its source if the Role is a copy that
// nobody else may change, otherwise namespace itself; "" if there is no such Role.
func (c *copies) originOfRole(ctx context.Context, namespace, name string) (string, error) {
	slot := propagate.Slot{Kind: roles, Namespace: namespace, Name: name}
	meta, err := c.writer.Metadata(ctx, rbacv1.SchemeGroupVersion.WithResource("roles"), namespace, name)
	reads.WithLabelValues(slot.Kind.Group, slot.Kind.Kind, "copy").Inc()
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	from, hash := meta.Labels[v1alpha1.LabelInheritedFrom], propagate.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	if from != "" && hash.Mode == v1alpha1.ModeUpdate && hash.Place == propagate.PlaceOf(slot, from) {
		return from, nil
	}
	return namespace, nil
}

// handleOtherRole tries the slot again soon, because the copy of the Role may be on its way. After a few such tries it reports the copy as
// rejected.
func (c *copies) handleOtherRole(slot propagate.Slot, action propagate.Action, err error) {
	const soon = 3
	if known := c.troubles.of(slot); known.reason == "" && known.tries < soon {
		noted, _ := c.troubles.note(slot, trouble{text: err.Error()})
		c.queue.AddAfter(slotKey(slot), copying.Backoff(time.Second/4, c.timing.ConflictMax, noted.tries))
		return
	}
	c.measure.endSlot(slot)
	c.noteRejection(slot, action, err)
}

// requeueBindings is called when something was done about role: it queues the RoleBindings in role's namespace that could not be written there,
// because role may be the Role that they name, and those that name role, because they go with it.
func (c *copies) requeueBindings(role propagate.Slot) {
	if role.Kind != roles {
		return
	}
	c.queue.Add(slotKeys(c.facts.bindingsTo(role))...)
	for slot := range c.troubles.in(role.Namespace) {
		if propagate.GivesRights(slot) {
			c.queue.Add(slotKey(slot))
		}
	}
}
