package manifests

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

const rbacGroup = "rbac.authorization.k8s.io"

// resource is a kind as the API server's paths name it.
type resource struct {
	Group, Name string
	Status      bool // objects have a status, and a write of /status can change the status and the labels (PROP-F17)
}

// always are kinds that the policies list whatever the configuration says: ClusterRole warren-manager always lets the operator write these
// kinds, so the operator's cage (see the package comment) must bound these writes.
var always = []schema.GroupKind{{Group: rbacGroup, Kind: "Role"}, {Group: rbacGroup, Kind: "RoleBinding"}}

// Kinds returns the kinds that the operator may write under a configuration: propagated and distributed kinds, and those that ClusterRole
// warren-manager grants. The result may have a kind twice.
func Kinds(c *config.OperatorConfiguration) []schema.GroupKind {
	kinds := slices.Clone(always)
	for _, k := range c.Propagation.Kinds {
		kinds = append(kinds, k.GroupKind())
	}
	for _, k := range c.Distribution.Kinds {
		kinds = append(kinds, k.GroupVersionKind().GroupKind())
	}
	return kinds
}

// resourcesOf returns the resources of Kinds, sorted, each once.
func resourcesOf(c *config.OperatorConfiguration) []resource {
	var resources []resource
	for _, kind := range Kinds(c) {
		resources = append(resources, resource{Group: kind.Group, Name: pluralOf(kind), Status: hasStatus(kind)})
	}
	slices.SortFunc(resources, func(a, b resource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(resources)
}

// pluralOf returns the resource of a kind by the rules of English, which Kubernetes' own kinds follow and most others do. Without a cluster
// the true name can't be known. In a cluster, the operator reports a kind whose resource has another name (metric warren_policy_gap).
func pluralOf(kind schema.GroupKind) string {
	word := strings.ToLower(kind.Kind)
	if before, ok := strings.CutSuffix(word, "y"); ok && before != "" && strings.Contains("aeiou", before[len(before)-1:]) {
		return word + "s" // Gateway: gateways
	}
	for _, ending := range []string{"x", "ch", "sh"} {
		if strings.HasSuffix(word, ending) {
			return word + "es" // Mailbox: mailboxes
		}
	}
	guess, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return guess.Resource
}

// withoutStatus are the kinds of Kubernetes, by group, whose objects have no status that can be written. All others may
// have one: a rule for a subresource that isn't served matches nothing.
var withoutStatus = map[string][]string{
	"":                    {"ConfigMap", "Endpoints", "Event", "LimitRange", "PodTemplate", "Secret", "ServiceAccount"},
	"apps":                {"ControllerRevision"},
	"coordination.k8s.io": {"Lease", "LeaseCandidate"},
	"discovery.k8s.io":    {"EndpointSlice"},
	"networking.k8s.io":   {"NetworkPolicy"},
	rbacGroup:             {"Role", "RoleBinding"},
	"resource.k8s.io":     {"ResourceClaimTemplate"},
	"storage.k8s.io":      {"CSIStorageCapacity"},
}

func hasStatus(kind schema.GroupKind) bool {
	return !slices.Contains(withoutStatus[kind.Group], kind.Kind)
}
