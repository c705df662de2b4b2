package watchset

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// examined is a part under review, with its state from before the review's requests.
type examined struct {
	part     *part
	state    State
	run      *run
	poked    time.Time
	conclude func() (changed bool)
}

// verifyRunningRight decides, by the review d, whether a part that lists and watches may continue. It may make
// requests. The function that it returns applies the decision; its caller holds the Set's lock. The same holds for
// decideVersion, decideRestart and decideResourceServed.
func (e *examined) verifyRunningRight(ctx context.Context, d rightsDecision) func() bool {
	p := e.part
	if d.err != nil {
		return func() bool { return false }
	}
	var doubt error
	// RBAC reports evaluation errors with true denials, too, so only the requests themselves can decide.
	if d.uncertain {
		d.missing, doubt = p.selection.tryDeniedVerbs(ctx, d.missing)
	}
	global := len(d.missing) > 0 && e.isClusterScoped(ctx)
	return func() bool {
		switch {
		case e.run.over:
			return false
		case len(d.missing) > 0:
			p.global = p.global || global
			p.endRunAndEmpty(Forbidden, p.selection.newForbiddenError(d.missing, d.cause))
			return true
		case doubt != nil:
			e.degradeForDoubt(doubt)
			return true
		}
		return e.endDoubt()
	}
}

// decideVersion decides whether a part that lists and watches must do so in another version, because the server prefers
// another one now. Cached answers of discovery that are older than since are not used.
func (e *examined) decideVersion(ctx context.Context, since time.Time) func() bool {
	p := e.part
	if !p.selection.mayChangeVersion() {
		return func() bool { return false }
	}
	served, err := p.discoverServed(ctx, since)
	return func() bool {
		if err != nil || e.run.over || !p.resolved || p.selection.checkServedResource(served) != nil ||
			resourceOf(served) == p.selection.targetResource() {
			return false
		}
		p.changeVersion(served)
		return true
	}
}

// degradeForDoubt makes a part Degraded whose watch works, but whose right no request could confirm. Its rights are
// reviewed again after Backoff.Initial.
func (e *examined) degradeForDoubt(cause error) {
	p := e.part
	p.cause = cause
	p.lastSync = time.Now()
	p.agenda.verify = time.Now().Add(withJitter(p.set.options.Backoff.Initial))
	p.enterState(Degraded, p.newDegradedError())
}

// endDoubt makes a part Synced that degradeForDoubt made Degraded, and reports whether it did.
func (e *examined) endDoubt() bool {
	p := e.part
	if p.state != Degraded || !p.run.isWatchWorking() {
		return false
	}
	p.becomeSynced()
	return true
}

// isClusterScoped asks discovery whether the resource of a cluster-wide part is cluster-scoped. If it is, an Auto lease
// has no namespaces to fall back to.
func (e *examined) isClusterScoped(ctx context.Context) bool {
	p := e.part
	if p.selection.key.kind != clusterScope || p.selection.isWatchedForSet() {
		return false
	}
	served, err := p.set.catalog.findResource(ctx, p.selection.targetResource(), time.Time{})
	return err == nil && served != nil && !served.Namespaced
}

// decideRestart decides whether a part that is Forbidden may begin again, by the review d or, if that failed, by a list
// of one object.
func (e *examined) decideRestart(ctx context.Context, d rightsDecision) func() bool {
	p := e.part
	if d.err != nil {
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		// Where reviews are refused, the answer to a list shows whether the right is back.
		_, err := p.selection.listSelectedObjects(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsForbidden(err) {
			d.missing, d.cause = []string{"list"}, err
		} else if err != nil {
			return func() bool { return false }
		}
	}
	return func() bool {
		if len(d.missing) == 0 {
			p.beginListAndWatch()
			return true
		}
		e.stillForbidden(d)
		return false
	}
}

// stillForbidden updates the missing verbs of a part that stays Forbidden. Verbs that the review didn't ask about stay
// as they were.
func (e *examined) stillForbidden(d rightsDecision) {
	p := e.part
	if d.partial || d.err != nil {
		d.missing = append(d.missing, p.currentStatus().Missing...)
	}
	var before *ForbiddenError
	if errors.As(p.err, &before) && d.cause == nil {
		d.cause = before.Cause
	}
	p.replaceStateError(p.selection.newForbiddenError(d.missing, d.cause))
}

// decideResourceServed decides whether a part that is NotServed may begin again. Cached answers of discovery that are
// older than since are not used.
func (e *examined) decideResourceServed(ctx context.Context, since time.Time) func() bool {
	p := e.part
	served, err := p.discoverServed(ctx, since)
	return func() bool {
		// Where discovery is forbidden, the part's own requests show whether the resource is served.
		if err != nil && (p.selection.requestNamesKind() || !apierrors.IsForbidden(err)) {
			return false
		}
		if problem := p.selection.checkServedResource(served); err == nil && problem != nil {
			p.replaceStateError(problem)
			return false
		}
		p.directRequestsTo(served)
		p.beginListAndWatch()
		return true
	}
}
