package doctor

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
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
	return judgeBudgets(tenants)
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
	return passOf(budgetsName, "the budgets of all tenants hold")
}
