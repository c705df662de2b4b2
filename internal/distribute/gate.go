package distribute

import (
	"maps"
	"slices"

	"github.com/warren-tenancy/warren/internal/forest"
)

// gate decides whether anything may be written for one ResourceDistribution, and what the status must record before
// that.
type gate struct {
	admitted  string // the value of Check for which the check for conflicts has passed
	named     Named  // which namespaces the names in the spec mean
	mayCreate bool   // the check for conflicts has passed, so copies may be created
	// judged is the spec for which mayCreate was decided. unreported reports that the status must still record that
	// decision, or a change of named, before anything is written.
	judged     *Distribution
	unreported bool
}

// takeRecord takes in what the status, which somebody else has written, says now.
func (g *gate) takeRecord(admitted string, named Named) {
	if g.admitted != admitted || !maps.Equal(g.named, named) {
		// Another program has written the status, so what it records is decided anew.
		g.judged = nil
	}
	g.admitted, g.named = admitted, named
}

// takeSpec takes in a new spec: mayCreate must be decided anew.
func (g *gate) takeSpec(d *Distribution) { g.named = d.Named }

// recordNames records which namespaces the names in the spec mean. The status must hold this record before the operator
// writes in any of these namespaces.
func (g *gate) recordNames(d *Distribution, f *forest.Snapshot) {
	if named, changed := d.RecordNames(f, g.named); changed {
		g.named, g.unreported = named, true
	}
}

// isPassed reports whether the check for conflicts has passed for d, or is not needed.
func (g *gate) isPassed(d *Distribution) bool { return !d.AllOrNothing() || g.admitted == d.Check }

// decideCreation decides whether copies of d may be created. The status must record that before the first write, if
// objects will be created or adopted.
func (g *gate) decideCreation(d *Distribution, results []Result) {
	g.judged, g.mayCreate = d, true
	if g.isPassed(d) {
		return
	}
	for _, one := range results {
		if blocks, unknown := d.Blocks(one.Action, d.isOwn(one.copy)); blocks || unknown {
			g.mayCreate = false
		}
	}
	if !g.mayCreate || d.Suspend {
		return
	}
	g.admitted = d.Check
	// Without such a target nothing will be created, so the status may record the decision with its next write.
	if slices.ContainsFunc(results, func(one Result) bool { return one.State == Missing || one.State == InConflict }) {
		g.unreported = true
	}
}

// isOpen reports whether copies of d may be written: what must be decided and recorded before is.
func (g *gate) isOpen(d *Distribution) bool { return g.isDecided(d) && !g.unreported }

// isDecided reports whether mayCreate was decided for d.
func (g *gate) isDecided(d *Distribution) bool { return g.judged == d }

// endReport records that the status holds everything that it must.
func (g *gate) endReport() { g.unreported = false }

// chooseNamespace reports whether a namespace is a target of d.
func (g *gate) chooseNamespace(d *Distribution, f *forest.Snapshot, namespace string, protected func(string) bool) Choice {
	return d.Targets.Choose(f, namespace, protected, g.named)
}

// planTarget returns the next action for one namespace.
func (g *gate) planTarget(d *Distribution, t Target) Action { return d.Plan(t, g.mayCreate) }

// isMeant reports whether the namespace that has a name now is the one that the name means in spec.targets.
func (g *gate) isMeant(f *forest.Snapshot, name string) bool { return g.named.Means(f, name) }

// addToReview adds to a review what the status is to record.
func (g *gate) addToReview(found *Review) { found.Admitted, found.Named = g.admitted, g.named }

// findReplaced returns the names of spec.targets that now belong to another namespace than the one that was meant.
func (g *gate) findReplaced(f *forest.Snapshot) []string { return g.named.Replaced(f) }
