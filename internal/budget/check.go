package budget

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// MaxKeys is how many resources a budget may have.
const MaxKeys = 16

// longestKey bounds a key, with its prefix.
const longestKey = 253

// These are the rules of type Budget, for budgets that no API server checks. A test holds both against each other.
var (
	plainKeys = sets.New[corev1.ResourceName]("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
		"persistentvolumeclaims", "services.nodeports", "services.loadbalancers", "cpu", "memory", "ephemeral-storage", "requests.cpu",
		"requests.memory", "requests.ephemeral-storage", "requests.storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage")
	// A key that Kubernetes refuses would keep all shares below a limit from being written, so names are Kubernetes' qualified names.
	otherKeys = regexp.MustCompile(`^(requests[.])?hugepages-[A-Za-z0-9]{1,40}$|` +
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	// operatorKeys count what the operator writes in the namespaces.
	operatorKeys = sets.New[corev1.ResourceName]("resourcequotas", "count/resourcequotas", "count/limitranges",
		"count/networkpolicies.networking.k8s.io", "count/roles.rbac.authorization.k8s.io", "count/rolebindings.rbac.authorization.k8s.io",
		"count/subnamespaces.tenancy.warren.dev", "count/hierarchyconfigurations.tenancy.warren.dev")
	// countedKeys are those of otherKeys that Kubernetes counts. It takes all others too, and limits nothing by them.
	countedKeys = regexp.MustCompile(`^(requests[.])?hugepages-[A-Za-z0-9]+$|^count/|^requests[.]|` +
		`[.]storageclass[.]storage[.]k8s[.]io/(requests[.]storage|persistentvolumeclaims)$|[.]deviceclass[.]resource[.]k8s[.]io/devices$`)
)

// StatedBy returns which resource each container of a pod must state where a budget has a key, and whether as a limit; "" for most keys.
// Kubernetes demands no others (validationSet in pkg/quota/v1/evaluator/core/pods.go).
func StatedBy(key corev1.ResourceName) (resource corev1.ResourceName, isLimit bool) {
	switch key {
	case corev1.ResourceCPU, corev1.ResourceRequestsCPU:
		return corev1.ResourceCPU, false
	case corev1.ResourceMemory, corev1.ResourceRequestsMemory:
		return corev1.ResourceMemory, false
	case corev1.ResourceLimitsCPU:
		return corev1.ResourceCPU, true
	case corev1.ResourceLimitsMemory:
		return corev1.ResourceMemory, true
	}
	return "", false
}

// Limited returns what of a budget can be a part of a share, as amounts, and what is wrong with the rest: a resource that the API server
// refuses would keep all others out of the share, also those of other limits. The CRDs refuse such budgets, but older ones may be stored.
func Limited(hard v1alpha1.Budget) (Amounts, []string) {
	problems, wrong := check(hard)
	if len(wrong) > 0 {
		hard = maps.Clone(hard)
		maps.DeleteFunc(hard, func(key corev1.ResourceName, _ resource.Quantity) bool { return wrong.Has(key) })
	}
	return AmountsOf(corev1.ResourceList(hard)), problems
}

// Check returns what is wrong with a budget, one sentence for each key, in the order of the keys. It returns nil if all is well.
func Check(hard v1alpha1.Budget) []string {
	if len(hard) > MaxKeys {
		return []string{fmt.Sprintf("must have at most %d keys: it has %d", MaxKeys, len(hard))}
	}
	problems, _ := check(hard)
	return problems
}

func check(hard v1alpha1.Budget) (problems []string, wrong sets.Set[corev1.ResourceName]) {
	wrong = sets.New[corev1.ResourceName]()
	for _, key := range slices.Sorted(maps.Keys(hard)) {
		if problem := checkKey(key, hard[key]); problem != "" {
			wrong.Insert(key)
			problems = append(problems, string(key)+": "+problem)
		}
	}
	return problems, wrong
}

func checkKey(key corev1.ResourceName, amount resource.Quantity) string {
	whole := func() bool { _, is := amount.AsInt64(); return is }
	switch plain := plainKeys.Has(key); {
	case !plain && (len(key) > longestKey || !otherKeys.MatchString(string(key))):
		return "is no resource that a ResourceQuota limits: write one such as pods, requests.cpu or count/jobs.batch"
	case !plain && !countedKeys.MatchString(string(key)):
		return "is not counted by Kubernetes: write requests.NAME for an extended resource, or count/NAME for objects"
	case operatorKeys.Has(key):
		return "would keep out what the operator writes here: leave it out"
	case amount.Sign() < 0:
		return "must be 0 or more: 0 allows none"
	case !isBelow(amount, largestExponent*10):
		return "must have an exponent of at most two digits"
	case !isCPU(key) && !isBytes(key) && !whole():
		return "must be a whole number: only cpu, memory and storage have fractions"
	case (!isBytes(key) || isOfClass(key)) && !isBelow(amount, mostCounted+1):
		return "must be at most 9007199254740991: the API server refuses larger numbers"
	}
	return ""
}
