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
	// old are the ResourceQuotas by which the peer limits namespaces, shares those of Warren's operator, by namespace.
	old    map[string][]*corev1.ResourceQuota
	shares map[string]*corev1.ResourceQuota
}

// readTreeQuotas reads Warren's quotas, and the ResourceQuotas that match one of peers.
func (r *reader) readTreeQuotas(ctx context.Context, q *treeQuotas, peers ...client.ListOption) error {
	q.ours, q.old, q.shares = map[Object]*v1alpha1.HierarchicalResourceQuota{}, map[string][]*corev1.ResourceQuota{},
		map[string]*corev1.ResourceQuota{}
	err := gather.ListEach(ctx, r.api, &v1alpha1.HierarchicalResourceQuotaList{}, func(object client.Object) {
		q.ours[treeQuotaNamed(object.GetNamespace(), object.GetName())] = object.(*v1alpha1.HierarchicalResourceQuota)
	})
	if q.served = !meta.IsNoMatchError(err); q.served && err != nil {
		return fmt.Errorf("list HierarchicalResourceQuotas: %w", err)
	}
	for _, which := range peers {
		err := gather.ListEach(ctx, r.api, &corev1.ResourceQuotaList{}, func(object client.Object) {
			q.old[object.GetNamespace()] = append(q.old[object.GetNamespace()], object.(*corev1.ResourceQuota))
		}, which)
		if err != nil {
			return fmt.Errorf("list ResourceQuotas: %w", err)
		}
	}
	err = gather.ListEach(ctx, r.api, &corev1.ResourceQuotaList{}, func(object client.Object) {
		q.shares[object.GetNamespace()] = object.(*corev1.ResourceQuota)
	}, client.MatchingFields{metav1.ObjectNameField: budget.QuotaName})
	if err != nil {
		return fmt.Errorf("list ResourceQuotas: %w", err)
	}
	return nil
}

func objectOfQuota(q *corev1.ResourceQuota) Object {
	return Object{"v1", "ResourceQuota", q.Namespace, q.Name}
}

func treeQuotaNamed(namespace, name string) Object {
	return warrenObject("HierarchicalResourceQuota", namespace, name)
}

// planTreeQuotas adds the steps that make Warren's HierarchicalResourceQuotas, and those that delete the peer's ResourceQuotas.
func (p *planner) planTreeQuotas() {
	limits := limitedKeys{}
	for at, ours := range p.Quotas.ours {
		addLimitedKeys(limits, at.Namespace, ours.Spec.Hard)
	}
	for name, spec := range p.Tenants {
		if now := p.LNamespaces[name]; now != nil {
			spec = now.Spec
		}
		if spec.Limits != nil {
			addLimitedKeys(limits, name, spec.Limits.Hard)
		}
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
			addLimitedKeys(limits, q.Namespace, q.hard)
		}
		if gap != "" {
			p.draft.addDraftGap("HierarchicalResourceQuota "+q.Namespace+"/"+q.Name, gap)
		} else if p.Quotas.ours[q.Object] == nil {
			p.draft.addCreateStep(Budgets, 0, q.Object, map[string]any{"hard": q.hard})
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(p.Quotas.old)) {
		for _, old := range p.Quotas.old[namespace] {
			if !p.KeptQuotas[objectOfQuota(old)] {
				p.planQuotaRemoval(limits, old)
			}
		}
	}
}

// planQuotaRemoval adds the step that deletes a ResourceQuota of the peer's. It is in the last wave: all that the ResourceQuota limits is
// then limited by the share of the namespace, so no namespace is without a ResourceQuota for a moment.
func (p *planner) planQuotaRemoval(limits limitedKeys, old *corev1.ResourceQuota) {
	left := slices.DeleteFunc(slices.Sorted(maps.Keys(old.Spec.Hard)), func(key corev1.ResourceName) bool {
		return slices.ContainsFunc(p.end.Place(old.Namespace).Path, func(at string) bool { return limits[at][key] })
	})
	switch {
	case len(left) == 0:
		p.draft.steps = append(p.draft.steps, Step{Phase: Finish, wave: 4, Verb: Delete, uid: string(old.UID), version: old.ResourceVersion,
			Object: objectOfQuota(old)})
	case p.Quotas.served:
		p.draft.addDraftGap(objectOfQuota(old).String(), fmt.Sprintf("no quota of Warren limits %s there: the ResourceQuota "+
			"stays, and you may delete it", left[0]))
	}
}

// limitedKeys are the resources that Warren limits in a namespace and all below it, by namespace.
type limitedKeys map[string]map[corev1.ResourceName]bool

func addLimitedKeys[K ~string, V any](limits limitedKeys, at string, hard map[K]V) {
	if limits[at] == nil {
		limits[at] = map[corev1.ResourceName]bool{}
	}
	for key := range hard {
		limits[at][corev1.ResourceName(key)] = true
	}
}

// awaitedTreeQuota returns the quota that must hold before the next wave; "" for none. Warren's quotas must be ready before the last phase,
// and the share of a namespace must be counted before a ResourceQuota that the peer wrote there is deleted.
func awaitedTreeQuota(wave []Step, estate *Estate, c Cluster) string {
	isMade := func(object Object, now metav1.Object) bool {
		return c.Peer.Record != nil && c.Peer.Record.isMadeByMigration(object, now)
	}
	for _, q := range estate.TreeQuotas {
		if ours := c.Quotas.ours[q.Object]; ours != nil && isMade(q.Object, ours) {
			ready := v1alpha1.FindCondition(ours.Status.Conditions, v1alpha1.ConditionReady)
			if why := reasonNotEnforced(q.Object, ready, ours.Generation); why != "" {
				return why
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(estate.Tenants)) {
		object, lns := warrenObject("LNamespace", "", name), c.LNamespaces[name]
		if c.Quotas.served && lns != nil && lns.Spec.Limits != nil && len(lns.Spec.Limits.Hard) > 0 && isMade(object, lns) {
			enforced := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBudgetEnforced)
			if why := reasonNotEnforced(object, enforced, lns.Generation); why != "" {
				return why
			}
		}
	}
	for _, step := range wave {
		for _, old := range c.Quotas.old[step.Object.Namespace] {
			if step.Verb == Delete && step.Object == objectOfQuota(old) {
				if why := reasonNotCounted(old, c.Quotas.shares[old.Namespace]); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// reasonNotEnforced returns what must happen until Warren enforces the limit of an object, by its condition; "" if it does.
func reasonNotEnforced(object Object, enforced *metav1.Condition, generation int64) string {
	if enforced == nil || enforced.ObservedGeneration != generation {
		return fmt.Sprintf("Warren to enforce %s: check that the operator runs, with component budgets", object)
	}
	if enforced.Status != metav1.ConditionTrue && enforced.Reason != string(v1alpha1.ReasonExceeded) {
		return fmt.Sprintf("the limits of %s to hold: %s", object, enforced.Message)
	}
	return ""
}

// reasonNotCounted returns what must happen until the share of a namespace limits all that the ResourceQuota old limits; "" if it does.
func reasonNotCounted(old, share *corev1.ResourceQuota) string {
	for key := range old.Spec.Hard {
		if share == nil {
			return fmt.Sprintf("Warren to make ResourceQuota %s/%s", old.Namespace, budget.QuotaName)
		}
		if _, counted := share.Status.Hard[key]; !counted {
			return fmt.Sprintf("Kubernetes to count %s in ResourceQuota %s/%s", key, old.Namespace, budget.QuotaName)
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
