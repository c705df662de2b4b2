package distribution

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// scene is what a review sees: all namespaces, and what is known of them, at one moment.
type scene struct {
	forest    *forest.Snapshot
	protected func(namespace string) bool
	copies    map[string]*distribute.Copy // of the distribution's kind and name, by namespace
	troubles  map[string]trouble          // by namespace
	now       time.Time
}

// judgement is what a review of all targets has come to.
type judgement struct {
	found  distribute.Review
	urgent bool           // a restart must know of it before the first write
	wait   time.Duration  // until the next batch; 0 if none waits
	watch  *obstacleWatch // to begin; nil if none is
}

// step is how a review goes on.
type step int

const (
	overtaken step = iota // the distribution has changed, and its next review is queued
	mustLook              // somebody must look for obstacles, and judge again
	judged
)

// judge decides what may be written now, and what is to be reported. results are what planAll says of the same scene.
func (p *progress) judge(s *scene, results []distribute.Result) judgement {
	fresh := p.admit(s, results)
	j := judgement{}
	fresh = p.gateUpdates(s, results, &j) || fresh
	p.judged, p.unreported = p.Distribution, p.unreported || fresh
	j.urgent = p.unreported
	results = p.planAll(s)
	j.watch = p.followObstacles(s, results)
	j.found.Results, j.found.NotFound, j.found.Admitted = results, p.Targets.NotFound(s.forest), p.admitted
	j.found.Checked = true
	return j
}

// planAll plans every target, and every copy that stands elsewhere.
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

// mustLook says whether somebody must look for obstacles now: before the first copies, and after a start where some are
// missing. What comes one by one later is told by the answer to its POST.
func (p *progress) mustLook(results []distribute.Result) bool {
	if p.watch != nil && p.watch.synced {
		return false
	}
	missing := slices.ContainsFunc(results, func(one distribute.Result) bool { return one.State == distribute.Missing })
	return missing && (!p.looked || p.Suspend || p.AllOrNothing() && p.admitted != p.Check)
}

// admit lets copies be made where the check for conflicts passes. It says whether a restart must know that before the first write,
// because objects are to be made or taken up.
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

// gateUpdates decides which copies may be updated now. It says whether a batch begins that a restart must know of.
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

// beginBatch goes on with a batch that is under way, or begins the next when its time has come: the pause counts from the end of a
// batch, but after a restart, when nobody knows what was under way, from its beginning.
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

// followObstacles has what stands in the way watched as long as anything does. It returns the watch that is to begin, if one is.
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
