package distribution

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// scene is the input of a review: all namespaces, copies and troubles at one moment.
type scene struct {
	forest    *forest.Snapshot
	protected func(namespace string) bool
	copies    map[string]*distribute.Copy // of the distribution's kind and name, by namespace
	troubles  map[string]trouble          // by namespace
	now       time.Time
}

// judgement is the result of a review of all targets.
type judgement struct {
	found  distribute.Review
	urgent bool           // the status must say this before the first write, for a restarted operator
	wait   time.Duration  // until the next batch; 0 if none waits
	watch  *obstacleWatch // to begin; nil if none is
}

// step says how a review goes on.
type step int

const (
	overtaken step = iota // the distribution has changed, and its next review is queued
	mustLook              // the caller must list obstacles, and judge again
	judged
)

// judge decides what may be written now, and what the status will say. results are planAll's for the same scene.
func (p *progress) judge(s *scene, results []distribute.Result) judgement {
	fresh := p.admit(s, results)
	j := judgement{}
	fresh = p.gateUpdates(s, results, &j) || fresh
	p.judged, p.unreported = p.Distribution, p.unreported || fresh
	j.urgent = p.unreported
	results = p.planAll(s)
	j.watch = p.followObstacles(s, results)
	j.found.Results, j.found.NotFound, j.found.Admitted = results, p.Targets.NotFound(s.forest), p.admitted
	j.found.Replaced, j.found.Named, j.found.Checked = p.named.Replaced(s.forest), p.named, true
	return j
}

// recordNames records which namespaces the names in the spec mean. The status must say so before anything is written there.
func (p *progress) recordNames(f *forest.Snapshot) {
	named, changed := p.RecordNames(f, p.named)
	if changed {
		p.named, p.unreported = named, true
	}
}

// planAll returns the plan of every target, and of every copy outside the targets, sorted by namespace.
func (p *progress) planAll(s *scene) []distribute.Result {
	var all []distribute.Result
	for namespace := range s.forest.All() {
		standing := s.copies[namespace]
		choice, action := p.planAt(s.forest, s.protected, namespace, standing)
		if choice != distribute.Chosen && standing == nil || action.State == distribute.None && action.Verb == distribute.Nothing {
			continue
		}
		one := distribute.Result{Namespace: namespace, Action: action}
		one.Unmarked = choice == distribute.Chosen && p.Unmarked(standing)
		if one.Verb != distribute.Nothing {
			one.Failure = s.troubles[namespace].failure
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b distribute.Result) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}

// mustLook says whether obstacles must be listed now: before the first copies are made, and after a start if copies are missing.
// Later targets come one by one, and the answer to each one's POST shows an obstacle.
func (p *progress) mustLook(results []distribute.Result) bool {
	if p.watch != nil && p.watch.synced {
		return false
	}
	missing := slices.ContainsFunc(results, func(one distribute.Result) bool { return one.State == distribute.Missing })
	return missing && (!p.looked || p.Suspend || p.AllOrNothing() && p.admitted != p.Check)
}

// admit opens the gate for new copies if the check for conflicts passes. It says whether the status must record that before the
// first write, because objects will be created or adopted.
func (p *progress) admit(s *scene, results []distribute.Result) (fresh bool) {
	p.gate.Create = true
	if !p.AllOrNothing() || p.admitted == p.Check {
		return false
	}
	for _, one := range results {
		if blocks, unknown := p.Blocks(one.Action, p.holdsOurs(s.copies[one.Namespace])); blocks || unknown {
			p.gate.Create = false
		}
	}
	if !p.gate.Create || p.Suspend {
		return false
	}
	p.admitted = p.Check
	return slices.ContainsFunc(results, func(one distribute.Result) bool {
		return one.State == distribute.Missing || one.State == distribute.InConflict
	})
}

// gateUpdates decides which outdated copies may be updated now. It says whether a batch begins, which the status must record first.
func (p *progress) gateUpdates(s *scene, results []distribute.Result, j *judgement) (fresh bool) {
	count := 0
	var outdated []string
	for _, one := range results {
		standing := s.copies[one.Namespace]
		if one.State == distribute.None || !p.holdsOurs(standing) || standing.Terminating {
			continue
		}
		count++
		if standing.Content != p.Template.Content {
			outdated = append(outdated, one.Namespace)
		}
	}
	p.gate.Held, p.gate.Updates = nil, nil
	if len(outdated) == 0 {
		p.batch = nil
		return false
	}
	p.Rollout.Order(s.forest, outdated)
	open := p.Rollout.Open(outdated, count)
	if j.found.Held = len(outdated) - len(open); j.found.Held > 0 {
		p.gate.Held = map[string]bool{}
		for _, namespace := range outdated[len(open):] {
			p.gate.Held[namespace] = true
		}
	}
	if !p.Rollout.Batched() || p.Suspend || len(open) == 0 {
		return false
	}
	return p.beginBatch(s, open, count, j)
}

// beginBatch continues the batch that is under way, or begins the next one when the pause is over. The pause counts from the end of
// a batch; after a restart, when the end is unknown, it counts from the batch's beginning.
func (p *progress) beginBatch(s *scene, open []string, count int, j *judgement) (fresh bool) {
	underWay := slices.ContainsFunc(open, func(namespace string) bool {
		_, troubled := s.troubles[namespace]
		return p.batch[namespace] && !troubled
	})
	if !underWay {
		pause := s.now.Add(p.Rollout.Interval()).Truncate(time.Second).Add(time.Second) // a status holds whole seconds
		if len(p.batch) > 0 {
			p.next = pause
		}
		p.batch = map[string]bool{}
		if p.next.After(pause) { // a clock that was ahead has set it
			p.next = pause
		}
		if wait := p.next.Sub(s.now); wait > 0 {
			j.wait = wait
		} else {
			for _, namespace := range open[:min(len(open), p.Rollout.Batch(count))] {
				p.batch[namespace] = true
			}
			p.next, fresh = pause, true
		}
	}
	p.gate.Updates, j.found.NextBatch = maps.Clone(p.batch), p.next
	return fresh
}

// followObstacles keeps a watch on obstacles as long as there are any. It returns the watch that the caller must begin, or nil.
func (p *progress) followObstacles(s *scene, results []distribute.Result) *obstacleWatch {
	inTheWay := slices.ContainsFunc(results, func(one distribute.Result) bool {
		return one.State == distribute.InConflict && s.copies[one.Namespace] == nil
	})
	if inTheWay {
		return p.beginWatch()
	}
	p.stopWatch()
	p.obstacles = map[string]*distribute.Obstacle{}
	return nil
}
