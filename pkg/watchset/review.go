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

// verifyRight decides, by the review d, whether a part that runs may go on. It may make requests; the function that it returns
// applies the decision, and needs the Set's lock. So do the functions that regainRight and seekResource return.
func (e *examined) verifyRight(ctx context.Context, d rightsDecision) func() bool {
	p := e.part
	if d.err != nil {
		return func() bool { return false }
	}
	var doubt error
	if d.uncertain {
		d.missing, doubt = p.selection.confirmRight(ctx, d.missing)
	}
	global := len(d.missing) > 0 && e.asksGlobal(ctx)
	return func() bool {
		switch {
		case e.run.over:
			return false
		case len(d.missing) > 0:
			p.global = p.global || global
			p.loseStore(Forbidden, p.selection.forbidden(d.missing, d.cause))
			return true
		case doubt != nil:
			e.doubtRight(doubt)
			return true
		}
		return e.trust()
	}
}

// doubtRight makes a part Degraded whose watch works, but whose right no request could confirm. Its rights are reviewed again after
// Backoff.Initial.
func (e *examined) doubtRight(cause error) {
	p := e.part
	p.cause = cause
	p.lastSync = time.Now()
	p.agenda.verify = time.Now().Add(jitter(p.set.options.Backoff.Initial))
	p.enterState(Degraded, p.degraded())
}

// trust makes a part Synced that doubtRight made Degraded, and says whether it did.
func (e *examined) trust() bool {
	p := e.part
	if p.state != Degraded || !p.run.working() {
		return false
	}
	p.settlePart()
	return true
}

// asksGlobal asks discovery whether the resource of a cluster-wide part is cluster-scoped, so that an Auto lease has no namespaces
// to fall back to.
func (e *examined) asksGlobal(ctx context.Context) bool {
	p := e.part
	if p.selection.key.kind != clusterScope || p.selection.isOwn() {
		return false
	}
	served, err := p.set.catalog.findResource(ctx, p.selection.resource(), time.Time{})
	return err == nil && served != nil && !served.Namespaced
}

// regainRight decides whether a part that is Forbidden may begin again, by the review d or, if that failed, by a list of one object.
func (e *examined) regainRight(ctx context.Context, d rightsDecision) func() bool {
	p := e.part
	if d.err != nil {
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		_, err := p.selection.fetchList(ctx, metav1.ListOptions{Limit: 1})
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
		e.stillForbidden(d)
		return false
	}
}

// stillForbidden updates the missing verbs of a part that stays Forbidden. Verbs that the review didn't ask about stay as they were.
func (e *examined) stillForbidden(d rightsDecision) {
	p := e.part
	if d.partial || d.err != nil {
		d.missing = append(d.missing, p.status().Missing...)
	}
	var before *ForbiddenError
	if errors.As(p.err, &before) && d.cause == nil {
		d.cause = before.Cause
	}
	p.updateErr(p.selection.forbidden(d.missing, d.cause))
}

// seekResource decides whether a part that is NotServed may begin again. Cached answers of discovery that are older than since are
// not used.
func (e *examined) seekResource(ctx context.Context, since time.Time) func() bool {
	p := e.part
	served, err := p.findServed(ctx, since)
	return func() bool {
		if err != nil && (p.selection.byKind() || !apierrors.IsForbidden(err)) {
			return false
		}
		if problem := p.selection.findMisfit(served); err == nil && problem != nil {
			p.updateErr(problem)
			return false
		}
		p.setTarget(served)
		p.beginRun()
		return true
	}
}
