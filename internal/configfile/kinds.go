package configfile

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

const rbacGroup = "rbac.authorization.k8s.io"

var roleBinding = schema.GroupKind{Group: rbacGroup, Kind: "RoleBinding"}

// builtInGroups are the groups, outside the core group, of kinds whose group is easily forgotten. At run time, a kind that isn't served is
// no error, because its CRD may be installed later. So with a forgotten group the operator would start, and copy nothing of the kind.
var builtInGroups = map[string]string{
	"Role": rbacGroup, "RoleBinding": rbacGroup, "ClusterRole": rbacGroup, "ClusterRoleBinding": rbacGroup,
	"Deployment": "apps", "DaemonSet": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "ControllerRevision": "apps",
	"Job": "batch", "CronJob": "batch",
	"NetworkPolicy": "networking.k8s.io", "Ingress": "networking.k8s.io", "IngressClass": "networking.k8s.io",
	"PodDisruptionBudget":      "policy",
	"HorizontalPodAutoscaler":  "autoscaling",
	"Lease":                    "coordination.k8s.io",
	"EndpointSlice":            "discovery.k8s.io",
	"StorageClass":             "storage.k8s.io",
	"PriorityClass":            "scheduling.k8s.io",
	"RuntimeClass":             "node.k8s.io",
	"CustomResourceDefinition": "apiextensions.k8s.io",
}

// withBuiltInGroup adds the group to a kind that is written without it and is not in core.
func withBuiltInGroup(kind schema.GroupKind) schema.GroupKind {
	if kind.Group == "" {
		kind.Group = builtInGroups[kind.Kind]
	}
	return kind
}

// clusterScoped are the cluster-scoped kinds of Kubernetes, by group. Which kinds of CRDs are cluster-scoped is known only in a cluster.
var clusterScoped = map[string][]string{
	"":        {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	rbacGroup: {"ClusterRole", "ClusterRoleBinding"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}

// neverPropagated are kinds that a controller or the API server writes for the namespace that they are in.
var neverPropagated = map[string][]string{
	"":                    {"Pod", "Event", "Endpoints", "Binding"},
	"apps":                {"ControllerRevision"},
	"coordination.k8s.io": {"Lease"},
	"discovery.k8s.io":    {"EndpointSlice"},
	"events.k8s.io":       {"Event"},
}

// CanBePropagated reports whether a namespaced kind may be among propagation.kinds.
func CanBePropagated(kind schema.GroupKind) bool {
	return !isOperatorGroup(kind.Group) && !slices.Contains(neverPropagated[kind.Group], kind.Kind)
}

// neverDistributed are kinds that a ResourceDistribution may not contain, in addition to all kinds of RBAC.
var neverDistributed = map[string][]string{
	"":              {"Event", "Pod", "ServiceAccount"},
	"events.k8s.io": {"Event"},
}

// isOperatorGroup reports whether the group is the operator's own, or one below it.
func isOperatorGroup(group string) bool {
	return group == tenancy.Domain || strings.HasSuffix(group, "."+tenancy.Domain)
}

// LabelledKinds returns the propagated kinds whose generated objects become sources while gate PropagateGenerated is open. No kind of
// RBAC is among them, because such a source would hand out the rights of others.
func LabelledKinds(c *config.OperatorConfiguration) []config.PropagatedKind {
	var kinds []config.PropagatedKind
	for _, kind := range c.Propagation.Kinds {
		if kind.Mode != config.ModeRemove && withBuiltInGroup(kind.GroupKind()).Group != rbacGroup {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
