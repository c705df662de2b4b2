package doctor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/quota"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
)

const budgetsName = "budgets"

// checkBudgets checks by condition BudgetEnforced whether the budgets of the tenants hold.
func (p Patient) checkBudgets(ctx context.Context) Check {
	tenants := map[v1alpha1.Reason][]string{}
	err := gather.ListEach(ctx, p.API, &v1alpha1.LNamespaceList{}, func(o client.Object) {
		enforced := v1alpha1.FindCondition(o.(*v1alpha1.LNamespace).Status.Conditions, v1alpha1.ConditionBudgetEnforced)
		if enforced != nil {
			tenants[v1alpha1.Reason(enforced.Reason)] = append(tenants[v1alpha1.Reason(enforced.Reason)], o.GetName())
		}
	})
	if err != nil {
		return warnOfFailedList(budgetsName, "LNamespaces", err)
	}
	check := judgeBudgets(tenants)
	if check.Status != OK {
		return check
	}
	undefaulted, err := p.findUndefaulted(ctx)
	switch {
	case failure.Refused(err) && len(tenants) == 0: // there is probably no share
	case err != nil:
		return warnOfFailedList(budgetsName, "ResourceQuotas and LimitRanges", err)
	case len(undefaulted) > 0:
		return warnOfDefaults(undefaulted)
	}
	return check
}

// findUndefaulted returns the namespaces in which pods that state no requests or limits are refused, because their share counts these,
// and no LimitRange has defaults.
func (p Patient) findUndefaulted(ctx context.Context) (namespaces []string, err error) {
	shares, ranges := map[string]corev1.ResourceList{}, map[string][]corev1.LimitRange{}
	err = gather.ListEach(ctx, p.API, &corev1.ResourceQuotaList{}, func(o client.Object) {
		if hard := o.(*corev1.ResourceQuota).Spec.Hard; len(quota.ListUndefaulted(hard, nil)) > 0 {
			shares[o.GetNamespace()] = hard
		}
	}, client.MatchingFields{"metadata.name": budget.QuotaName})
	if err != nil || len(shares) == 0 {
		return nil, err
	}
	err = gather.ListEach(ctx, p.API, &corev1.LimitRangeList{}, func(o client.Object) {
		ranges[o.GetNamespace()] = append(ranges[o.GetNamespace()], *o.(*corev1.LimitRange))
	})
	for namespace, hard := range shares {
		if len(quota.ListUndefaulted(hard, ranges[namespace])) > 0 {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces, err
}

func warnOfDefaults(namespaces []string) Check {
	return warnOf(budgetsName, "the budget counts requests or limits, and no LimitRange has defaults for them in "+forest.Few(namespaces)+
		": a pod that does not set them is refused there (must specify)",
		"add a LimitRange, such as config/samples/guardrails/limits.yaml in a template; kubectl warren quota -n NAMESPACE names the resources")
}

// judgeBudgets judges the tenants that have a budget, by the reason of their condition.
func judgeBudgets(tenants map[v1alpha1.Reason][]string) Check {
	if idle := tenants[v1alpha1.ReasonNotInstalled]; len(idle) > 0 {
		return warnOf(budgetsName, "hard is set for "+forest.Few(idle)+", but component budgets is not installed: nothing limits these tenants",
			"add component budgets to your overlay, or remove limits.hard")
	}
	if idle := tenants[v1alpha1.ReasonForbidden]; len(idle) > 0 {
		return warnOf(budgetsName, "the operator lacks rights for the budgets of "+forest.Few(idle)+": nothing new is limited",
			"apply component budgets of your overlay again, or remove limits.hard")
	}
	if uncounted := tenants[v1alpha1.ReasonNotCounted]; len(uncounted) > 0 {
		return warnOf(budgetsName, "Kubernetes has not counted a ResourceQuota of "+forest.Few(uncounted)+": people have no rights in these "+
			"namespaces before", "read the message of condition BudgetEnforced, and look at the log of kube-controller-manager")
	}
	if len(tenants) == 0 {
		return passOf(budgetsName, "no tenant has a budget")
	}
	if full := tenants[v1alpha1.ReasonExceeded]; len(full) > 0 { // no fault of the installation: the limit was lowered, or namespaces joined
		return passOf(budgetsName, "the budgets of all tenants hold; more is used than they allow by "+forest.Few(full)+
			", so nothing new is admitted there: kubectl warren quota shows of what")
	}
	return passOf(budgetsName, "the budgets of all tenants hold")
}
