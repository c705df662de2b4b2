package migrate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	inATemplate = "the objects in the namespaces stay, but new namespaces don't get them: put them into a template that the LNamespace " +
		"references (spec.template), as config/samples/guardrails does"
	notGuarded = "the NetworkPolicies in the namespaces stay, but users may change and delete them once Capsule is stopped, because only " +
		"Capsule's webhook refused that. Before --apply, write a cluster-wide policy of the " +
		"cluster's network, or a ValidatingAdmissionPolicy that guards label " + capsulePolicy +
		". For new namespaces, put NetworkPolicies into a template (spec.template)"
	byAPolicy = "once Capsule is stopped, nothing enforces it: write a ValidatingAdmissionPolicy for the namespaces with label " +
		"TENANT.tree.tenancy.warren.dev/depth"
	ofSeveralTenants = "Its namespaces are not all those of one Tenant that moves: write its spec.quota.hard into spec.limits.hard of an " +
		"LNamespace, or into a HierarchicalResourceQuota of a part of the tree, then delete these ResourceQuotas"
	onTheRoot = "the namespaces keep their values; for new namespaces, label or annotate the root, and add the keys to inheritance.labels " +
		"or inheritance.annotations"
)

// rulesOfCapsule are the fields of a Tenant that no LNamespace has, and what to do instead.
var rulesOfCapsule = []struct{ field, instead string }{
	{"limitRanges.items", inATemplate},
	{"networkPolicies.items", notGuarded},
	{"nodeSelector", "annotation scheduler.alpha.kubernetes.io/node-selector stays on the namespaces; for new namespaces, annotate the " +
		"root, and add the key to inheritance.annotations"},
	{"namespaceOptions.additionalMetadata", onTheRoot},
	{"namespaceOptions.additionalMetadataList", onTheRoot + "; for some of them, set spec.propagatedLabels in a HierarchyConfiguration"},
	{"namespaceOptions.requiredMetadata", "Warren doesn't require labels or annotations; " + onTheRoot},
	{"cordoned", "Warren can't freeze a tenant: only Capsule refuses changes there. A ResourceQuota with pods: \"0\" in a template " +
		"has a similar effect"},
	{"forceTenantPrefix", "set subNamespaces.namingPolicies: [{root: \"^(?P<tenant>.*)$\", match: \"^${tenant}-\"}]; " +
		"it holds for all tenants"},
	{"storageClasses", byAPolicy}, {"ingressOptions", byAPolicy}, {"serviceOptions", byAPolicy}, {"podOptions", byAPolicy},
	{"gatewayOptions", byAPolicy},
	{"containerRegistries", byAPolicy}, {"imagePullPolicies", byAPolicy}, {"priorityClasses", byAPolicy}, {"runtimeClasses", byAPolicy},
	{"deviceClasses", byAPolicy},
	{"rules", "objects that the rules created stay in the namespaces; once Capsule is stopped, nothing enforces the rules: write " +
		"ValidatingAdmissionPolicies, and a template for quotas"},
	{"permissions.matchOwners", "the owners that it has matched so far become users of the LNamespace, unless another line says " +
		"otherwise; from then on the managers edit the lists"},
}

// missTenantRules adds a gap for each field, and each quota annotation, of a Tenant that has no counterpart.
func (e *capsuleEstate) missTenantRules(t tenantOfCapsule) {
	of := " of Tenant " + t.GetName()
	for _, rule := range rulesOfCapsule {
		if value, found, err := unstructured.NestedFieldNoCopy(t.Object,
			append([]string{"spec"}, strings.Split(rule.field, ".")...)...); err == nil && found && isNonEmptyValue(value) {
			e.addEstateGap(rule.field+of, strings.ReplaceAll(rule.instead, "TENANT", t.GetName()))
		}
	}
	e.missTenantQuotas(t)
	for key := range t.GetAnnotations() {
		if strings.HasPrefix(key, "quota.resources."+capsuleGroup+"/") {
			e.addEstateGap("annotation "+key+of, "nothing limits their number in the tenant: a ResourceQuota in a template limits it in each "+
				"namespace (count/RESOURCE.GROUP)")
		}
	}
}

// isNonEmptyValue reports whether a value is anything but nil, false, "", an empty list, or a map of such values.
func isNonEmptyValue(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, field := range v {
			if isNonEmptyValue(field) {
				return true
			}
		}
		return false
	case []any:
		return len(v) > 0
	case bool:
		return v
	case string:
		return v != ""
	}
	return value != nil
}

// missTenantQuotas adds a gap for a Tenant's quotas in scope Namespace, if it has any. Those in scope Tenant become a budget.
func (e *capsuleEstate) missTenantQuotas(t tenantOfCapsule) {
	items, _, _ := unstructured.NestedSlice(t.Object, "spec", "resourceQuotas", "items")
	if len(items) > 0 && quotaScopeOf(t) == scopeNamespace {
		e.addEstateGap("resourceQuotas.items of Tenant "+t.GetName(), inATemplate)
	}
}

// othersOfCapsule are kinds of Capsule's that have no counterpart, and what to do instead.
var othersOfCapsule = map[string]string{
	"TenantResource": "its replicas stay, but are not updated any more: label the object in the root " +
		"with tenancy.warren.dev/propagate=update, and delete the replicas",
	"GlobalTenantResource": "its replicas stay, but are not updated any more: use a ResourceDistribution of a Secret or " +
		"ConfigMap, or a template that all LNamespaces reference; then delete the replicas",
	"ResourcePool":        "its ResourceQuotas keep what was claimed, and can't grow. " + ofSeveralTenants,
	"CustomQuota":         "nothing limits such objects any more: use a ResourceQuota with count/RESOURCE.GROUP, in a template",
	"GlobalCustomQuota":   "nothing limits such objects any more: use a ResourceQuota with count/RESOURCE.GROUP, in a template",
	"GlobalResourceQuota": "its ResourceQuotas stay at what was left when Capsule stopped. " + ofSeveralTenants,
}

// kindsOfCapsule returns the names of the kinds of othersOfCapsule, and CapsuleConfiguration.
func kindsOfCapsule() []string {
	kinds := []string{"CapsuleConfiguration"}
	for kind := range othersOfCapsule {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// missOtherObjects adds a gap for each object of a kind that has no counterpart, and for settings of a
// CapsuleConfiguration.
func (e *capsuleEstate) missOtherObjects() {
	for _, object := range e.peer.Others {
		name := strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		if e.assigned[object.GetKind()+" "+name] {
			continue
		}
		if instead := othersOfCapsule[object.GetKind()]; instead != "" {
			e.addEstateGap(object.GetKind()+" "+name, instead)
			continue
		}
		of := " of CapsuleConfiguration " + name
		if prefixed, _, _ := unstructured.NestedBool(object.Object, "spec", "forceTenantPrefix"); prefixed {
			e.addEstateGap("forceTenantPrefix"+of,
				"set subNamespaces.namingPolicies: [{root: \"^(?P<tenant>.*)$\", match: \"^${tenant}-\"}]")
		}
		if regex := nestedText(object.Object, "spec", "protectedNamespaceRegex"); regex != "" {
			e.addEstateGap("protectedNamespaceRegex"+of,
				"set protectedNamespaces of Warren's configuration to globs that match the same as "+regex)
		}
	}
}
