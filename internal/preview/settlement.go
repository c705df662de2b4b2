package preview

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// settlement plans the writes by which the forest becomes what LNamespaces, SubNamespaces and HierarchyConfigurations ask for. It
// applies each planned write to a forest in memory, and plans again until nothing is left to write.
type settlement struct {
	*facts
	// start is the forest as it was read, f the one after the writes.
	start, f          *forest.Snapshot
	c                 *config.OperatorConfiguration
	operatorNamespace string
	// told are the namespaces after the writes in the plan so far, if these differ from start.
	told map[string]*forest.Namespace
	// ending are the names of LNamespaces that are being deleted and that nothing holds.
	ending map[string]bool
	// lawful are the namespaces whose HierarchyConfiguration's parent could be granted at the start.
	lawful map[string]bool
	writes []Write
	// held are, by tenant and name of the namespace, the writes that something holds back in this round.
	held  map[string]Write
	notes []string
}

// planSettlement returns the writes, and the forest as it is after them.
func planSettlement(ctx context.Context, o Options, read *facts) (*settlement, error) {
	p := newSettlement(read, o.Config, o.OperatorNamespace)
	removed, err := p.removedKinds(ctx, o.API)
	if err != nil {
		return nil, err
	}
	p.settle(removed)
	return p, nil
}

func newSettlement(read *facts, c *config.OperatorConfiguration, operatorNamespace string) *settlement {
	return &settlement{
		facts: read, start: read.forest, f: read.forest, c: c, operatorNamespace: operatorNamespace,
		told: map[string]*forest.Namespace{}, ending: map[string]bool{}, lawful: map[string]bool{}, held: map[string]Write{},
	}
}

// settle plans everything. removed are Warren's resources whose CRDs are being deleted.
func (p *settlement) settle(removed map[string]bool) {
	p.noteLawful()
	p.noteForeignFinalizers()
	for range forest.MaxDepth { // each round may reach one level deeper in a tree
		before := p.f
		clear(p.held)
		p.planEndings(removed)
		p.planRoots()
		p.planMoves()
		p.planRequired()
		p.planChildren()
		if p.f == before {
			break
		}
	}
	p.planKeys()
	p.noteConflicts()
	p.noteWaits()
	for _, name := range slices.Sorted(maps.Keys(p.held)) {
		p.writes = append(p.writes, p.held[name])
	}
	slices.Sort(p.notes)
	p.notes = slices.Compact(p.notes)
}

// noteLawful records which requests for a parent could be granted before any other write.
func (p *settlement) noteLawful() {
	for name := range p.f.All() {
		if r := p.f.Request(name); r.Asked && len(r.Obstacles) == 0 {
			p.lawful[name] = true
		}
	}
}

// planMoves plans the parents that HierarchyConfigurations ask for, and takes namespaces out of the forest that no tenant holds any more.
func (p *settlement) planMoves() {
	for _, name := range slices.Sorted(p.f.All()) {
		r := p.f.Request(name)
		if _, released := p.f.ToRelease(name); released || r.Asked && len(r.Obstacles) == 0 {
			p.settleKeys(name)
		}
	}
}

// settleKeys sets, in the planned forest, the labels and annotations that a namespace should have, and says whether any changed.
// planKeys adds the writes to the plan.
func (p *settlement) settleKeys(name string) bool {
	change := p.f.Desired(name)
	if change.Empty() {
		return false
	}
	p.f = p.f.WithNamespace(p.f.Namespace(name).With(change))
	return true
}

// planRequired plans the SubNamespaces of required children.
func (p *settlement) planRequired() {
	for _, parent := range slices.Sorted(p.f.All()) {
		for _, child := range p.f.MissingChildren(parent) {
			p.f = p.f.WithSub(&forest.Sub{Parent: parent, Name: child, UID: plannedUID + parent + "/" + child, Created: time.Now()})
			p.writes = append(p.writes, Write{
				Verb: Create, Group: v1alpha1.Domain, Kind: "SubNamespace", Namespace: parent, Name: child, Tenant: p.f.RootOf(parent),
				Reason: "the HierarchyConfiguration of namespace " + parent + " requires it",
			})
		}
	}
}

// planKeys plans the writes to the labels and annotations of Namespaces: one for each, whatever makes it necessary.
func (p *settlement) planKeys() {
	names := slices.Sorted(p.f.All())
	for range forest.MaxDepth {
		changed := false
		for _, name := range names {
			changed = p.settleKeys(name) || changed
		}
		if !changed {
			break
		}
	}
	for _, name := range names {
		old, now := p.toldOf(name), p.f.Namespace(name)
		if change := old.ChangeTo(now); !now.Terminating && !change.Empty() {
			p.write(Update, name, p.describePlacing(name)+describeChange(change))
		}
	}
}

// toldOf returns a namespace as it is after the writes in the plan so far.
func (p *settlement) toldOf(name string) *forest.Namespace {
	if n := p.told[name]; n != nil {
		return n
	}
	return p.start.Namespace(name)
}

// describePlacing returns the beginning of the reason of a write that gives a namespace the parent that its HierarchyConfiguration
// asks for.
func (p *settlement) describePlacing(name string) string {
	if r := p.start.Request(name); r.Asked && !p.f.Request(name).Asked {
		return "its HierarchyConfiguration asks for " + describePlace(r.Parent) + ": "
	}
	return ""
}

func describePlace(parent string) string {
	if parent == "" {
		return "no parent"
	}
	return "parent " + parent
}

// replace updates a namespace in the planned forest after a write that the caller adds to the plan itself.
func (p *settlement) replace(n *forest.Namespace) {
	p.f, p.told[n.Name] = p.f.WithNamespace(n), n
}

func (p *settlement) write(verb Verb, name, reason string) {
	p.writes = append(p.writes, Write{Verb: verb, Kind: "Namespace", Name: name, Tenant: tenantOf(p.f, name), Reason: reason})
}

func (p *settlement) hold(name, tenant, format string, args ...any) {
	p.held[tenant+"/"+name] = Write{Verb: Held, Kind: "Namespace", Name: name, Tenant: tenant, Reason: fmt.Sprintf(format, args...)}
}

func (p *settlement) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}
