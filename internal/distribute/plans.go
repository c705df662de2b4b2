package distribute

import (
	"slices"
	"strings"
)

// plans are made from what the operator knows of a ResourceDistribution, its copies and its obstacles.
type plans struct {
	*core
	copies *copyTable
}

// placePlan is the plan of one namespace.
type placePlan struct {
	Action
	choice Choice
	copy   *Copy // the copy there; nil if there is none
}

// planAt plans one namespace.
func (p *plans) planAt(r *run, namespace string) placePlan {
	t := Target{
		Namespace: namespace, Choice: r.gate.chooseNamespace(r.Distribution, p.forest, namespace, p.options.Protected),
		Copy: p.copies.At(r.Template.Slot(namespace)), Obstacle: r.obstacles.findObstacle(namespace),
	}
	return placePlan{r.gate.planTarget(r.Distribution, t), t.Choice, t.Copy}
}

// planAll returns the plans of all targets, and of the copies in other namespaces that need a write, sorted by
// namespace.
func (p *plans) planAll(r *run) []Result {
	var all []Result
	for namespace := range p.forest.All() {
		plan := p.planAt(r, namespace)
		if plan.choice != Chosen && plan.copy == nil || plan.State == None && plan.Verb == Nothing {
			continue
		}
		one := Result{Namespace: namespace, Action: plan.Action, copy: plan.copy}
		one.Unmarked = plan.choice == Chosen && r.Unmarked(plan.copy)
		if one.Verb != Nothing {
			one.Failure = r.troubles.failureAt(namespace)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Result) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}

// mostPlanned is the largest number of changed namespaces that queueChange plans one by one, for each distribution. If
// a change of the forest concerns more namespaces, it plans none of them, and a worker reviews the distribution.
const mostPlanned = 100

// queueChange queues what a change of the forest asks of one distribution.
func (p *plans) queueChange(r *run, c ForestChanged) {
	if len(c.Namespaces) > mostPlanned {
		p.queueKeys(reviewKey(r.Name))
		return
	}
	p.queueKeys(p.findAffected(r, c)...)
}

// findAffected returns the keys of the namespaces whose choice or UID has changed with the forest, or whose plan has a
// write. If spec.targets names one of them, or the reason of an obstacle may have changed, the review's key is added.
func (p *plans) findAffected(r *run, change ForestChanged) []Key {
	if r.Problem != "" {
		return nil
	}
	mentioned := map[string]bool{}
	for _, one := range r.Targets.Named() {
		mentioned[one] = true
	}
	var keys []Key
	for _, namespace := range change.Namespaces {
		if r.obstacles.hasCovered(namespace) && change.Old.Place(namespace).InTree() != change.New.Place(namespace).InTree() {
			keys = append(keys, Key{r.Name, namespace}, reviewKey(r.Name))
			continue
		}
		old, now := change.Old.Namespace(namespace), change.New.Namespace(namespace)
		was := r.gate.chooseNamespace(r.Distribution, change.Old, namespace, p.options.Protected)
		is := p.planAt(r, namespace)
		same := change.Old != change.New && was == is.choice && (old == nil) == (now == nil) && (old == nil || old.UID == now.UID)
		if !same || is.Verb != Nothing {
			keys = append(keys, Key{r.Name, namespace})
		} else if now == nil || r.gate.isMeant(change.New, namespace) {
			continue
		}
		if mentioned[namespace] {
			keys = append(keys, reviewKey(r.Name))
		}
	}
	return keys
}
