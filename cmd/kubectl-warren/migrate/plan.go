package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// Phase is a part of a migration; the next begins when nothing of it is left.
type Phase string

// The phases, in their order. Until Finish all can be undone: sources are in mode create, so that Warren leaves alone what it has taken
// over, wherever its namespace stands.
const (
	Rest       Phase = "rest"       // the other operator is scaled down, and its webhooks let everything pass
	Tenants    Phase = "tenants"    // LNamespaces, of which Warren makes the roots
	Sources    Phase = "sources"    // objects say whether and where they are copied
	Copies     Phase = "copies"     // copies get the keys by which Warren knows its own
	Namespaces Phase = "namespaces" // namespaces join Warren's trees
	Hierarchy  Phase = "hierarchy"  // SubNamespaces and HierarchyConfigurations
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
	// uid and version guard the write against what came after the plan.
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

// id tells objects apart whose kinds have one name in several groups.
func (o Object) id() string { return o.APIVersion + " " + o.String() }

// Cluster is what stands in the cluster now.
type Cluster struct {
	Namespaces map[string]*metav1.PartialObjectMetadata
	Kinds      []Kind
	// Subs are Warren's SubNamespaces by parent/name, Hierarchies its HierarchyConfigurations by namespace.
	Subs        map[string]*v1alpha1.SubNamespace
	Hierarchies map[string]*v1alpha1.HierarchyConfiguration
	// LNamespaces are Warren's tenants by name.
	LNamespaces map[string]*v1alpha1.LNamespace
	Peer        Engine
	// Caller is the user who migrates, as the API server knows them.
	Caller string
	// IsProtected says that a namespace never joins a tree.
	IsProtected func(name string) bool
}

// Plan is what is left to do.
type Plan struct {
	Steps []Step `json:"steps"`
	Gaps  []Gap  `json:"gaps"`
}

// planner makes one plan.
type planner struct {
	*Estate
	Cluster
	steps []Step
	gaps  []Gap
	// joining are the places that namespaces can take; after is the forest with all of them.
	joining map[string]Place
	after   *forest.Snapshot
	// unmade are the sources of Made that don't exist yet, as they will be.
	unmade map[propagate.Slot]*metav1.PartialObjectMetadata
}

func newPlanner(estate *Estate, c Cluster) *planner {
	p := &planner{Estate: estate, Cluster: c, gaps: slices.Clone(estate.Gaps)}
	p.planPlaces()
	p.findUnmade()
	return p
}

// NewPlan plans what takes the cluster to what the estate says.
func NewPlan(estate *Estate, c Cluster) Plan {
	p := newPlanner(estate, c)
	if estate.Stop != "" {
		return Plan{Steps: []Step{}, Gaps: p.gaps}
	}
	if len(estate.Places)+len(estate.Copies)+len(estate.Tenants)+len(estate.Owned) == 0 {
		return Plan{Steps: []Step{}, Gaps: p.gaps}
	}
	p.planRest()
	p.planTenants()
	p.planCopies()
	p.planNamespaces()
	p.planHierarchy()
	p.planFinish()
	return p.result()
}

// phaseOrder of a plan and of its undoing.
var phaseOrder = []Phase{Rest, Tenants, Sources, Copies, Namespaces, Hierarchy, Finish, Leave, Owners, Release, Wake}

func (p *planner) result() Plan {
	slices.SortStableFunc(p.steps, func(a, b Step) int {
		if a.Phase != b.Phase {
			return slices.Index(phaseOrder, a.Phase) - slices.Index(phaseOrder, b.Phase)
		}
		return a.wave - b.wave
	})
	if p.steps == nil {
		p.steps = []Step{}
	}
	if p.gaps == nil {
		p.gaps = []Gap{}
	}
	return Plan{p.steps, p.gaps}
}

func (p *planner) miss(what, instead string) { p.gaps = append(p.gaps, Gap{what, instead}) }

// planPlaces finds which namespaces can take their places, and the forest that comes of it.
func (p *planner) planPlaces() {
	p.joining = map[string]Place{}
	p.after = forest.New(forest.Rules{ProtectedName: p.IsProtected})
	for name := range p.Tenants {
		if p.Namespaces[name] == nil {
			p.after = p.after.WithNamespace(forest.NamespaceOf(rootToCome(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Namespaces)) {
		now := p.Namespaces[name]
		n := forest.NamespaceOf(now)
		place, wanted := p.Places[name]
		if wanted && p.canJoin(name, now, place) {
			p.joining[name] = place
			n.Labels = relabelled(now.Labels, place.labels())
		}
		p.after = p.after.WithNamespace(n)
	}
}

// canJoin says whether a namespace can take its place, and notes what stands in the way.
func (p *planner) canJoin(name string, now *metav1.PartialObjectMetadata, place Place) bool {
	labels := now.Labels
	switch {
	case now.DeletionTimestamp != nil:
		return false
	case p.IsProtected(name) || labels[v1alpha1.LabelProtected] == v1alpha1.True:
		p.miss("Namespace "+name, "it is protected and joins no tree: see protectedNamespaces of the configuration, and kubectl warren protect "+name+" --off")
		return false
	}
	for _, key := range []string{v1alpha1.LabelType, v1alpha1.LabelParent, v1alpha1.LabelTemplate} {
		if value := labels[key]; value != "" && value != place.labels()[key] {
			p.miss("Namespace "+name, fmt.Sprintf("it has a place in Warren already (label %s=%s), and stays there: kubectl warren describe %s", key, value, name))
			return false
		}
	}
	return true
}

// relabelled are labels with changes, of which "" takes one off.
func relabelled(now, changes map[string]string) map[string]string {
	result := maps.Clone(now)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range changes {
		if result[key] = value; value == "" {
			delete(result, key)
		}
	}
	return result
}

// patchOf is what of changes isn't so yet, for a merge patch; nil if all is.
func patchOf(now, changes map[string]string) map[string]any {
	var patch map[string]any
	for key, value := range changes {
		have, there := now[key]
		if have == value && there == (value != "") {
			continue
		}
		if patch == nil {
			patch = map[string]any{}
		}
		if patch[key] = any(value); value == "" {
			patch[key] = nil
		}
	}
	return patch
}

// relabel adds the step that changes labels and annotations of an object, where they aren't so yet.
func (p *planner) relabel(phase Phase, wave int, object *metav1.PartialObjectMetadata, labels, annotations map[string]string) {
	metadata := map[string]any{}
	if patch := patchOf(object.Labels, labels); patch != nil {
		metadata["labels"] = patch
	}
	if patch := patchOf(object.Annotations, annotations); patch != nil {
		metadata["annotations"] = patch
	}
	if len(metadata) > 0 {
		p.patch(phase, wave, object, map[string]any{"metadata": metadata})
	}
}

func (p *planner) patch(phase Phase, wave int, object *metav1.PartialObjectMetadata, body any) {
	p.steps = append(p.steps, Step{Phase: phase, wave: wave, Verb: Patch, Object: objectOf(object), Body: body,
		uid: string(object.UID), version: object.ResourceVersion})
}

func objectOf(object *metav1.PartialObjectMetadata) Object {
	return Object{object.APIVersion, object.Kind, object.Namespace, object.Name}
}

// planNamespaces brings the namespaces into their trees, parents first.
func (p *planner) planNamespaces() {
	for _, name := range slices.Sorted(maps.Keys(p.joining)) {
		p.relabel(Namespaces, p.depth(name), p.Namespaces[name], p.joining[name].labels(), nil)
	}
}

// depth is how deep a namespace will stand; one whose place isn't sound comes last. Templates come before what references them.
func (p *planner) depth(name string) int {
	if p.joining[name].Type == v1alpha1.TypeTemplate {
		above := 0
		for at := p.joining[name].Template; at != "" && above < len(p.joining); at = p.joining[at].Template {
			above++
		}
		return above - len(p.joining)
	}
	if place := p.after.Place(name); place.InTree() && !place.Halted() {
		return place.Depth()
	}
	return len(p.joining)
}

// madeHere marks the objects that a migration makes, so that undoing it takes away no others.
const madeHere = "kubectl-warren-migrate"

// planHierarchy makes the SubNamespaces that own the namespaces, and the HierarchyConfigurations.
func (p *planner) planHierarchy() {
	for _, name := range slices.Sorted(maps.Keys(p.joining)) {
		place := p.joining[name]
		if sub := p.Subs[place.Parent+"/"+name]; place.Sub != nil && (sub == nil || sub.DeletionTimestamp != nil) {
			p.create(Hierarchy, 0, ours("SubNamespace", place.Parent, name), place.Sub)
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
	if keys, added := addKeys(have.PropagatedLabels, place.Labels); added {
		spec[labelsField] = keys
	}
	if keys, added := addKeys(have.PropagatedAnnotations, place.Annotations); added {
		spec[annotationsField] = keys
	}
	switch {
	case len(spec) == 0:
	case now == nil:
		p.create(Hierarchy, 0, ours("HierarchyConfiguration", name, v1alpha1.HierarchyConfigurationName), spec)
	default:
		p.patchHierarchy(Hierarchy, now, spec)
	}
}

func (p *planner) patchHierarchy(phase Phase, hc *v1alpha1.HierarchyConfiguration, spec map[string]any) {
	p.steps = append(p.steps, Step{Phase: phase, Verb: Patch, Object: ours("HierarchyConfiguration", hc.Namespace, hc.Name),
		Body: map[string]any{"spec": spec}, uid: string(hc.UID), version: hc.ResourceVersion})
}

// addKeys are the keys that are there and those to come, sorted; added says whether any comes.
func addKeys(have []v1alpha1.MetadataKey, wanted []string) (keys []string, added bool) {
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

func ours(kind, namespace, name string) Object {
	return Object{v1alpha1.GroupVersion.String(), kind, namespace, name}
}

// create adds the step that makes an object of ours.
func (p *planner) create(phase Phase, wave int, object Object, spec any) {
	metadata := map[string]any{"name": object.Name, "labels": map[string]any{v1alpha1.LabelCreatedBy: madeHere}}
	if object.Namespace != "" {
		metadata["namespace"] = object.Namespace
	}
	p.steps = append(p.steps, Step{Phase: phase, wave: wave, Verb: Create, Object: object, Body: map[string]any{
		"apiVersion": object.APIVersion, "kind": object.Kind, "metadata": metadata, "spec": spec,
	}})
}
