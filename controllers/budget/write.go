package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/internal/pause"
)

// writeTimeout bounds one write.
const writeTimeout = 10 * time.Second

// writeAll writes shares of a tree one after the other; those that fail hinder no other. What has left the tree since the plan is left to
// the request of its new tree.
func (r *Reconciler) writeAll(ctx context.Context, t *tree, shares []budget.Share, now time.Time) error {
	var failures []error
	told := t.tellAll(shares, now)
	for _, share := range shares {
		if treeOf(r.View.Snapshot(), share.Namespace) != t.root {
			continue
		}
		if err := r.writeShare(ctx, share, told[share.Namespace]); err != nil {
			failures = append(failures, fmt.Errorf("writing the share of namespace %s: %w", share.Namespace, err))
		}
	}
	return errors.Join(failures...)
}

// tellAll returns what each share tells those who may read it, by namespace.
func (t *tree) tellAll(shares []budget.Share, now time.Time) map[string]string {
	told := map[string]string{}
	if len(shares) == 0 {
		return told
	}
	used := budget.SumUsed(t.limits, t.rows)
	for _, share := range shares {
		told[share.Namespace] = ""
	}
	for i := range t.rows {
		if _, isWritten := told[t.rows[i].Namespace]; isWritten {
			told[t.rows[i].Namespace] = budget.Tell(&t.rows[i], t.limits, used, now)
		}
	}
	return told
}

// writeShare writes one share, and what it tells, unless it is no longer what the plan knew: then it reads the share, and the next plan
// follows.
func (r *Reconciler) writeShare(ctx context.Context, share budget.Share, told string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	r.known.closeDoor(ctx, share.Namespace)
	defer r.known.openDoor(share.Namespace)
	if share.Hard == nil {
		if err := r.markNamespace(ctx, share.Namespace, false); err != nil {
			return err
		}
	}
	flight, was := r.known.begin(share.Namespace)
	answer, err := r.sendWrite(ctx, share, told, flight, was)
	switch {
	case err == nil:
		r.changeShares(func(t shares) []shareChange {
			if answer == nil {
				return listed(t.Deleted(flight))
			}
			return listed(t.Answered(flight, answer))
		})
		// The share was deleted because the namespace needs none: what the namespace uses counts nowhere.
		r.known.endWrite(share.Namespace, answer == nil)
		return nil
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		r.known.recordRefusal(flight, share.Namespace, nil)
		return r.readShare(ctx, share.Namespace)
	case apianswer.IsRefusal(err) || apierrors.IsTooManyRequests(err):
		r.known.recordRefusal(flight, share.Namespace, err)
	default:
		r.known.recordLost(flight, &share, err)
	}
	return err
}

// sendWrite sends one guarded write. It returns the share as it is then; nil where it was deleted.
func (r *Reconciler) sendWrite(ctx context.Context, share budget.Share, told string, guard *mirror.Flight,
	was budget.Amounts) (answer *corev1.ResourceQuota, err error) {
	is := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: share.Namespace, Name: budget.QuotaName}}
	switch {
	case share.Hard == nil && guard.UID == "":
		return nil, nil
	case share.Hard == nil:
		err = r.Client.Delete(ctx, is, client.Preconditions{UID: &guard.UID, ResourceVersion: &guard.Version})
		copying.CountWrite(writes, "delete", err)
		return nil, err
	case guard.UID == "":
		is.Labels, is.Spec.Hard = map[string]string{"app.kubernetes.io/managed-by": v1alpha1.OperatorName}, share.Hard.List()
		is.Annotations = map[string]string{v1alpha1.AnnotationLimits: told}
		err = r.Client.Create(ctx, is, client.FieldOwner(v1alpha1.OperatorName))
		copying.CountWrite(writes, "create", err)
		return is, err
	}
	annotations := map[string]any{v1alpha1.AnnotationLacking: nil, v1alpha1.AnnotationLimits: told}
	return r.patchShare(ctx, share.Namespace, guard, annotations, map[string]any{"hard": hardPatch(was, share.Hard)})
}

// patchShare sends one guarded patch of a share: of its annotations, which nil removes, and of the spec.
func (r *Reconciler) patchShare(ctx context.Context, namespace string, guard *mirror.Flight, annotations,
	spec map[string]any) (*corev1.ResourceQuota, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": guard.UID, "resourceVersion": guard.Version,
			"annotations": annotations},
		"spec": spec,
	})
	if err != nil {
		return nil, err
	}
	is := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: budget.QuotaName}}
	err = r.Client.Patch(ctx, is, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.OperatorName))
	copying.CountWrite(writes, "update", err)
	return is, err
}

// hardPatch returns now as a merge patch of was: a resource that is left out is removed.
func hardPatch(was, now budget.Amounts) map[string]any {
	patch := map[string]any{}
	for key := range was {
		patch[string(key)] = nil
	}
	for key, quantity := range now.List() {
		patch[string(key)] = quantity
	}
	return patch
}

// readShare reads a share from the API server.
func (r *Reconciler) readShare(ctx context.Context, namespace string) error {
	is := &corev1.ResourceQuota{}
	flight, _ := r.known.begin(namespace)
	switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: budget.QuotaName}, is); {
	case apierrors.IsNotFound(err):
		r.changeShares(func(t shares) []shareChange { return listed(t.Absent(flight)) })
	case err != nil:
		r.known.recordRefusal(flight, namespace, nil)
		return err
	default:
		r.changeShares(func(t shares) []shareChange { return listed(t.Answered(flight, is)) })
	}
	r.known.endWrite(namespace, false)
	// The answer may bring nothing that the watch hasn't brought, so no event follows.
	r.again.AddAfter(pace, requestFor(treeOf(r.View.Snapshot(), namespace)))
	return nil
}

// takeOver waits until a late write of the leader before would show, and reads all shares. Without component budgets, nothing was written.
func (r *Reconciler) takeOver(ctx context.Context) error {
	_ = pause.For(ctx, takeover)
	for ctx.Err() == nil && r.known.waitForState(ctx) {
		all := &corev1.ResourceQuotaList{}
		err := r.Live.List(ctx, all, client.MatchingFields{"metadata.name": budget.QuotaName})
		if err == nil {
			r.changeShares(func(t shares) []shareChange {
				return t.Read(mirror.Everywhere, all.ResourceVersion, pointersTo(all.Items))
			})
			break
		}
		_ = pause.For(ctx, time.Second)
	}
	if ctx.Err() == nil {
		close(r.begun)
	}
	return nil
}

func pointersTo[T any](all []T) []*T {
	pointers := make([]*T, len(all))
	for i := range all {
		pointers[i] = &all[i]
	}
	return pointers
}
