package sub

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/forest"
)

// awaitReady waits until a SubNamespace that was just made is ready. It returns an error once a condition reports that
// waiting won't help.
func awaitReady(ctx context.Context, api client.Reader, made *v1alpha1.SubNamespace) (*v1alpha1.SubNamespace, error) {
	now := &v1alpha1.SubNamespace{}
	return now, gather.PollUntil(ctx, func(ctx context.Context) (bool, error) {
		if err := api.Get(ctx, client.ObjectKeyFromObject(made), now); err != nil {
			return false, err
		}
		if now.Status.ObservedGeneration != now.Generation {
			return false, nil
		}
		if stalled := v1alpha1.FindCondition(now.Status.Conditions, v1alpha1.ConditionStalled); stalled != nil && stalled.Status ==
			metav1.ConditionTrue {
			return false, fmt.Errorf("SubNamespace %s/%s was created, but is not ready: %s: %s", now.Namespace, now.Name,
				stalled.Reason, stalled.Message)
		}
		ready := v1alpha1.FindCondition(now.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionTrue, nil
	})
}

// awaitGone waits until a deleted SubNamespace and its namespace no longer exist. Once the RoleBindings in the
// namespace are gone, a tenant's user may no longer read the namespace. From then on only the SubNamespace counts.
// owned is nil if the SubNamespace owns no namespace. What keeps the namespace from ending is written to out.
func awaitGone(ctx context.Context, api client.Reader, deleted *v1alpha1.SubNamespace, owned *metav1.PartialObjectMetadata,
	out io.Writer) error {
	report := terminationReport{out: out, began: time.Now()}
	return gather.PollUntil(ctx, func(ctx context.Context) (bool, error) {
		// The SubNamespace is read first, because the operator deletes the namespace before it removes its finalizer from the
		// SubNamespace.
		sub, err := gather.ReadSubNamespace(ctx, api, deleted.Namespace, deleted.Name)
		if err != nil {
			return false, err
		}
		released := sub == nil || sub.UID != deleted.UID
		if owned == nil {
			return released, nil
		}
		now := &corev1.Namespace{}
		err = api.Get(ctx, client.ObjectKey{Name: owned.Name}, now)
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != owned.UID:
			return released, nil
		case failure.Refused(err):
			return released, nil
		case err != nil:
			return false, err
		case released && now.DeletionTimestamp == nil:
			return false, fmt.Errorf("SubNamespace %s/%s is gone, but its namespace stays: an Event in namespace %s says why", deleted.Namespace,
				deleted.Name, deleted.Namespace)
		}
		report.printRemaining(now)
		return false, nil
	})
}

// reportAfter is how long a namespace may take to end before awaitGone writes what remains in it.
const reportAfter = 5 * time.Second

// terminationReport writes what keeps a namespace from ending, each time that changes.
type terminationReport struct {
	out   io.Writer
	began time.Time
	told  string
}

func (r *terminationReport) printRemaining(namespace *corev1.Namespace) {
	remaining := forest.DescribeRemaining(namespace.Status.Conditions)
	if remaining == r.told || time.Since(r.began) < reportAfter {
		return
	}
	r.told = remaining
	if remaining != "" {
		terminal.Fprintf(r.out, "Waiting until namespace %s has ended: %s\n", namespace.Name, remaining)
	}
}

// operatorPatience bounds a wait for the operator that the user has not asked for with --wait.
const operatorPatience = 30 * time.Second

// awaitEnd waits for the end of SubNamespace parent/name if it is being deleted, as after a move: with the namespace
// below this parent again, the operator would delete the namespace, too.
func awaitEnd(ctx context.Context, api client.Reader, parent, name string) error {
	sub, err := gather.ReadSubNamespace(ctx, api, parent, name)
	if err != nil || sub == nil || sub.DeletionTimestamp.IsZero() {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	if err := awaitGone(patient, api, sub, nil, io.Discard); !wait.Interrupted(err) || ctx.Err() != nil {
		return err
	}
	if sub, err = gather.ReadSubNamespace(ctx, api, parent, name); err != nil || sub == nil {
		return err
	}
	if slices.Contains(sub.Finalizers, v1alpha1.FinalizerSubNamespace) {
		return fmt.Errorf("nothing was changed: SubNamespace %s/%s is still being deleted after %s, and would take namespace %s with it; "+
			"is the operator running?", parent, name, operatorPatience, name)
	}
	return fmt.Errorf("nothing was changed: SubNamespace %s/%s is still being deleted after %s; these finalizers hold it: %s", parent, name,
		operatorPatience, strings.Join(sub.Finalizers, ", "))
}

// awaitCascading waits until the operator has written the annotation on a namespace that lets the namespaces below be
// deleted with it. The webhook for deletions decides by this annotation.
func awaitCascading(ctx context.Context, api client.Reader, name string) error {
	patient, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	err := gather.PollUntil(patient, func(ctx context.Context) (bool, error) {
		now, err := gather.ReadNamespace(ctx, api, name)
		return now.Annotations[v1alpha1.AnnotationCascading] == v1alpha1.True, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("nothing was deleted: the operator has not applied allowCascadingDeletion of %s within %s; is it running?",
			name, operatorPatience)
	}
	return err
}
