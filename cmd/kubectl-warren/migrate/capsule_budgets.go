package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

// quotaOfCapsule is what Capsule lets several namespaces use together.
type quotaOfCapsule struct {
	// what names it in a plan.
	what string
	// spec is that of a ResourceQuota; defaults are what a ResourcePool gives each namespace beside it.
	spec, defaults map[string]any
	// label and value are on the ResourceQuotas by which Capsule limits each of the namespaces.
	label, value string
}

// labelsOfPools are the kinds of quotas over the namespaces that selectors match, with the labels of their ResourceQuotas.
var labelsOfPools = map[string]string{"ResourcePool": capsulePool, "GlobalResourceQuota": capsuleGlobalQuota}

// scopeNamespace is the scope of quotas that hold for each namespace. In scope Tenant, the default, they hold for the sum.
const scopeNamespace = "Namespace"

func quotaScopeOf(t tenantOfCapsule) string {
	return nestedText(t.Object, "spec", "resourceQuotas", "scope")
}

// readQuotas fills pools by what Capsule has selected last. All ResourceQuotas of Capsule's stay, until budgetOf releases some.
func (e *capsuleEstate) readQuotas() {
	for _, of := range e.cluster.Quotas.old {
		for _, old := range of {
			e.KeptQuotas[objectOfQuota(old)] = true
		}
	}
	e.pools = map[string][]quotaOfCapsule{}
	for _, pool := range e.peer.Others {
		label := labelsOfPools[pool.GetKind()]
		if label == "" {
			continue
		}
		selected, _, _ := unstructured.NestedStringSlice(pool.Object, "status", "namespaces")
		selected = slices.DeleteFunc(selected, func(name string) bool { return e.cluster.Namespaces[name] == nil })
		slices.Sort(selected)
		q := quotaOfCapsule{what: pool.GetKind() + " " + pool.GetName(), label: label, value: pool.GetName()}
		q.spec, _, _ = unstructured.NestedMap(pool.Object, "spec", "quota")
		q.defaults, _, _ = unstructured.NestedMap(pool.Object, "spec", "defaults")
		at := strings.Join(selected, " ")
		e.pools[at] = append(e.pools[at], q)
	}
}

// quotasOf returns the quotas that hold for all namespaces of a Tenant together, and for no others.
func (e *capsuleEstate) quotasOf(t tenantOfCapsule) (found []quotaOfCapsule) {
	if quotaScopeOf(t) != scopeNamespace {
		items, _, _ := unstructured.NestedSlice(t.Object, "spec", "resourceQuotas", "items")
		for i, item := range items {
			spec, _ := item.(map[string]any)
			found = append(found, quotaOfCapsule{what: fmt.Sprintf("resourceQuotas.items[%d] of Tenant %s", i, t.GetName()), spec: spec,
				label: capsuleQuota, value: strconv.Itoa(i)})
		}
	}
	if len(t.namespaces) > 0 {
		found = append(found, e.pools[strings.Join(t.namespaces, " ")]...)
	}
	return found
}

// budgetOf returns what the namespaces of a Tenant may use together: of each resource the smallest amount of its quotas. It adds a gap for
// each quota that Warren can't take over, and releases the ResourceQuotas of the others.
func (e *capsuleEstate) budgetOf(t tenantOfCapsule) (hard v1alpha1.Budget) {
	now := e.cluster.LNamespaces[t.GetName()]
	for _, q := range e.quotasOf(t) {
		e.assigned[q.what] = true
		merged, why := q.addTo(hard)
		missing := firstMissing(now, merged)
		switch {
		case !e.cluster.Quotas.served:
			why = "Warren's component budgets is not installed: add it to your overlay before --apply"
		case why != "":
			why += ". Change the quota in Capsule, and plan again"
		case missing != "":
			why = fmt.Sprintf("LNamespace %s exists, and its spec.limits.hard lacks %s: write it there, and plan again", now.Name, missing)
		default:
			hard = merged
			e.releaseQuotas(t, q)
			continue
		}
		e.addEstateGap(q.what, why+". Else each of its ResourceQuotas keeps the value that Capsule wrote last, and goes on to limit its "+
			"namespace alone")
	}
	return hard
}

// firstMissing returns the first resource of a budget that an LNamespace does not limit, with its amount; "" if it limits all, or does
// not exist.
func firstMissing(now *v1alpha1.LNamespace, hard v1alpha1.Budget) string {
	if now == nil {
		return ""
	}
	have := v1alpha1.Budget{}
	if now.Spec.Limits != nil {
		have = now.Spec.Limits.Hard
	}
	for _, key := range slices.Sorted(maps.Keys(hard)) {
		if _, limited := have[key]; !limited {
			amount := hard[key]
			return fmt.Sprintf("%s: %s", key, amount.String())
		}
	}
	return ""
}

// releaseQuotas lets the last step delete the ResourceQuotas by which Capsule enforces q in the namespaces of a Tenant.
func (e *capsuleEstate) releaseQuotas(t tenantOfCapsule, q quotaOfCapsule) {
	for _, namespace := range t.namespaces {
		for _, old := range e.cluster.Quotas.old[namespace] {
			if value, has := old.Labels[q.label]; has && value == q.value {
				delete(e.KeptQuotas, objectOfQuota(old))
			}
		}
	}
}

// addTo returns a budget with the smaller amounts of hard and of the quota, or why Warren can't limit the same.
func (q quotaOfCapsule) addTo(hard v1alpha1.Budget) (v1alpha1.Budget, string) {
	if isNonEmptyValue(q.spec["scopes"]) || isNonEmptyValue(q.spec["scopeSelector"]) {
		return nil, "it has scopes, and spec.limits.hard of an LNamespace has none"
	}
	for _, key := range slices.Sorted(maps.Keys(q.defaults)) {
		if fmt.Sprint(q.defaults[key]) != "0" {
			return nil, "its spec.defaults give each namespace " + key + " beside the sum"
		}
	}
	merged := v1alpha1.Budget{}
	maps.Copy(merged, hard)
	amounts, _, _ := unstructured.NestedMap(q.spec, "hard")
	for _, key := range slices.Sorted(maps.Keys(amounts)) {
		amount, err := resource.ParseQuantity(fmt.Sprint(amounts[key]))
		if err != nil {
			return nil, key + ": " + err.Error()
		}
		if least, there := merged[corev1.ResourceName(key)]; !there || amount.Cmp(least) < 0 {
			merged[corev1.ResourceName(key)] = amount
		}
	}
	if problems := budget.Check(merged); len(problems) > 0 {
		return nil, "spec.limits.hard can't be the same, " + strings.Join(problems, "; ")
	}
	return merged, ""
}
