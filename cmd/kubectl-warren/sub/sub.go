// Package sub is the commands about sub-namespaces: create, delete, move, graft and cut.
package sub

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// Commands are the commands about sub-namespaces. In other plugins they have names such as "sub create".
func Commands(inv *invocation.Invocation) []*cobra.Command {
	all := []*cobra.Command{createCommand(inv), deleteCommand(inv), moveCommand(inv), graftCommand(inv), cutCommand(inv)}
	for _, command := range all {
		command.SuggestFor = []string{"sub"}
	}
	return all
}

// New returns the SubNamespace called name in parent, with its kind set.
func New(parent, name string, spec v1alpha1.SubNamespaceSpec) *v1alpha1.SubNamespace {
	sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: parent, Name: name}, Spec: spec}
	sub.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SubNamespace"))
	return sub
}

// parentOf returns the parent of a sub-namespace; bound reports whether a SubNamespace owns it.
func parentOf(namespace *metav1.PartialObjectMetadata) (parent string, bound bool, err error) {
	parent = namespace.Labels[v1alpha1.LabelParent]
	if parent == "" {
		return "", false, fmt.Errorf("namespace %s is no sub-namespace", namespace.Name)
	}
	return parent, namespace.Labels[v1alpha1.LabelBound] == v1alpha1.True, nil
}

// isBoundTo reports whether the SubNamespace of a namespace's name in parent owns it.
func isBoundTo(namespace *metav1.PartialObjectMetadata, parent string) bool {
	return namespace.Labels[v1alpha1.LabelParent] == parent && namespace.Labels[v1alpha1.LabelBound] == v1alpha1.True
}

// deleteReplacedSub deletes a SubNamespace that has just lost its namespace, which has another parent now or is a root.
// Until the operator has seen that, it refuses the deletion if the namespace has sub-namespaces, so deleteReplacedSub
// tries again.
func deleteReplacedSub(ctx context.Context, api client.Client, parent, name string) error {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 5}
	err := retry.OnError(backoff, apierrors.IsForbidden, func() error {
		switch now, err := gather.ReadNamespace(ctx, api, name); {
		case err != nil && !apierrors.IsNotFound(err):
			return err
		case err == nil && isBoundTo(now, parent):
			return errors.New("another client has just moved the namespace back")
		}
		return client.IgnoreNotFound(api.Delete(ctx, New(parent, name, v1alpha1.SubNamespaceSpec{})))
	})
	if err != nil {
		return fmt.Errorf("namespace %s has left SubNamespace %s/%s, which was not deleted: %w", name, parent, name, err)
	}
	return nil
}

// checkUnplaced returns an error for a namespace whose HierarchyConfiguration asks for a parent, because that request
// would undo the move.
func checkUnplaced(ctx context.Context, api client.Reader, name, advice string) error {
	hc, err := gather.ReadHierarchy(ctx, api, name)
	if err != nil || hc == nil || hc.Spec.Parent == nil || *hc.Spec.Parent == "" {
		return err
	}
	return fmt.Errorf("%s is placed by its HierarchyConfiguration: use kubectl warren set %s %s", name, name, advice)
}

// changedNothing reports whether a failed request has certainly changed nothing: it was refused, or never sent. A
// request without an answer may have changed something.
func changedNothing(err error) bool {
	var status apierrors.APIStatus
	var request *url.Error
	if errors.As(err, &status) {
		return status.Status().Code < 500
	}
	return !errors.As(err, &request)
}
