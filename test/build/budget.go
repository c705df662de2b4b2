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
		counted  = "is not counted by Kubernetes: write requests.NAME for an extended resource, or count/NAME for objects"
		large    = "must be at most 9007199254740991: the API server refuses larger numbers"
		exponent = "must have an exponent of at most two digits"
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
		one("example.com/memory", "8E", counted), one("nvidia.com/gpu", "4", counted), one("limits.nvidia.com/gpu", "4", counted),
		one("requests.example.com/memory", "1.5", divided), one("requests.volcano.sh/vgpu-memory", "8E", large),
		one("pods", "9007199254740992", large), one("count/pods", "8E", large), one("requests.cpu", "1E", large),
		one("gold.storageclass.storage.k8s.io/requests.storage", "1E", large),
		one("memory", "1e1000", exponent), one("pods", "1e2000000000", exponent),
		{"17 keys", many, "must have at most 16 items"},
		one("requests.volcano.sh/vgpu-memory", "9007199254740991", ""), one("requests.storage", "8E", ""), one("memory", "7Ei", ""),
		one("gpu.deviceclass.resource.k8s.io/devices", "4", ""), one("requests.cpu", "9007199254740991", ""),
		one("gold.storageclass.storage.k8s.io/persistentvolumeclaims", "4", ""), one("hugepages-2Mi", "8E", ""),
		one("gold.storageclass.storage.k8s.io/requests.storage", "8191Ti", ""),
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
