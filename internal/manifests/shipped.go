package manifests

import v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"

// Prefix starts the name of every policy and binding in the cluster.
const Prefix = "warren-"

// Policy is one of the admission policies in config/policy, which every overlay has.
type Policy struct {
	Name       string    // without the prefix
	Identity   string    // the match condition that names the operator; empty where the policy holds for everybody
	Bindings   []Binding // never empty
	ListsKinds bool      // its rules name each configured kind
}

// Binding is one binding of a policy.
type Binding struct {
	Name string // without the prefix
	Mark string // the label by which it selects objects; empty if it selects all
}

// Names of the match conditions that name the operator.
const (
	NotTheOperator = "not-the-operator"
	TheOperator    = "the-operator"
)

// Copy is the name, without the prefix, of the policy that forbids everybody but the operator to change copies.
const Copy = "copy"

// Shipped are the policies of every overlay.
//
// A policy whose bindings have marks costs nothing for a request about an object without these marks. The reason for marks is speed: the
// API server converts an object once for each policy that matches it, which for a Namespace takes most of a policy's time.
var Shipped = []Policy{
	withBindings(Policy{Name: "managed-namespace", Identity: NotTheOperator}, "", v1alpha1.LabelType,
		"-parent", v1alpha1.LabelParent, "-released", v1alpha1.LabelReleased, "-template", v1alpha1.LabelTemplate),
	plain("reserved-keys", NotTheOperator),
	withBindings(Policy{Name: "namespace-shape"}, "", v1alpha1.LabelType, "-parent", v1alpha1.LabelParent,
		"-template", v1alpha1.LabelTemplate, "-protected", v1alpha1.LabelProtected),
	withBindings(Policy{Name: Copy, Identity: NotTheOperator, ListsKinds: true}, "", v1alpha1.LabelInheritedFrom,
		"-access", v1alpha1.LabelAccess, "-distributed", v1alpha1.Domain+"/distributed-by"),
	plain("source-keys", ""),
	plain("access-names", NotTheOperator),
	plain("sudo-subjects", NotTheOperator),
	plain("rail-names", NotTheOperator),
	plain("rail-quotas", NotTheOperator),
	plain("tenant-limits", ""),
	plain("budget-quotas", NotTheOperator),
	plain("object-metadata", NotTheOperator),
	plain("operator-cage-rbac", TheOperator),
	plain("operator-cage-namespaces", TheOperator),
	{Name: "operator-cage-objects", Identity: TheOperator, ListsKinds: true, Bindings: []Binding{{Name: "operator-cage-objects"}}},
	plain("operator-cage-events", TheOperator),
	plain("operator-cage-budgets", TheOperator),
	withBindings(Policy{Name: "operator-cage-distribution", Identity: TheOperator}, "", v1alpha1.Domain+"/distributed-by"),
	plain("operator-cage-webhooks", TheOperator),
}

// Policies of components, which not every overlay has.
var (
	StrictPlacement = plain("strict-placement", TheOperator)
	Distribution    = plain("distribution", "")
	SudoRequests    = plain("sudo-requests", NotTheOperator)
	TemporarySudo   = plain("temporary-sudo", "")
	SudoTimers      = plain("sudo-timers", NotTheOperator)
)

func plain(name, identity string) Policy {
	return Policy{Name: name, Identity: identity, Bindings: []Binding{{Name: name}}}
}

// withBindings adds bindings to p. For each binding, pairs has two items: the suffix that is added to the policy's name, and the label that
// is the binding's Mark.
func withBindings(p Policy, pairs ...string) Policy {
	for i := 0; i < len(pairs); i += 2 {
		p.Bindings = append(p.Bindings, Binding{Name: p.Name + pairs[i], Mark: pairs[i+1]})
	}
	return p
}
