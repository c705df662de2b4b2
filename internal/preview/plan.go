// Package preview describes what the operator would write on a cluster under a configuration, and why, without writing anything. It
// reads each list once, with the caller's rights, and plans with the operator's own planners. Copies are planned for the future places of
// namespaces, and compared whole, so the plan also has drift that only a scrub would find.
package preview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/rules"
)

// Verb is what a write does.
type Verb string

// The verbs. Conflict and Held are no writes. Conflict reports that an unrelated object has the name of the object to be written. Held
// reports that the limits of the tree leave no room for the write.
const (
	Create   Verb = "create"
	Update   Verb = "update"
	Delete   Verb = "delete"
	Conflict Verb = "conflict"
	Held     Verb = "held"
)

var verbOf = map[copies.Verb]Verb{
	copies.Create: Create, copies.Update: Update, copies.Withdraw: Update, copies.Delete: Delete, copies.Nothing: Conflict,
}

func verbFor(step copies.Step) Verb {
	if step.Held == v1alpha1.ReasonLimitExceeded {
		return Held
	}
	return verbOf[step.Verb]
}

// Write is one write. Its JSON form is an interface that scripts rely on.
type Write struct {
	Verb  Verb   `json:"verb"`
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Namespace is empty for a Namespace itself.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Tenant is the root of the namespace's tree, or of the tree that it was in last; empty where there is none.
	Tenant string `json:"tenant,omitempty"`
	// Source is the namespace from which a copy comes.
	Source string `json:"source,omitempty"`
	Reason string `json:"reason"`
}

// Plan holds every write that the operator would do to copies, and to labels and annotations of Namespaces that exist.
type Plan struct {
	Writes []Write `json:"writes"`
	// Notes name what this plan does not cover, and why.
	Notes []string `json:"notes"`
}

// Options determine for which cluster and configuration Make plans.
type Options struct {
	// API lists namespaces, Warren's kinds and the configured ones.
	API               client.Client
	Config            *config.OperatorConfiguration
	OperatorNamespace string
}

// Make plans what the operator would write.
func Make(ctx context.Context, o Options) (*Plan, error) {
	read, err := readForest(ctx, o.API, rules.ForForest(o.Config, o.OperatorNamespace))
	if err != nil {
		return nil, err
	}
	after, writes := planKeys(read)
	plan, err := newReading(o.API, after, o.Config).plan(ctx, after, o.Config)
	if err != nil {
		return nil, err
	}
	plan.Writes = append(writes, plan.Writes...)
	plan.Notes = append(plan.Notes, findUnplanned(o.Config)...)
	return plan, nil
}

// findUnplanned returns notes on objects that the operator writes under this configuration and that no plan covers.
func findUnplanned(c *config.OperatorConfiguration) []string {
	var notes []string
	if c.Propagation.BindOwnRole {
		notes = append(notes, "the RoleBindings "+v1alpha1.OperatorBinding+" that propagation.bindOwnRole keeps in each namespace of the forest")
	}
	if c.FeatureEnabled(config.PropagateGenerated) {
		notes = append(notes, "the labels of generated objects, for feature gate "+string(config.PropagateGenerated))
	}
	return notes
}

func newReading(api client.Client, f *forest.Snapshot, c *config.OperatorConfiguration) *reading {
	return &reading{api: api, rules: rules.ForCopies(c), world: copies.NewWorld(f), copies: map[schema.GroupKind]int{}}
}

// plan reads the configured kinds, and plans the writes of copies for forest f.
func (r *reading) plan(ctx context.Context, f *forest.Snapshot, c *config.OperatorConfiguration) (*Plan, error) {
	plan := &Plan{Writes: []Write{}, Notes: []string{}}
	for _, kind := range c.Propagation.Kinds {
		if err := r.readKind(ctx, kind); err != nil {
			return nil, err
		}
	}
	plan.Notes = append(plan.Notes, r.notes...)
	for _, step := range r.world.Preview() {
		plan.Writes = append(plan.Writes, Write{
			Verb: verbFor(step), Group: step.Slot.Kind.Group, Kind: step.Slot.Kind.Kind, Namespace: step.Slot.Namespace, Name: step.Slot.Name,
			Tenant: tenantOf(f, step.Slot.Namespace), Source: step.From, Reason: step.Why,
		})
	}
	return plan, nil
}

func describeChange(change forest.Change) string {
	return strings.Join(append(describeKeys("label", change.Labels), describeKeys("annotation", change.Annotations)...), ", ")
}

// describeKeys describes the changes of labels or annotations; a nil value is a removal.
func describeKeys(what string, keys map[string]*string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if value := keys[key]; value == nil {
			all = append(all, fmt.Sprintf("no %s %s", what, key))
		} else {
			all = append(all, fmt.Sprintf("%s %s=%s", what, key, *value))
		}
	}
	return all
}

// tenantOf returns the root of the namespace's tree, or of the tree that it was in last.
func tenantOf(f *forest.Snapshot, name string) string {
	n := f.Namespace(name)
	if n == nil {
		return ""
	}
	return cmp.Or(f.RootOf(name), n.FormerRoot())
}

// Count reports how many writes of each verb one kind gets in one tenant. Its JSON form is an interface that scripts rely on.
type Count struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Tenant    string `json:"tenant,omitempty"`
	Creates   int    `json:"creates"`
	Updates   int    `json:"updates"`
	Deletes   int    `json:"deletes"`
	Conflicts int    `json:"conflicts"`
	Held      int    `json:"held,omitempty"`
}

// Counts returns the number of writes by kind and tenant, sorted by kind, group and tenant.
func (p *Plan) Counts() []Count {
	type key struct{ kind, group, tenant string }
	found := map[key]*Count{}
	for _, w := range p.Writes {
		k := key{w.Kind, w.Group, w.Tenant}
		if found[k] == nil {
			found[k] = &Count{Group: w.Group, Kind: w.Kind, Tenant: w.Tenant}
		}
		found[k].add(w.Verb)
	}
	counts := []Count{}
	for _, count := range found {
		counts = append(counts, *count)
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Tenant, b.Tenant))
	})
	return counts
}

func (c *Count) add(verb Verb) {
	switch verb {
	case Create:
		c.Creates++
	case Update:
		c.Updates++
	case Delete:
		c.Deletes++
	case Conflict:
		c.Conflicts++
	case Held:
		c.Held++
	}
}

// Sum returns the sum of all counts.
func (p *Plan) Sum() Count {
	var sum Count
	for _, w := range p.Writes {
		sum.add(w.Verb)
	}
	return sum
}
