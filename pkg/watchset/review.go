package watchset

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

// How many reviewers there are of either kind. Reviewers of hints never wait behind regular checks.
const (
	checkReviewers = 4
	hintReviewers  = 16
)

// reviewKey is what one reviewer looks at at a time: all parts of a namespace, whose rights one review can tell, or one part.
type reviewKey struct {
	namespace string
	part      *part // nil for a namespace
}

func (p *part) reviewKey() reviewKey {
	if p.key.namespace != "" && !p.isOwn() {
		return reviewKey{namespace: p.key.namespace}
	}
	return reviewKey{part: p}
}

// reviewQueue looks at what a queue brings, until the set stops.
func (s *Set) reviewQueue(queue workqueue.TypedInterface[reviewKey], urgent bool) {
	for {
		key, down := queue.Get()
		if down {
			return
		}
		s.reviewParts(key, urgent)
		queue.Done(key)
	}
}

// examined is a part while it is looked at, as it was before.
type examined struct {
	part     *part
	state    State
	run      *run
	poked    time.Time
	conclude func() (changed bool)
}

// reviewParts makes the requests that the parts' states call for, and then concludes.
func (s *Set) reviewParts(key reviewKey, urgent bool) {
	ctx, started, due := s.partsToReview(key)
	if len(due) == 0 {
		return // another reviewer was here
	}
	limiter := s.rights.limiter(urgent)
	var rules *namespaceRules
	if key.namespace != "" && slices.ContainsFunc(due, func(e *examined) bool { return e.state != NotServed }) {
		rules = s.rights.askNamespace(ctx, key.namespace, limiter)
	}
	for _, e := range due {
		e.conclude = func() bool { return false }
		ask := func(all bool) rightsDecision {
			if d, known := rules.decide(e.part); known {
				return d
			}
			return s.rights.ask(ctx, e.part, limiter, all)
		}
		switch {
		case e.run != nil:
			e.conclude = e.part.verifyRight(ctx, e.run, ask(true))
		case e.state == Forbidden:
			e.conclude = e.part.regainRight(ctx, ask(false))
		case e.state == NotServed:
			e.conclude = e.part.seekResource(ctx, clearIf(e.poked.After(started), e.poked))
		}
	}
	s.mu.Lock()
	defer s.unlock()
	for _, e := range due {
		changed := !e.part.gone && e.part.run == e.run && e.conclude()
		e.part.agenda.noteReview(e.part, started, changed)
	}
	s.spareChecks(key.namespace, rules)
}

// partsToReview returns the parts of key that are to be looked at.
func (s *Set) partsToReview(key reviewKey) (context.Context, time.Time, []*examined) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var due []*examined
	add := func(p *part) {
		if p.agenda.asking != nothing {
			due = append(due, &examined{part: p, state: p.state, run: p.run, poked: p.agenda.poked})
		}
	}
	if key.part != nil {
		add(key.part)
	}
	for p := range s.local[key.namespace] {
		if key.part == nil {
			add(p)
		}
	}
	return s.ctx, time.Now(), due
}

// spareChecks puts off the regular checks of a namespace's parts that were checked just now, together with another one.
func (s *Set) spareChecks(namespace string, rules *namespaceRules) {
	if rules == nil {
		return
	}
	for p := range s.local[namespace] {
		d, known := rules.decide(p)
		if known && len(d.missing) == 0 && p.state == Synced && p.agenda.asking == nothing && !p.agenda.verify.IsZero() {
			p.agenda.verify = s.nextCheck()
			p.agenda.armTimer(p)
		}
	}
}

// nextCheck is when the rights of a part that is Synced are asked for again by themselves; zero is never.
func (s *Set) nextCheck() time.Time {
	if *s.options.VerifyInterval == 0 {
		return time.Time{}
	}
	return time.Now().Add(jitter(*s.options.VerifyInterval))
}

// verifyRight looks whether the part may go on.
func (p *part) verifyRight(ctx context.Context, r *run, d rightsDecision) func() bool {
	if d.err != nil {
		return func() bool { return false }
	}
	var doubt error
	if d.uncertain {
		d.missing, doubt = p.confirmRight(ctx, d.missing)
	}
	global := len(d.missing) > 0 && p.asksGlobal(ctx)
	return func() bool {
		switch {
		case r.over:
			return false
		case len(d.missing) > 0:
			p.global = p.global || global
			p.loseStore(Forbidden, p.forbidden(d.missing, d.cause))
			return true
		case doubt != nil:
			p.doubtRight(doubt)
			return true
		}
		return p.trust()
	}
}

// confirmRight makes the requests that a review called forbidden while an authorizer was in trouble, each for one object or one second
// at most. It returns the verbs that really are forbidden, and what keeps it from knowing.
func (p *part) confirmRight(ctx context.Context, denied []string) (missing []string, doubt error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	for _, verb := range denied {
		var err error
		if verb == "list" {
			_, err = p.fetchList(ctx, metav1.ListOptions{Limit: 1})
		} else {
			err = p.tryStream(ctx)
		}
		if apierrors.IsForbidden(err) {
			missing = append(missing, verb)
		} else if err != nil {
			doubt = err
		}
	}
	return missing, doubt
}

// tryStream opens a watch and closes it at once.
func (p *part) tryStream(ctx context.Context) error {
	second := int64(1)
	w, err := p.openStream(ctx, metav1.ListOptions{TimeoutSeconds: &second})
	if err == nil {
		w.Stop()
	}
	return err
}

// doubtRight makes a part Degraded whose watch works, but whose right nobody can confirm. It is asked for again soon.
func (p *part) doubtRight(cause error) {
	p.cause = cause
	p.lastSync = time.Now()
	p.agenda.verify = time.Now().Add(jitter(p.set.options.Backoff.Initial))
	p.enterState(Degraded, p.degraded())
}

// trust ends a doubt. It says whether there was one.
func (p *part) trust() bool {
	if p.state != Degraded || !p.run.working() {
		return false
	}
	p.settlePart()
	return true
}

// asksGlobal looks whether the resource of a cluster-wide part has no namespaces to fall back to.
func (p *part) asksGlobal(ctx context.Context) bool {
	if p.key.kind != clusterScope || p.isOwn() {
		return false
	}
	served, err := p.set.catalog.findResource(ctx, p.key.resource, time.Time{})
	return err == nil && served != nil && !served.Namespaced
}

// regainRight looks whether a part that is Forbidden may begin again.
func (p *part) regainRight(ctx context.Context, d rightsDecision) func() bool {
	if d.err != nil {
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		_, err := p.fetchList(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsForbidden(err) {
			d.missing, d.cause = []string{"list"}, err
		} else if err != nil {
			return func() bool { return false }
		}
	}
	return func() bool {
		if len(d.missing) == 0 {
			p.beginRun()
			return true
		}
		p.stillForbidden(d)
		return false
	}
}

// stillForbidden notes what is missing now. What wasn't asked for is as it was.
func (p *part) stillForbidden(d rightsDecision) {
	if d.partial || d.err != nil {
		d.missing = append(d.missing, p.status().Missing...)
	}
	var before *ForbiddenError
	if errors.As(p.err, &before) && d.cause == nil {
		d.cause = before.Cause
	}
	p.err = p.forbidden(d.missing, d.cause)
}

// seekResource looks whether a resource is served now. An answer of discovery from before since doesn't count.
func (p *part) seekResource(ctx context.Context, since time.Time) func() bool {
	served, err := p.set.catalog.findResource(ctx, p.key.resource, since)
	return func() bool {
		if err != nil && !apierrors.IsForbidden(err) {
			return false
		}
		if problem := p.findMisfit(served); err == nil && problem != nil {
			p.err = problem
			return false
		}
		p.beginRun()
		return true
	}
}
