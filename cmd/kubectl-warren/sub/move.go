package sub

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/change"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// moveCommand is the command "move NAME PARENT".
func moveCommand(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move NAME PARENT",
		Short: "Move a sub-namespace, with all that is below it, to another parent (cluster admins)",
		Long: "Move a sub-namespace, with all that is below it, to another parent, by the label " + v1alpha1.LabelParent + ".\n" +
			"If the sub-namespace is bound, a SubNamespace is first created in the new parent, and at the end the old one is deleted.\n" +
			"If the label is refused, the new SubNamespace is deleted. If the command is interrupted, run it again: it finishes the move.\n" +
			"To move a namespace that a HierarchyConfiguration placed, use kubectl warren set.",
		Example:           "  kubectl warren move pay-web shop",
		Args:              invocation.ExactlyAsUsage("a sub-namespace and its new parent"),
		ValidArgsFunction: inv.CompleteFirst(2),
	}
	leave := cmd.Flags().Bool("leave-original", false, "Leave the old SubNamespace; deleting it later keeps the namespace")
	c := change.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := invocation.CheckNamespaces(args...); err != nil {
			return err
		}
		api, err := inv.Connect()
		if err != nil {
			return err
		}
		unwarned, err := inv.ConnectUnwarned()
		if err != nil {
			return err
		}
		m := &move{api: api, unwarned: unwarned, name: args[0], to: args[1], leave: *leave, change: c}
		if err := m.moveNamespace(cmd.Context()); err != nil {
			return err
		}
		return change.PrintRelabelled(inv, m.namespace, m.changed, c, "moved")
	}
	return change.ForAdmins(cmd)
}

// move takes a sub-namespace from one parent to another.
type move struct {
	api client.Client
	// unwarned creates the new SubNamespace, about which the API server warns until the namespace is moved.
	unwarned client.Client
	name, to string
	leave    bool // the old SubNamespace stays
	change   change.Options

	// from is the old parent; "" if there is none any more.
	from string
	// made is the SubNamespace that was made in the new parent; nil if it already existed.
	made *v1alpha1.SubNamespace

	namespace *metav1.PartialObjectMetadata
	changed   bool
}

func (m *move) moveNamespace(ctx context.Context) (err error) {
	if m.namespace, err = gather.ReadNamespace(ctx, m.api, m.name); err != nil {
		return err
	}
	parent, bound, err := parentOf(m.namespace)
	switch {
	case err != nil:
		return err
	case m.namespace.DeletionTimestamp != nil:
		return fmt.Errorf("namespace %s is being deleted", m.name)
	case !bound && parent != m.to:
		if err := checkUnplaced(ctx, m.api, m.name, "--parent"); err != nil {
			return err
		}
		return m.changeParent(ctx)
	case !bound:
		return nil
	}
	m.from = parent
	if m.from != m.to {
		if err := awaitEnd(ctx, m.api, m.to, m.name); err != nil {
			return err
		}
	}
	if err := m.createNewSub(ctx); err != nil {
		return err
	}
	if err := m.changeParent(ctx); err != nil {
		return m.undoCreation(ctx, err)
	}
	return m.deleteOldSub(ctx)
}

// createNewSub makes the SubNamespace in the new parent, with the spec of the old one. Until the namespace has that
// parent, the new SubNamespace reports that another namespace has its name.
func (m *move) createNewSub(ctx context.Context) error {
	waiting, err := gather.ReadSubNamespace(ctx, m.api, m.to, m.name)
	if err != nil {
		return err
	}
	if m.from == m.to { // an earlier call ended after it had changed the label
		m.from = ""
		if waiting != nil {
			m.from = waiting.Annotations[v1alpha1.AnnotationMovedFrom]
		}
	}
	if waiting != nil {
		return nil
	}
	m.changed = true
	sub, err := m.newSubNamespace(ctx)
	if err != nil || m.change.IsRehearsed() {
		return err
	}
	if err := m.change.ClientFor(m.unwarned).Create(ctx, sub); err != nil {
		return err
	}
	m.made = sub
	return nil
}

// newSubNamespace returns the SubNamespace for the new parent. An annotation names the old parent, because once the
// label is changed nothing else names which SubNamespace must be deleted.
func (m *move) newSubNamespace(ctx context.Context) (*v1alpha1.SubNamespace, error) {
	sub := New(m.to, m.name, v1alpha1.SubNamespaceSpec{})
	if m.from == "" {
		return sub, nil
	}
	old, err := gather.ReadSubNamespace(ctx, m.api, m.from, m.name)
	if old == nil {
		return sub, err
	}
	sub.Spec = old.Spec
	if !m.leave {
		sub.Annotations = map[string]string{v1alpha1.AnnotationMovedFrom: m.from}
	}
	return sub, nil
}

// changeParent changes the parent, unless another client has changed it meanwhile.
func (m *move) changeParent(ctx context.Context) error {
	namespace, changed, err := change.Relabel(ctx, m.api, m.name, m.change, func(now *metav1.PartialObjectMetadata) (change.Labels, error) {
		if parent := now.Labels[v1alpha1.LabelParent]; now.UID != m.namespace.UID || parent != m.namespace.Labels[v1alpha1.LabelParent] &&
			parent != m.to {
			return nil, fmt.Errorf("another client has just moved or replaced namespace %s: look at it again", m.name)
		}
		return change.Labels{v1alpha1.LabelParent: m.to}, nil
	})
	if err == nil {
		m.namespace, m.changed = namespace, m.changed || changed
	}
	return err
}

// undoCreation deletes the new SubNamespace if the label was certainly not changed. Otherwise the new SubNamespace may
// own the namespace, and its deletion would delete the namespace.
func (m *move) undoCreation(ctx context.Context, why error) error {
	if m.made == nil || !m.change.IsStored() {
		return why
	}
	now, err := gather.ReadNamespace(ctx, m.api, m.name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%w; it is not known whether namespace %s was moved, and SubNamespace %s/%s may own it: run the command again", why,
			m.name, m.to, m.name)
	}
	if err == nil && now.Labels[v1alpha1.LabelParent] != m.to && changedNothing(why) {
		err = client.IgnoreNotFound(m.api.Delete(ctx, m.made, client.Preconditions{UID: &m.made.UID}))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%w; SubNamespace %s/%s, which waits for the namespace, still exists: delete it", why, m.to, m.name)
	}
	return why
}

// deleteOldSub deletes the SubNamespace that no longer has a namespace, and the annotation that named its parent.
func (m *move) deleteOldSub(ctx context.Context) error {
	if m.leave || m.from == "" || !m.change.IsStored() {
		return nil
	}
	m.changed = true
	if err := deleteReplacedSub(ctx, m.api, m.from, m.name); err != nil {
		return err
	}
	done := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationMovedFrom+`":null}}}`))
	return m.api.Patch(ctx, New(m.to, m.name, v1alpha1.SubNamespaceSpec{}), done)
}
