package watchset

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// review looks at parts that want to know their rights, until the set stops.
func (s *Set) review() {
	for {
		p, down := s.reviews.Get()
		if down {
			return
		}
		s.look(p)
		s.reviews.Done(p)
	}
}

// look makes the requests that a part's state calls for, and then concludes.
func (s *Set) look(p *part) {
	s.mu.RLock()
	ctx, state, run, started, poked := s.ctx, p.state, p.run, time.Now(), p.agenda.poked
	s.mu.RUnlock()

	conclude := func() bool { return false }
	switch {
	case run != nil:
		conclude = p.verify(ctx, run)
	case state == Forbidden:
		conclude = p.regain(ctx)
	case state == NotServed:
		conclude = p.seek(ctx, clearIf(poked.After(started), poked))
	}
	s.mu.Lock()
	defer s.unlock()
	changed := !p.gone && p.run == run && conclude()
	p.agenda.looked(p, started, changed)
}

// verify looks whether the part may go on.
func (p *part) verify(ctx context.Context, r *run) func() bool {
	v := p.set.rights.ask(ctx, p, true)
	if v.err != nil || len(v.missing) == 0 {
		return func() bool { return false }
	}
	global := p.asksGlobal(ctx)
	return func() bool {
		if r.over {
			return false
		}
		p.global = p.global || global
		p.lose(Forbidden, p.forbidden(v.missing, v.cause))
		return true
	}
}

// asksGlobal looks whether the resource of a cluster-wide part has no namespaces to fall back to.
func (p *part) asksGlobal(ctx context.Context) bool {
	if p.key.kind != clusterScope || p.own() {
		return false
	}
	served, err := p.set.catalog.find(ctx, p.key.resource, time.Time{})
	return err == nil && served != nil && !served.Namespaced
}

// regain looks whether a part that is Forbidden may begin again.
func (p *part) regain(ctx context.Context) func() bool {
	v := p.set.rights.ask(ctx, p, false)
	if v.err != nil {
		ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
		defer cancel()
		_, err := p.fetch(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsForbidden(err) {
			v.missing, v.cause = []string{"list"}, err
		} else if err != nil {
			return func() bool { return false }
		}
	}
	return func() bool {
		if len(v.missing) == 0 {
			p.begin()
			return true
		}
		p.stillForbidden(v)
		return false
	}
}

// stillForbidden notes what is missing now. What wasn't asked for is as it was.
func (p *part) stillForbidden(v rightsVerdict) {
	if slices.Contains(v.missing, "watch") || v.err != nil {
		v.missing = append(v.missing, p.status().Missing...)
	}
	if before, ok := p.err.(*ForbiddenError); ok && v.cause == nil { //nolint:errorlint // it is never wrapped
		v.cause = before.Cause
	}
	p.err = p.forbidden(v.missing, v.cause)
}

// seek looks whether a resource is served now. An answer of discovery from before since doesn't count.
func (p *part) seek(ctx context.Context, since time.Time) func() bool {
	served, err := p.set.catalog.find(ctx, p.key.resource, since)
	return func() bool {
		if err != nil && !apierrors.IsForbidden(err) {
			return false
		}
		if problem := p.misfit(served); err == nil && problem != nil {
			p.err = problem
			return false
		}
		p.begin()
		return true
	}
}
