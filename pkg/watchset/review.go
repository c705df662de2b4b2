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

// How many goroutines review regular checks, and how many review hints. Hints have reviewers of their own, so that they never wait
// behind checks.
const (
	checkReviewers = 4
	hintReviewers  = 16
)

// reviewKey names the parts that one reviewer handles at a time: all parts of a namespace, because one SelfSubjectRulesReview can
// decide for all of them, or a single part.
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

// reviewer reviews the rights of a Set's parts that wait in its queues.
type reviewer struct {
	set    *Set
	rights *rights
	checks workqueue.TypedInterface[reviewKey] // parts whose regular review of rights is due
	hints  workqueue.TypedInterface[reviewKey] // parts to review because of a hint: an event of RBAC or a CRD, or Poke
}

func newReviewer(s *Set) *reviewer {
	return &reviewer{
		set: s, rights: newRights(s.clients, s.metrics, s.options.Backoff.Max),
		checks: workqueue.NewTyped[reviewKey](), hints: workqueue.NewTyped[reviewKey](),
	}
}

// begin starts the goroutines that review, until stop.
func (v *reviewer) begin() {
	for range checkReviewers {
		v.set.running.Go(func() { v.reviewQueue(v.checks, false) })
	}
	for range hintReviewers {
		v.set.running.Go(func() { v.reviewQueue(v.hints, true) })
	}
}

func (v *reviewer) stop() {
	v.checks.ShutDown()
	v.hints.ShutDown()
}

// reviewQueue reviews the keys of a queue until the queue is shut down. urgent is set for the queue of hints.
func (v *reviewer) reviewQueue(queue workqueue.TypedInterface[reviewKey], urgent bool) {
	for {
		key, down := queue.Get()
		if down {
			return
		}
		v.reviewParts(key, urgent)
		queue.Done(key)
	}
}

// examined is a part under review, with its state from before the review's requests.
type examined struct {
	part     *part
	state    State
	run      *run
	poked    time.Time
	conclude func() (changed bool)
}

// reviewParts makes the requests that the parts' states call for without the Set's lock, and then applies their answers under it.
func (v *reviewer) reviewParts(key reviewKey, urgent bool) {
	var (
		ctx     context.Context
		started time.Time
		due     []*examined
	)
	v.set.lock.read(func() { ctx, started, due = v.set.ctx, time.Now(), v.partsToReview(key) })
	if len(due) == 0 {
		return // another reviewer has done it
	}
	limiter := v.rights.limiter(urgent)
	var rules *namespaceRules
	if key.namespace != "" && slices.ContainsFunc(due, func(e *examined) bool { return e.state != NotServed }) {
		rules = v.rights.askNamespace(ctx, key.namespace, limiter)
	}
	for _, e := range due {
		e.conclude = func() bool { return false }
		ask := func(all bool) rightsDecision {
			if d, known := rules.decide(e.part); known {
				return d
			}
			return v.rights.ask(ctx, e.part, limiter, all)
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
	v.set.lock.change(func() {
		for _, e := range due {
			changed := !e.part.gone && e.part.run == e.run && e.conclude()
			e.part.agenda.noteReview(e.part, started, changed)
		}
		v.spareChecks(key.namespace, rules)
	})
}

// partsToReview returns the parts of key that wait for a review. The caller holds the lock.
func (v *reviewer) partsToReview(key reviewKey) []*examined {
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

// spareChecks puts off the regular checks of a namespace's Synced parts whose rights rules has just confirmed. A nil rules changes nothing.
func (v *reviewer) spareChecks(namespace string, rules *namespaceRules) {
	if rules == nil {
		return
	}
	for p := range v.set.parts.local[namespace] {
		d, known := rules.decide(p)
		if known && len(d.missing) == 0 && p.state == Synced && p.agenda.asking == nothing && !p.agenda.verify.IsZero() {
			p.agenda.verify = v.set.options.nextCheck()
			p.agenda.armTimer(p)
		}
	}
}

// verifyRight decides, by the review d, whether a part that runs may go on. It may make requests; the function that it returns
// applies the decision, and needs the Set's lock. So do the functions that regainRight and seekResource return.
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

// confirmRight tries the verbs that a review denied while an authorizer reported an error: a list of one object, a watch of one
// second. It returns the verbs that the server really refuses, and an error where a request failed for another reason.
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

// doubtRight makes a part Degraded whose watch works, but whose right no request could confirm. Its rights are reviewed again after
// Backoff.Initial.
func (p *part) doubtRight(cause error) {
	p.cause = cause
	p.lastSync = time.Now()
	p.agenda.verify = time.Now().Add(jitter(p.set.options.Backoff.Initial))
	p.enterState(Degraded, p.degraded())
}

// trust makes a part Synced that doubtRight made Degraded, and says whether it did.
func (p *part) trust() bool {
	if p.state != Degraded || !p.run.working() {
		return false
	}
	p.settlePart()
	return true
}

// asksGlobal asks discovery whether the resource of a cluster-wide part is cluster-scoped, so that an Auto lease has no namespaces
// to fall back to.
func (p *part) asksGlobal(ctx context.Context) bool {
	if p.key.kind != clusterScope || p.isOwn() {
		return false
	}
	served, err := p.set.catalog.findResource(ctx, p.key.resource, time.Time{})
	return err == nil && served != nil && !served.Namespaced
}

// regainRight decides whether a part that is Forbidden may begin again, by the review d or, if that failed, by a list of one object.
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

// stillForbidden updates the missing verbs of a part that stays Forbidden. Verbs that the review didn't ask about stay as they were.
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

// seekResource decides whether a part that is NotServed may begin again. Cached answers of discovery that are older than since are
// not used.
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
