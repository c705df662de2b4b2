package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
)

// reportLacking writes into the share of each namespace that was refused more than is free which limit has too little, and who can help.
// People who work there may read the share, and often neither the limit nor the LNamespace. Only a refusal is a reason to write, and each
// share gets one such write in reportPace.
func (r *Reconciler) reportLacking(ctx context.Context, t *tree, used []budget.Sum, now time.Time) error {
	var failures []error
	for i := range t.rows {
		row := &t.rows[i]
		refusal, refused := t.refusals[row.Namespace]
		if !refused || row.Fixed || row.Ending || row.Open || row.Spec == nil {
			continue
		}
		text := t.describeLacking(row, refusal.Requested, used)
		if text == "" || text == t.lacking[row.Namespace] ||
			r.reports.begin(client.ObjectKey{Namespace: row.Namespace, Name: budget.QuotaName}, false, now) > 0 {
			continue
		}
		failures = append(failures, r.writeLacking(ctx, row.Namespace, map[string]any{v1alpha1.AnnotationLacking: text,
			v1alpha1.AnnotationLimits: budget.Tell(row, t.limits, used, now)}))
	}
	return errors.Join(failures...)
}

// describeLacking returns a sentence about the first limit above a namespace that has less free than was requested; "" if all have enough.
func (t *tree) describeLacking(row *budget.Row, requested budget.Amounts, used []budget.Sum) string {
	for _, l := range row.Under {
		key := used[l].FindLacking(t.limits[l].Hard, requested)
		if key == "" {
			continue
		}
		who := "a cluster admin or a sudoer to raise spec.hard"
		if t.quotas[l] == nil {
			if who = "a cluster admin to raise spec.limits.hard"; len(t.managers) > 0 {
				who = "a manager (" + forest.Few(t.managers) + ") or " + who
			}
		}
		return fmt.Sprintf("%s: %s had used %s of %s when %s was needed: delete something, or ask %s", key, t.limits[l].Name,
			budget.Format(key, used[l].Used[key]), budget.Format(key, t.limits[l].Hard[key]), budget.Format(key, requested[key]), who)
	}
	return ""
}

// writeLacking writes annotations of a share, guarded by the version that is known.
func (r *Reconciler) writeLacking(ctx context.Context, namespace string, annotations map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	flight, _ := r.known.begin(namespace)
	if flight.UID == "" { // it is gone since the tree was gathered
		r.known.recordRefusal(flight, namespace, nil)
		return nil
	}
	is, err := r.patchShare(ctx, namespace, flight, annotations, map[string]any{})
	if err != nil {
		r.known.recordRefusal(flight, namespace, nil) // where it was carried out all the same, the watch shows that
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("writing into the share of namespace %s why it can't grow: %w", namespace, err)
	}
	r.changeShares(func(t shares) []shareChange { return listed(t.Answered(flight, is)) })
	return nil
}
