package doctor

import (
	"strings"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		tenants map[v1alpha1.Reason][]string
		status  Status
		message string
	}{
		"none": {nil, OK, "no tenant has a budget"},
		"all hold": {map[v1alpha1.Reason][]string{v1alpha1.ReasonEnforced: {"shop"}, v1alpha1.ReasonExceeded: {"payments"}}, OK,
			"the budgets of all tenants hold"},
		"not installed": {map[v1alpha1.Reason][]string{v1alpha1.ReasonNotInstalled: {"payments"}}, Warning,
			"hard is set for payments, but component budgets is not installed"},
		"not allowed": {map[v1alpha1.Reason][]string{v1alpha1.ReasonForbidden: {"payments"}}, Warning,
			"the operator lacks rights for the budgets of payments"},
		"not counted": {map[v1alpha1.Reason][]string{v1alpha1.ReasonNotCounted: {"payments"}}, Warning,
			"Kubernetes has not counted a ResourceQuota of payments"},
	} {
		t.Run(name, func(t *testing.T) {
			check := judgeBudgets(c.tenants)
			if check.Status != c.status || !strings.HasPrefix(check.Message, c.message) || (check.Advice == "") != (c.status == OK) {
				t.Errorf("%+v", check)
			}
		})
	}
}
