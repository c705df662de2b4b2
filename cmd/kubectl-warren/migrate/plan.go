package migrate

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Phase is a part of a migration. The next phase begins when no step of this one is left.
type Phase string

// The phases, in their order. Until Finish all can be undone: sources are in mode create, so that Warren doesn't change
// the copies that it has taken over, wherever their namespace is.
const (
	Rest       Phase = "rest"       // the other operator is scaled down, and most of its webhooks get failure policy Ignore
	Tenants    Phase = "tenants"    // LNamespaces are made, and Warren makes their roots
	Sources    Phase = "sources"    // sources get the labels that state whether and where they are copied
	Copies     Phase = "copies"     // copies get the keys by which Warren recognizes its copies
	Namespaces Phase = "namespaces" // namespaces join Warren's trees
	Hierarchy  Phase = "hierarchy"  // SubNamespaces and HierarchyConfigurations are made
	Budgets    Phase = "budgets"    // HierarchicalResourceQuotas are made, and Warren makes the shares
	Finish     Phase = "finish"     // copies follow their sources again: the last step
)

// Verb is what a step does to its object.
type Verb string

// The verbs of steps.
const (
	Create Verb = "create"
	Patch  Verb = "patch"
	Delete Verb = "delete"
)

// Step is one write.
type Step struct {
	Phase  Phase  `json:"phase"`
	Verb   Verb   `json:"verb"`
	Object Object `json:"object"`
	// Body is the object that is made, or a merge patch; a list is a JSON patch.
	Body any `json:"body,omitempty"`
	// wave orders the steps of a phase.
	wave int
	// uid and version make the write fail if the object has changed since the plan was made.
	uid, version string
}

// Object is what a step writes.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// idWithGroup identifies an object, also if kinds of several groups have the same name.
func (o Object) idWithGroup() string { return o.APIVersion + " " + o.String() }

// Cluster holds the objects that are in the cluster now.
type Cluster struct {
	Namespaces map[string]*metav1.PartialObjectMetadata
	Kinds      []Kind
	// Subs are Warren's SubNamespaces by parent/name, Hierarchies its HierarchyConfigurations by namespace.
	Subs        map[string]*v1alpha1.SubNamespace
	Hierarchies map[string]*v1alpha1.HierarchyConfiguration
	// LNamespaces are Warren's tenants by name.
	LNamespaces map[string]*v1alpha1.LNamespace
	// Quotas are those over trees.
	Quotas treeQuotas
	Peer   Engine
	// Agreed are the places of the plan that this run has shown to the user; nil if it has shown none.
	Agreed map[string]string
	// Caller is the name by which the API server knows the user who migrates; "" if the peer has no tenants.
	Caller string
	// Rules and CopyRules are what Warren's configuration says of trees and copies.
	Rules     forest.Rules
	CopyRules copies.Rules
}

// Plan is what is left to do.
type Plan struct {
	Steps []Step `json:"steps"`
	// Joins are the places of the namespaces that the steps bring into trees.
	Joins []Join `json:"joins"`
	// NewCopies and KeyChanges are what Warren's operator will do besides the steps.
	NewCopies  []NewCopies `json:"newCopies"`
	KeyChanges []KeyChange `json:"keyChanges"`
	Gaps       []Gap       `json:"gaps"`
	// agreed are the places that the namespaces can take. refused are the namespaces to whose places the user has not
	// agreed.
	agreed  map[string]string
	refused []string
	// excesses are the limits that keep the migration from beginning.
	excesses []string
}

// planner makes one plan of a migration; undoer makes one that undoes it.
type planner struct {
	*Estate
	Cluster
	*outlook
	draft *draft
	// unmade are the sources of Made that don't exist yet, as they will be.
	unmade map[copies.Slot]*metav1.PartialObjectMetadata
	// newCopies is filled by planExistingCopies.
	newCopies []NewCopies
}

// NewPlan returns the plan that brings the cluster to the state that the estate describes.
func NewPlan(estate *Estate, c Cluster) Plan {
	d := &draft{gaps: slices.Clone(estate.Gaps)}
	p := &planner{Estate: estate, Cluster: c, outlook: forecastOutlook(estate, c, d), draft: d,
		unmade: findMissingSources(estate, c)}
	if estate.Stop != "" {
		return d.sortedPlan()
	}
	if len(estate.Places)+len(estate.Copies)+len(estate.Tenants)+len(estate.Owned) == 0 {
		return d.sortedPlan()
	}
	p.planPeerShutdown()
	p.planTenantObjects()
	p.planExistingCopies()
	p.planNamespaces()
	p.planHierarchy()
	p.planTreeQuotas()
	p.planFinishPhase()
	plan := d.sortedPlan()
	plan.Joins, plan.agreed, plan.refused = p.joinsOfSteps(plan.Steps), p.agreedPlaces(c), p.refused
	plan.NewCopies, plan.KeyChanges, plan.excesses = p.newCopies, p.findKeyChanges(), d.excesses
	return plan
}

// planNamespaces adds the steps that label the namespaces, so that they join their trees, parents first.
func (p *planner) planNamespaces() {
	for _, name := range slices.Sorted(maps.Keys(p.joining)) {
		p.draft.addRelabelStep(Namespaces, p.depthInForest(name), p.Namespaces[name], p.joining[name].namespaceLabels(), nil)
	}
}

// planHierarchy adds the steps that make the SubNamespaces that own the namespaces, and the HierarchyConfigurations.
func (p *planner) planHierarchy() {
	for _, name := range slices.Sorted(maps.Keys(p.joining)) {
		place := p.joining[name]
		if sub := p.Subs[place.Parent+"/"+name]; place.Sub != nil && (sub == nil || sub.DeletionTimestamp != nil) {
			p.draft.addCreateStep(Hierarchy, 0, warrenObject("SubNamespace", place.Parent, name), place.Sub)
		}
		p.planHierarchyOf(name, place)
	}
}

func (p *planner) planHierarchyOf(name string, place Place) {
	spec := map[string]any{}
	now := p.Hierarchies[name]
	var have v1alpha1.HierarchyConfigurationSpec
	if now != nil {
		have = now.Spec
	}
	if place.Cascading && !have.AllowCascadingDeletion {
		spec[cascadingField] = true
	}
	if keys, added := mergeMetadataKeys(have.PropagatedLabels, place.Labels); added {
		spec[labelsField] = keys
	}
	if keys, added := mergeMetadataKeys(have.PropagatedAnnotations, place.Annotations); added {
		spec[annotationsField] = keys
	}
	switch {
	case len(spec) == 0:
	case now == nil:
		p.draft.addCreateStep(Hierarchy, 0, warrenObject("HierarchyConfiguration", name, v1alpha1.HierarchyConfigurationName), spec)
	default:
		p.draft.patchHierarchy(Hierarchy, now, spec)
	}
}

// mergeMetadataKeys returns the keys of have and wanted, sorted; added reports whether have lacks one of wanted.
func mergeMetadataKeys(have []v1alpha1.MetadataKey, wanted []string) (keys []string, added bool) {
	for _, key := range have {
		keys = append(keys, string(key))
	}
	for _, key := range wanted {
		if !slices.Contains(keys, key) {
			keys, added = append(keys, key), true
		}
	}
	slices.Sort(keys)
	return keys, added
}
