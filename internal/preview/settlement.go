package preview

import (
	"context"
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
	draft
	outcome
	c                 *config.OperatorConfiguration
	operatorNamespace string
	// ending are the names of LNamespaces that are being deleted and that nothing holds.
	ending map[string]bool
	// lawful are the namespaces whose HierarchyConfiguration's parent could be granted at the start.
	lawful map[string]bool
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
		facts: read, draft: newDraft(read.forest), outcome: outcome{held: map[string]Write{}}, c: c, operatorNamespace: operatorNamespace,
		ending: map[string]bool{}, lawful: map[string]bool{},
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
	p.closePlan()
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

func (p *settlement) write(verb Verb, name, reason string) {
	p.writes = append(p.writes, Write{Verb: verb, Kind: "Namespace", Name: name, Tenant: tenantOf(p.f, name), Reason: reason})
}
