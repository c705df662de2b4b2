package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Propagation describes what is copied down the trees, and how hard the operator works on it.
type Propagation struct {
	// Kinds that are propagated, each group and kind once. Default: Role, RoleBinding, Secret and ConfigMap in mode OptIn.
	// RoleBinding is always among them, also where the file says [].
	Kinds []PropagatedKind `json:"kinds"`

	// BindOwnRole has the operator bind ClusterRole warren-kinds to itself in each namespace of the forest, for kinds with
	// scope Namespaces where nothing binds it in the whole cluster (component hardened). Default false.
	BindOwnRole bool `json:"bindOwnRole"`

	// ExcludedLabels and ExcludedAnnotations are keys that no copy gets. The defaults are in docs/reference/configuration.md.
	ExcludedLabels      Globs `json:"excludedLabels"`
	ExcludedAnnotations Globs `json:"excludedAnnotations"`

	// NeverPropagate adds to what is never a source: service-account tokens, Helm releases, kube-root-ca.crt, objects with
	// finalizers. Default [].
	NeverPropagate []NeverPropagate `json:"neverPropagate"`

	Scrub Scrub `json:"scrub"`
	Retry Retry `json:"retry"`

	// Generators are kinds whose controlled objects become sources where an annotation asks for it. They need the gate
	// PropagateGenerated.
	Generators []Generator `json:"generators"`
}

// PropagatedKind is a namespaced kind that is propagated.
type PropagatedKind struct {
	// Group is empty for the core group.
	Group string `json:"group"`

	// Version is the preferred one of the API server if empty.
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind"`

	// Mode is OptIn (default), All or Remove.
	Mode KindMode `json:"mode"`

	// Scope describes how the objects of the kind are watched: Cluster (default) or Namespaces.
	Scope KindScope `json:"scope"`
}

// GroupKind identifies the kind, whatever its version.
func (k PropagatedKind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.Group, Kind: k.Kind}
}

// Propagated returns how a kind is propagated, nil if it is not.
func (c *OperatorConfiguration) Propagated(kind schema.GroupKind) *PropagatedKind {
	for i := range c.Propagation.Kinds {
		if c.Propagation.Kinds[i].GroupKind() == kind {
			return &c.Propagation.Kinds[i]
		}
	}
	return nil
}

// KindMode states which objects of a kind are sources.
type KindMode string

// The modes of a propagated kind.
const (
	ModeOptIn  KindMode = "OptIn"  // labelled objects only
	ModeAll    KindMode = "All"    // every object that doesn't opt out
	ModeRemove KindMode = "Remove" // none; the operator's update copies are taken away
)

// KindScope describes how the objects of a kind are watched.
type KindScope string

// The scopes of a propagated kind.
const (
	ScopeAuto       KindScope = "Auto"       // cluster-wide while that is allowed, else per namespace
	ScopeCluster    KindScope = "Cluster"    // never per namespace
	ScopeNamespaces KindScope = "Namespaces" // only namespaces of the forest, even if more is allowed
)

// NeverPropagate describes objects that are never sources. All fields that are set must match; at least one of Name,
// Type and Labels is set. Without Kind it is every configured kind.
type NeverPropagate struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`

	// Name and Type are globs on the object's name and on its field type, which Secrets have.
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`

	// Labels that the object has with exactly these values.
	Labels map[string]string `json:"labels,omitempty"`
}

// Scrub bounds the background comparison of whole copies with their sources, which finds what no event told of.
type Scrub struct {
	// Interval between passes, at least 10s. Default 24h; 0: off.
	Interval metav1.Duration `json:"interval"`

	// ObjectsPerSecond is from 1 to 10000. Default 200.
	ObjectsPerSecond int `json:"objectsPerSecond"`
}

// Retry is the exponential back-off of copies that the API server refuses.
type Retry struct {
	// Min and Max: 100ms <= Min <= Max <= 1h. Default 1s and 5m.
	Min metav1.Duration `json:"min"`
	Max metav1.Duration `json:"max"`
}

// Generator is a kind whose controlled objects may become sources.
type Generator struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// Distribution describes what a ResourceDistribution may hold.
type Distribution struct {
	// Kinds that may be distributed, namespaced. Default: v1 Secret and v1 ConfigMap.
	Kinds []DistributedKind `json:"kinds"`

	// AllowOverwrite allows conflictPolicy Overwrite; it also needs the component distribution-overwrite. Default false.
	AllowOverwrite bool `json:"allowOverwrite"`

	// MaxObjectBytes is the size of the JSON of a ResourceDistribution without its status, 1024 to 1500000: the default,
	// which leaves room for a full 1 MiB Secret and for 64 KiB of status below etcd's 1.5 MiB.
	MaxObjectBytes int64 `json:"maxObjectBytes"`

	// MaxTotalBytes is the size of the resource times its targets. Default 1Gi; 0: no limit.
	MaxTotalBytes resource.Quantity `json:"maxTotalBytes"`
}

// DistributedKind is a kind that a ResourceDistribution may hold.
type DistributedKind struct {
	// Group is empty for the core group.
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// GroupVersionKind as apimachinery has it.
func (k DistributedKind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}
