package build

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// CheckedBudget is a budget with the sentence that refuses it, or "" if it is accepted.
type CheckedBudget struct {
	Name    string
	Hard    v1alpha1.Budget
	Refusal string
}

// Budgets are good and bad budgets. The CRDs and internal/budget must agree on each.
func Budgets() []CheckedBudget {
	one := func(key, amount, refusal string) CheckedBudget {
		if refusal != "" {
			refusal = key + ": " + refusal
		}
		return CheckedBudget{key + " " + amount, v1alpha1.Budget{corev1.ResourceName(key): resource.MustParse(amount)}, refusal}
	}
	const (
		unknown  = "is no resource that a ResourceQuota limits: write one such as pods, requests.cpu or count/jobs.batch"
		operator = "would keep out what the operator writes here: leave it out"
		negative = "must be 0 or more: 0 allows none"
		divided  = "must be a whole number: only cpu, memory and storage have fractions"
	)
	many := v1alpha1.Budget{}
	for n := range 17 {
		many[corev1.ResourceName(fmt.Sprintf("count/kind%d.example.com", n))] = resource.MustParse("1")
	}
	all := []CheckedBudget{
		one("pods", "-1", negative), one("requests.cpu", "-500m", negative), one("pods", "1.5", divided),
		one("count/jobs.batch", "1.5", divided),
		one("requests.example.com/cpu", "1.5", divided), one("foo", "1", unknown), one("count/", "1", unknown),
		one("a b/c", "1", unknown), one("count/Foo!", "1", unknown),
		one("limits.hugepages-2Mi", "1", unknown), one("a..b/x", "1", unknown), one("a.-b/x", "1", unknown),
		one("count/"+strings.Repeat("x", 64), "1", unknown), one(strings.Repeat("x", 253)+"/x", "1", unknown),
		{"17 keys", many, "must have at most 16 items"},
		one("pods", "100", ""), one("pods", "5", ""), one("pods", "0", ""), one("requests.cpu", "500m", ""), one("requests.storage", "2Ti", ""),
		one("requests.memory", "1.5Gi", ""), one("count/jobs.batch", "5", ""), one("requests.nvidia.com/gpu", "4", ""),
		one("gold.storageclass.storage.k8s.io/requests.storage", "2Ti", ""), one("requests.hugepages-2Mi", "1Gi", ""),
	}
	for _, key := range []string{"resourcequotas", "count/resourcequotas", "count/limitranges", "count/networkpolicies.networking.k8s.io",
		"count/roles.rbac.authorization.k8s.io", "count/rolebindings.rbac.authorization.k8s.io", "count/subnamespaces.tenancy.warren.dev",
		"count/hierarchyconfigurations.tenancy.warren.dev"} {
		all = append(all, one(key, "1", operator))
	}
	return all
}
