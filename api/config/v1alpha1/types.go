package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancy "github.com/warren-tenancy/warren/api/v1alpha1"
)

// What apiVersion and kind of the file must say.
const (
	APIVersion = "config.tenancy.warren.dev/v1alpha1"
	Kind       = "OperatorConfiguration"
)

// OperatorConfiguration is the configuration file: YAML or JSON, one document. Every key of the product stands here and
// in docs/reference/configuration.md. A key that is absent or null has its default; a list that is given, even an empty one, replaces its
// default.
//
// +kubebuilder:object:root=true
type OperatorConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	Inheritance   Inheritance   `json:"inheritance"`
	SubNamespaces SubNamespaces `json:"subNamespaces"`

	// ProtectedNamespaces are never in the forest and never a target, beside the built-in ones: see Protected. Default [].
	ProtectedNamespaces Globs `json:"protectedNamespaces"`

	// AcceptRemovals lets a file come into force, while the operator runs, that takes away more than a tenth of all copies, copied
	// RoleBindings or places of namespaces, and more than 20 of them: the hash of the file's content that the refusal names. It holds for
	// that content alone. Default "": such a file is refused.
	AcceptRemovals string `json:"acceptRemovals"`

	Tenants      Tenants      `json:"tenants"`
	Access       Access       `json:"access"`
	Sudo         Sudo         `json:"sudo"`
	Propagation  Propagation  `json:"propagation"`
	Distribution Distribution `json:"distribution"`
	Informers    Informers    `json:"informers"`
	Billing      Billing      `json:"billing"`

	// Controllers are those that run: "*" for all, a name, or "-name"; the first entry that names a controller decides,
	// else "*". One that doesn't run needs no right. Whatever runs, the operator lists and watches Namespaces, SubNamespaces, LNamespaces and
	// HierarchyConfigurations. Without access, the rights that exist stay until their LNamespace is deleted. Billing has no effect:
	// billing.driver none switches billing off. See Enabled. Default ["*"].
	Controllers []string `json:"controllers"`

	ClientConnection ClientConnection `json:"clientConnection"`

	// Concurrency is how many writes of copies are under way at once, 1 to 256; as many SubNamespaces and
	// LNamespaces are worked on at once, and an eighth as many Namespaces and HierarchyConfigurations. Default 16.
	Concurrency int `json:"concurrency"`

	// FeatureGates by name: PropagateGenerated, and BudgetMetrics, which has metrics of the budget of each tenant. Default: both are false.
	FeatureGates map[string]bool `json:"featureGates"`
}

// Inheritance states which keys of Namespaces flow down each tree and out of templates.
type Inheritance struct {
	// Labels and Annotations that are inherited. Default: labels pod-security.kubernetes.io/*, no annotations.
	Labels      Globs `json:"labels"`
	Annotations Globs `json:"annotations"`

	// Undelegated are the cluster admins' keys: only cluster admins may have a HierarchyConfiguration propagate or override them. A
	// cluster admin is a user who may update namespaces cluster-wide.
	// Default: those of kubernetes.io and k8s.io and their subdomains.
	Undelegated Globs `json:"undelegated"`
}

// SubNamespaces describes what a SubNamespace may ask for.
type SubNamespaces struct {
	// Labels and Annotations that spec.labels and spec.annotations may hold. Default [].
	Labels      Globs `json:"labels"`
	Annotations Globs `json:"annotations"`

	// NamingPolicies judge the names of new sub-namespaces; all that apply must pass. Default [].
	NamingPolicies []NamingPolicy `json:"namingPolicies"`

	// Limits hold where LNamespace.spec.limits is silent, field by field. Default none.
	Limits tenancy.Limits `json:"limits"`

	// AllowCascadingDeletion lets the deletion of any namespace delete the sub-namespaces below it. Default false.
	AllowCascadingDeletion bool `json:"allowCascadingDeletion"`
}

// NamingPolicy judges the names of new sub-namespaces. It applies to the trees whose root's name Root matches. Both
// fields are Go regexps, unanchored as in Accurate, whose files are taken over as they are.
type NamingPolicy struct {
	Root string `json:"root"`

	// Match may refer to groups of Root by ${name}, $name and $1; $$ is a dollar.
	Match string `json:"match"`
}

// Tenants describes what LNamespaces may be called and how many a user may make.
type Tenants struct {
	// ReservedNames are refused when an LNamespace is created, on top of what is protected: see Reserved.
	// Default ["*-system", "accurate"].
	ReservedNames Globs `json:"reservedNames"`

	// MaxPerCreator is how many LNamespaces one user may have made. Default 0, no limit.
	MaxPerCreator int `json:"maxPerCreator"`
}

// Access describes what a tenant's users may do.
type Access struct {
	// UserClusterRole is bound to a tenant's users in its tree; never cluster-admin. Default "admin".
	UserClusterRole string `json:"userClusterRole"`
}

// Sudo describes how sudoers impersonate their group.
type Sudo struct {
	// Mode is Legacy or Constrained (from Kubernetes 1.36). Default Legacy, which every API server knows.
	Mode tenancy.SudoMode `json:"mode"`

	// Requests bounds sudo on request, which component requests brings.
	Requests SudoRequests `json:"requests"`
}

// SudoRequests bounds what tenants allow by spec.sudoRequests of an LNamespace.
type SudoRequests struct {
	// MaxDuration is the longest time of a request, from 1m to 24h. Default 24h.
	MaxDuration metav1.Duration `json:"maxDuration"`

	// PendingFor is how long a request may wait for approvals, at least 1s. Default 24h.
	PendingFor metav1.Duration `json:"pendingFor"`

	// HistoryFor is how long a finished request is kept, at least 24h, because MaxPerDay counts these. Default 2160h.
	HistoryFor metav1.Duration `json:"historyFor"`

	// MaxOpen is how many requests of one person in one tenant may be unfinished, at least 1. Default 3.
	MaxOpen int `json:"maxOpen"`

	// MaxPerDay is how many requests one person may make in one tenant in 24 hours, at least 1. Default 20.
	MaxPerDay int `json:"maxPerDay"`

	// BreakGlass lets tenants allow sudo without approval. Default true.
	BreakGlass bool `json:"breakGlass"`
}

// Informers tunes package watchset, which watches the kinds that are copied.
type Informers struct {
	// VerifyInterval is how often the rights of a synced informer are asked again. Default 5m; 0: never.
	VerifyInterval metav1.Duration `json:"verifyInterval"`

	// IdleGrace is how long an informer without leases lives on. Default 30s.
	IdleGrace metav1.Duration `json:"idleGrace"`

	// DegradedAfter is how long an informer may be without a working watch, at least 1s. Default 30s.
	DegradedAfter metav1.Duration `json:"degradedAfter"`

	// MaxInformers is the limit for all informers, at least 1. Default 10000: what fits the memory limit of config/manager.
	MaxInformers int `json:"maxInformers"`

	// MaxNamespaces is how many namespaces one watchset.Lease may follow, at least 1; further namespaces wait for room. Default 5000.
	MaxNamespaces int `json:"maxNamespaces"`
}

// ClientConnection limits the requests of the operator on its own side.
type ClientConnection struct {
	// QPS is in requests per second. Default 0: no limit here, the API server's fairness decides.
	QPS float32 `json:"qps"`

	// Burst is the number of requests that may exceed QPS at once. Default 0.
	Burst int `json:"burst"`
}

// PropagateGenerated lets controlled objects of annotated generators become sources.
const PropagateGenerated = "PropagateGenerated"

// BudgetMetrics has metrics of what each tenant's budget allows and what is used of it. They have the names of tenants, and their number
// grows with the tenants.
const BudgetMetrics = "BudgetMetrics"

// FeatureEnabled reports whether the gate is open; one that is not known is not.
func (c *OperatorConfiguration) FeatureEnabled(gate string) bool { return c.FeatureGates[gate] }
