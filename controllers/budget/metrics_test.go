package budget

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

func TestMetricsOfBudgets(t *testing.T) {
	told := newReports()
	told.setVerdict("payments", &verdict{reason: v1alpha1.ReasonEnforced, budget: v1alpha1.BudgetStatus{
		Hard: budget.Amounts{"requests.cpu": 1500, "pods": 20}.List(), Used: budget.Amounts{"requests.cpu": 500, "pods": 3}.List()}})
	told.setVerdict("shop", &verdict{reason: v1alpha1.ReasonEnforced, budget: v1alpha1.BudgetStatus{Hard: budget.Amounts{"pods": 1}.List()}})
	told.setVerdict("shop", nil)
	for name, c := range map[string]struct {
		amounts bool
		want    map[string]float64
	}{
		"QUOTA-100 without gate BudgetMetrics, no metric has the name of a tenant": {false, map[string]float64{}},
		"QUOTA-100 with it, each resource of a tenant's budget has what is allowed and what is used": {true, map[string]float64{
			"warren_budget_hard payments requests.cpu": 1.5, "warren_budget_used payments requests.cpu": 0.5,
			"warren_budget_hard payments pods": 20, "warren_budget_used payments pods": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			registry, is := prometheus.NewRegistry(), map[string]float64{}
			registry.MustRegister(gauges{&told, c.amounts})
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				for _, one := range family.Metric {
					if len(one.Label) == 2 { // in the order of their names: resource, tenant
						is[family.GetName()+" "+one.Label[1].GetValue()+" "+one.Label[0].GetValue()] = one.Gauge.GetValue()
					}
				}
			}
			if !maps.Equal(is, c.want) {
				t.Errorf("exposed %v, want %v", is, c.want)
			}
		})
	}
}
