package budget

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
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
	dividedKeys = regexp.MustCompile(`^((requests|limits)[.])?cpu$|memory$|storage$|hugepages-`)
)

// Check returns what is wrong with a budget, one sentence for each key, in the order of the keys. It returns nil if all is well.
func Check(hard v1alpha1.Budget) (problems []string) {
	if len(hard) > MaxKeys {
		return []string{fmt.Sprintf("must have at most %d keys: it has %d", MaxKeys, len(hard))}
	}
	for _, key := range slices.Sorted(maps.Keys(hard)) {
		amount := hard[key]
		_, whole := amount.AsInt64()
		switch {
		case !plainKeys.Has(key) && (len(key) > longestKey || !otherKeys.MatchString(string(key))):
			problems = append(problems,
				string(key)+": is no resource that a ResourceQuota limits: write one such as pods, requests.cpu or count/jobs.batch")
		case operatorKeys.Has(key):
			problems = append(problems, string(key)+": would keep out what the operator writes here: leave it out")
		case amount.Sign() < 0:
			problems = append(problems, string(key)+": must be 0 or more: 0 allows none")
		case !whole && !dividedKeys.MatchString(string(key)):
			problems = append(problems, string(key)+": must be a whole number: only cpu, memory and storage have fractions")
		}
	}
	return problems
}
