package watchset

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// The numbers of goroutines: checkReviewers make regular checks, hintReviewers make reviews because of hints. Hints
// have goroutines of their own, so that they never wait behind checks.
const (
	checkReviewers = 4
	hintReviewers  = 16
)

// reviewKey names the parts that one reviewer handles at a time: a single part, or all parts of a namespace. One
// SelfSubjectRulesReview can decide for all parts of a namespace.
type reviewKey struct {
	namespace string
	part      *part // nil for a namespace
}

// reviewKeyOf returns the key under which a part is reviewed.
func reviewKeyOf(p *part) reviewKey {
	if p.selection.key.namespace != "" && !p.selection.isWatchedForSet() {
		return reviewKey{namespace: p.selection.key.namespace}
	}
	return reviewKey{part: p}
}

// reviewer reviews the rights of a Set's parts that wait in its queues.
type reviewer struct {
	set    *Set
	rights *rights
	checks workqueue.TypedInterface[reviewKey] // parts whose review is due regularly or after a back-off
	hints  workqueue.TypedInterface[reviewKey] // parts to review because of a hint: an event of RBAC or a CRD, or Poke
}

func newReviewer(s *Set) *reviewer {
	return &reviewer{
		set: s, rights: newRights(s.clients, s.metrics, s.options.Backoff.Max),
		checks: workqueue.NewTyped[reviewKey](), hints: workqueue.NewTyped[reviewKey](),
	}
}

// beginReviewing starts the goroutines that review. They end after stopReviewing.
func (v *reviewer) beginReviewing() {
	for range checkReviewers {
		v.set.running.Go(func() { v.reviewKeysOf(v.checks, false) })
	}
	for range hintReviewers {
		v.set.running.Go(func() { v.reviewKeysOf(v.hints, true) })
	}
}

func (v *reviewer) stopReviewing() {
	v.checks.ShutDown()
	v.hints.ShutDown()
}

// reviewKeysOf reviews the keys of a queue until the queue is shut down. urgent is set for the queue of hints.
func (v *reviewer) reviewKeysOf(queue workqueue.TypedInterface[reviewKey], urgent bool) {
	for {
		key, down := queue.Get()
		if down {
			return
		}
		v.reviewPartsOfKey(key, urgent)
		queue.Done(key)
	}
}

// reviewPartsOfKey makes, without the Set's lock, the requests that the parts' states call for. Then it applies the
// answers under the lock.
func (v *reviewer) reviewPartsOfKey(key reviewKey, urgent bool) {
	var (
		ctx     context.Context
		started time.Time
		due     []*examined
	)
	v.set.lock.readUnderLock(func() { ctx, started, due = v.set.ctx, time.Now(), v.partsAwaitingReview(key) })
	if len(due) == 0 {
		return // another reviewer has done it
	}
	limiter := v.rights.rateLimiterFor(urgent)
	var rules *namespaceRules
	if key.namespace != "" && slices.ContainsFunc(due, func(e *examined) bool { return e.state != NotServed }) {
		rules = v.rights.askNamespaceRules(ctx, key.namespace, limiter)
	}
	for _, e := range due {
		e.conclude = func() bool { return false }
		ask := func(all bool) rightsDecision {
			if d, known := rules.decideFromRules(&e.part.selection); known {
				return d
			}
			return v.rights.askRightsOfPart(ctx, &e.part.selection, limiter, all)
		}
		since := zeroTimeIf(e.poked.After(started), e.poked)
		switch {
		case e.run != nil:
			verify, change := e.verifyRunningRight(ctx, ask(true)), e.decideVersion(ctx, since)
			e.conclude = func() bool { return verify() || change() }
		case e.state == Forbidden:
			e.conclude = e.decideRestart(ctx, ask(false))
		case e.state == NotServed:
			e.conclude = e.decideResourceServed(ctx, since)
		}
	}
	v.set.lock.changeUnderLock(func() {
		for _, e := range due {
			// An answer about a run that has ended meanwhile doesn't concern the next run.
			changed := !e.part.gone && e.part.run == e.run && e.conclude()
			e.part.agenda.recordReview(e.part, started, changed)
		}
		v.postponeChecks(key.namespace, rules)
	})
}

// partsAwaitingReview returns the parts of key that wait for a review. The caller holds the lock.
func (v *reviewer) partsAwaitingReview(key reviewKey) []*examined {
	var due []*examined
	add := func(p *part) {
		if p.agenda.asking != nothing {
			due = append(due, &examined{part: p, state: p.state, run: p.run, poked: p.agenda.poked})
		}
	}
	if key.part != nil {
		add(key.part)
	}
	for p := range v.set.parts.local[key.namespace] {
		if key.part == nil {
			add(p)
		}
	}
	return due
}

// postponeChecks puts off the regular checks of a namespace's Synced parts whose rights rules has just confirmed. A nil
// rules changes nothing.
func (v *reviewer) postponeChecks(namespace string, rules *namespaceRules) {
	if rules == nil {
		return
	}
	for p := range v.set.parts.local[namespace] {
		d, known := rules.decideFromRules(&p.selection)
		if known && len(d.missing) == 0 && p.state == Synced && p.agenda.asking == nothing && !p.agenda.verify.IsZero() {
			p.agenda.verify = v.set.options.nextRegularCheck()
			p.agenda.armTimer(p)
		}
	}
}
