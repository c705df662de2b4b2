package watchset

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// run is one period in which a part lists and watches: from its start to the loss of a right, of the resource or of the last lease.
// A reflector of client-go makes the requests, and repeats those that fail for other reasons; run's methods list and watch see each
// of them.
type run struct {
	part   *part
	ctx    context.Context
	cancel context.CancelFunc

	// The Set's lock guards these.
	over      bool
	open      bool      // a watch is open
	fresh     bool      // the store is complete: a list, or the initial events of the open watch, have filled it
	undecoded error     // why an object's last state could not be decoded; nil while all could
	staged    *listing  // a list that readers get once a watch from its resourceVersion is open
	listed    bool      // the server has answered a list
	slot      bool      // the run holds a slot: one of the StartConcurrency initial lists that may go on at a time
	began     time.Time // when the first list began
	explained time.Time // when the server was last asked why a stream had ended early

	calls inflight
}

func newRun(p *part) *run {
	ctx, cancel := context.WithCancel(p.set.ctx)
	return &run{part: p, ctx: ctx, cancel: cancel}
}

// follow lists and watches until the run is over.
func (r *run) follow() {
	silent := logr.Discard() // the reflector would write a line per retry
	p := r.part
	if p.selection.isOwn() && p.selection.key.form == Full {
		p.set.own.identity.learnIdentity(r.ctx, p.set.clients)
	}
	if !r.resolveKind() {
		return
	}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch},
		p.selection.target.Load().client)
	reflector := cache.NewReflectorWithOptions(lw, nil, &sink{run: r, undecoded: map[string]error{}}, cache.ReflectorOptions{
		Name: p.selection.resource().String(), Logger: &silent, Clock: r.clock(),
		Backoff:      newBackoff(),
		ResyncPeriod: time.Nanosecond, // due at once, so that the reflector calls endResync
	})
	reflector.ShouldResync = endResync
	reflector.RunWithContext(logr.NewContext(r.ctx, silent))
	r.calls.finish() // a list may outlive the reflector for a moment
}

// newBackoff returns how long a run waits between failed requests. The reflector's own back-off may wait for a minute after the server
// is back.
func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}
}

// clock returns a clock whose waits end with the run.
func (r *run) clock() clock.Clock { return &interruptible{ctx: r.ctx} }

// end ends the run; objects that its requests still bring are ignored. The caller holds the Set's lock.
func (r *run) end() {
	r.over, r.open = true, false
	r.staged = nil
	r.freeSlot()
	r.cancel()
}

// working says whether a watch is open and the store is complete and as the server has it.
func (r *run) working() bool { return r.open && r.fresh && r.undecoded == nil }

func (r *run) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !r.calls.start() {
		return nil, context.Canceled
	}
	defer r.calls.done()
	if err := r.takeSlot(ctx); err != nil {
		return nil, err
	}
	answer, err := r.part.selection.fetchList(ctx, o)
	if err != nil {
		r.judgeFailure(ctx, "list", err)
		return nil, err
	}
	r.locked(func() { r.listed = true })
	return answer, nil
}

func (r *run) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if initial {
		if err := r.takeSlot(ctx); err != nil {
			return nil, err
		}
	}
	w, err := r.openAside(ctx, o)
	if err != nil {
		r.judgeFailure(ctx, "watch", err)
		return nil, err
	}
	r.locked(func() { r.noteOpened(initial) })
	return &stream{Interface: w, closed: sync.OnceFunc(r.noteClosed)}, nil
}

// locked calls f under the Set's lock unless the run is over.
func (r *run) locked(f func()) {
	r.part.set.lock.change(func() {
		if !r.over {
			f()
		}
	})
}

// noteOpened notes an open watch. initial says whether the watch begins with all objects (sendInitialEvents), which the reflector
// passes to sink.Replace.
func (r *run) noteOpened(initial bool) {
	r.open = true
	if initial {
		r.fresh = false
		return
	}
	r.fresh = true
	if r.staged != nil {
		r.part.replaceAll(r.staged)
		r.staged = nil
	}
	r.synced()
}

// noteClosed notes the end of a watch. Servers end watches regularly and the reflector opens the next, so this is an error only if the
// initial objects were not complete. The server doesn't say why such a stream ends; a list may be told.
func (r *run) noteClosed() {
	ask := false
	r.locked(func() {
		r.open = false
		if r.part.state == Synced {
			r.part.lastSync = time.Now()
		}
		r.degradeIfLasting()
		if ask = !r.fresh && time.Since(r.explained) > r.part.set.options.DegradedAfter; ask {
			r.explained = time.Now()
			r.trouble(errors.New("the stream ended before all objects were there"))
		}
	})
	if ask {
		_, err := r.part.selection.fetchList(r.ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsForbidden(err) && r.ctx.Err() == nil {
			r.locked(func() { r.trouble(err) })
		}
	}
}

// noteUndecoded notes why an object's last state could not be decoded; nil means that all could.
func (r *run) noteUndecoded(err error) {
	r.undecoded = err
	switch {
	case err != nil:
		r.trouble(err)
	case r.working():
		r.synced()
	}
}

func (r *run) synced() {
	if r.undecoded != nil {
		r.trouble(r.undecoded)
		return
	}
	if r.part.state != Synced && !r.began.IsZero() {
		r.part.set.metrics.synced(r.part, time.Since(r.began))
	}
	r.part.settlePart()
}

// degradeIfLasting makes the part Degraded, and frees its slot, unless it is Synced within DegradedAfter.
func (r *run) degradeIfLasting() {
	p := r.part
	if (p.state != Degraded || r.slot) && p.agenda.degrade.IsZero() {
		p.agenda.degrade = time.Now().Add(p.set.options.DegradedAfter)
		p.agenda.armTimer(p)
	}
}

// judgeFailure makes the part Forbidden or NotServed if the failed request says so. The reflector repeats requests that failed for
// other reasons.
func (r *run) judgeFailure(ctx context.Context, verb string, err error) {
	switch {
	case ctx.Err() != nil:
		r.locked(r.freeSlot)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		state, problem := r.judgeAnswer(ctx, verb, err)
		r.locked(func() { r.part.loseStore(state, problem) })
	default:
		r.locked(func() {
			r.freeSlot()
			r.trouble(err)
		})
	}
}

func (r *run) trouble(err error) {
	p := r.part
	p.cause = err
	if p.state == Degraded {
		p.updateErr(p.degraded()) // the cause may be another one than before
	}
	r.degradeIfLasting()
}

// judgeAnswer returns Forbidden or NotServed for a request that failed with 403 or 404. It asks discovery first, because the server
// checks rights before it looks whether a resource exists, and so answers 403 for some resources that don't exist.
func (r *run) judgeAnswer(ctx context.Context, verb string, err error) (State, error) {
	p := r.part
	served, lookErr := p.set.catalog.findResource(ctx, p.selection.resource(), time.Time{})
	if lookErr == nil {
		r.locked(func() { p.global = served != nil && !served.Namespaced })
		if problem := p.selection.findMisfit(served); problem != nil {
			return NotServed, problem
		}
	}
	if apierrors.IsNotFound(err) {
		return NotServed, p.selection.notServed("")
	}
	missing := []string{verb}
	if verb == "watch" && !r.mayList(ctx) {
		missing = append(missing, "list")
	}
	return Forbidden, p.selection.forbidden(missing, err)
}

// mayList says whether the identity may list. Unless a list of this run has succeeded, it requests a list of one object.
func (r *run) mayList(ctx context.Context) bool {
	var listed bool
	if r.locked(func() { listed = r.listed }); listed {
		return true
	}
	_, err := r.part.selection.fetchList(ctx, metav1.ListOptions{Limit: 1})
	return !apierrors.IsForbidden(err)
}

// takeSlot waits for a slot, so that at most StartConcurrency initial lists go on at a time. The slot is freed when all objects are
// there, when a request fails, or when the part becomes Degraded. The Set's own parts need none.
func (r *run) takeSlot(ctx context.Context) error {
	s, has := r.part.set, r.part.selection.isOwn()
	r.locked(func() {
		if has = has || r.slot; has {
			r.starting()
		}
	})
	if has {
		return nil
	}
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return err
	}
	taken := false
	r.locked(func() {
		taken, r.slot = true, true
		r.starting()
	})
	if !taken {
		s.slots.Release(1)
		return context.Canceled
	}
	return nil
}

// starting notes that the first list begins.
func (r *run) starting() {
	p := r.part
	if r.began.IsZero() {
		r.began = time.Now()
		p.set.metrics.started(p)
	}
	if !p.sees() && p.state != Syncing {
		p.enterState(Syncing, nil)
	}
	r.degradeIfLasting()
}

func (r *run) freeSlot() {
	if r.slot {
		r.slot = false
		r.part.set.slots.Release(1)
	}
}

// interruptible is a clock whose waits end with a run, because a reflector that backs off doesn't watch its context.
type interruptible struct {
	clock.RealClock
	ctx context.Context
}

// After implements clock.Clock.
func (c *interruptible) After(d time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	ctx, cancel := context.WithTimeout(c.ctx, d)
	context.AfterFunc(ctx, func() {
		cancel()
		over <- time.Now()
	})
	return over
}

// stream is a watch that calls closed when it is stopped. A reflector stops every watch that it leaves.
type stream struct {
	watch.Interface
	closed func()
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.Interface.Stop()
	s.closed()
}

// inflight counts the requests of a run or of a catalog, so that its end can wait for them.
type inflight struct {
	mu   sync.Mutex
	over bool
	wg   sync.WaitGroup
}

func (i *inflight) start() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return false
	}
	i.wg.Add(1)
	return true
}

func (i *inflight) done() { i.wg.Done() }

func (i *inflight) finish() {
	i.mu.Lock()
	i.over = true
	i.mu.Unlock()
	i.wg.Wait()
}
