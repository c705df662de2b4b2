package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/budget"
)

// treeQuota is a HierarchicalResourceQuota of the peer's: what a namespace and all below it may use together.
type treeQuota struct {
	Object
	hard   map[string]any
	scoped bool
}

// treeQuotas are the objects by which the quotas over trees are kept now.
type treeQuotas struct {
	// served reports that component budgets is installed.
	served bool
	// ours are Warren's HierarchicalResourceQuotas.
	ours map[Object]*v1alpha1.HierarchicalResourceQuota
	// old are the ResourceQuotas that HNC wrote, shares those of Warren's operator, by namespace.
	old, shares map[string]*corev1.ResourceQuota
}

func (r *reader) readTreeQuotas(ctx context.Context, q *treeQuotas) error {
	q.ours, q.old, q.shares = map[Object]*v1alpha1.HierarchicalResourceQuota{}, map[string]*corev1.ResourceQuota{},
		map[string]*corev1.ResourceQuota{}
	err := gather.ListEach(ctx, r.api, &v1alpha1.HierarchicalResourceQuotaList{}, func(object client.Object) {
		q.ours[treeQuotaNamed(object.GetNamespace(), object.GetName())] = object.(*v1alpha1.HierarchicalResourceQuota)
	})
	if q.served = !meta.IsNoMatchError(err); q.served && err != nil {
		return fmt.Errorf("list HierarchicalResourceQuotas: %w", err)
	}
	for name, into := range map[string]map[string]*corev1.ResourceQuota{hncQuotaOfNamespace: q.old, budget.QuotaName: q.shares} {
		err := gather.ListEach(ctx, r.api, &corev1.ResourceQuotaList{}, func(object client.Object) {
			into[object.GetNamespace()] = object.(*corev1.ResourceQuota)
		}, client.MatchingFields{metav1.ObjectNameField: name})
		if err != nil {
			return fmt.Errorf("list ResourceQuotas: %w", err)
		}
	}
	return nil
}

func treeQuotaNamed(namespace, name string) Object {
	return warrenObject("HierarchicalResourceQuota", namespace, name)
}

// planTreeQuotas adds the steps that make Warren's HierarchicalResourceQuotas. The last step deletes the ResourceQuotas that HNC wrote: all
// that these limit is then limited by the shares of Warren's, so no namespace is without a ResourceQuota for a moment.
func (p *planner) planTreeQuotas() {
	limits := map[Object]map[corev1.ResourceName]bool{}
	for at, ours := range p.Quotas.ours {
		limits[at] = keysOfBudget(ours.Spec.Hard)
	}
	for _, q := range p.TreeQuotas {
		gap := ""
		switch {
		case !p.Quotas.served:
			gap = "Warren's component budgets is not installed: add it to your overlay before --apply; else each ResourceQuota " +
				hncQuotaOfNamespace + " goes on to limit its namespace alone"
		case q.scoped:
			gap = "it has a scopeSelector, and quotas over trees have no scopes: the ResourceQuotas " + hncQuotaOfNamespace +
				" go on to limit each namespace alone"
		case !p.end.Place(q.Namespace).InTree():
			gap = "its namespace is in no tree, so the quota would limit nothing"
		default:
			limits[q.Object] = keysOfBudget(q.hard)
		}
		if gap != "" {
			p.draft.addDraftGap("HierarchicalResourceQuota "+q.Namespace+"/"+q.Name, gap)
		} else if p.Quotas.ours[q.Object] == nil {
			p.draft.addCreateStep(Budgets, 0, q.Object, map[string]any{"hard": q.hard})
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(p.Quotas.old)) {
		old := p.Quotas.old[namespace]
		left := slices.DeleteFunc(slices.Sorted(maps.Keys(old.Spec.Hard)), func(key corev1.ResourceName) bool {
			for at, keys := range limits {
				if keys[key] && (at.Namespace == namespace || p.end.IsBelow(namespace, at.Namespace)) {
					return true
				}
			}
			return false
		})
		switch {
		case len(left) == 0:
			p.draft.steps = append(p.draft.steps, Step{Phase: Finish, wave: 3, Verb: Delete, uid: string(old.UID), version: old.ResourceVersion,
				Object: Object{"v1", "ResourceQuota", namespace, old.Name}})
		case p.Quotas.served:
			p.draft.addDraftGap("ResourceQuota "+namespace+"/"+old.Name, fmt.Sprintf("no quota of Warren limits %s there: the ResourceQuota "+
				"stays, and you may delete it", left[0]))
		}
	}
}

func keysOfBudget[K ~string, V any](hard map[K]V) map[corev1.ResourceName]bool {
	keys := map[corev1.ResourceName]bool{}
	for key := range hard {
		keys[corev1.ResourceName(key)] = true
	}
	return keys
}

// awaitedTreeQuota returns the quota that must hold before the next wave; "" for none. Warren's quotas must be ready before the last phase,
// and the share of a namespace must be counted before the ResourceQuota that HNC wrote there is deleted.
func awaitedTreeQuota(wave []Step, estate *Estate, c Cluster) string {
	for _, q := range estate.TreeQuotas {
		ours := c.Quotas.ours[q.Object]
		if ours == nil || c.Peer.Record == nil || !c.Peer.Record.isMadeByMigration(q.Object, ours) {
			continue
		}
		ready := v1alpha1.FindCondition(ours.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ours.Status.ObservedGeneration != ours.Generation {
			return fmt.Sprintf("Warren to enforce %s: check that the operator runs, with component budgets", q.Object)
		}
		if ready.Status != metav1.ConditionTrue && ready.Reason != string(v1alpha1.ReasonExceeded) {
			return fmt.Sprintf("%s to be ready: %s", q.Object, ready.Message)
		}
	}
	for _, step := range wave {
		if old := c.Quotas.old[step.Object.Namespace]; step.Object.Kind == "ResourceQuota" && step.Verb == Delete && old != nil {
			share := c.Quotas.shares[old.Namespace]
			for key := range old.Spec.Hard {
				if share == nil {
					return fmt.Sprintf("Warren to make ResourceQuota %s/%s", old.Namespace, budget.QuotaName)
				}
				if _, counted := share.Status.Hard[key]; !counted {
					return fmt.Sprintf("Kubernetes to count %s in ResourceQuota %s/%s", key, old.Namespace, budget.QuotaName)
				}
			}
		}
	}
	return ""
}

// undoTreeQuotas deletes the HierarchicalResourceQuotas that the migration made. The ResourceQuotas that HNC wrote still exist.
func (u *undoer) undoTreeQuotas() {
	for _, q := range u.TreeQuotas {
		if ours := u.Quotas.ours[q.Object]; ours != nil && u.Peer.Record.isMadeByMigration(q.Object, ours) {
			u.draft.addDeleteStep(0, q.Object, ours)
		}
	}
}

// tryTreeQuotas fails if the API server would refuse one of the HierarchicalResourceQuotas, before anything is written.
func (r *reader) tryTreeQuotas(ctx context.Context, plan Plan) error {
	for _, step := range plan.Steps {
		if step.Phase == Budgets {
			if err := sendStepRequest(ctx, client.NewDryRunClient(r.api), step); err != nil {
				return fmt.Errorf("nothing was written, because %s would be refused: correct it in %s first: %w", step.Object, r.peer.title, err)
			}
		}
	}
	return nil
}
