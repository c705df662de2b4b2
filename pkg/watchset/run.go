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

// run is one period in which a part lists and watches. It ends when a right, the resource or the last lease is lost. A
// reflector of client-go makes the requests, and repeats those that fail for other reasons. Each request is a call of
// listForReflector or watchForReflector.
type run struct {
	part   *part
	ctx    context.Context
	cancel context.CancelFunc

	// The Set's lock guards these.
	over      bool
	open      bool      // a watch is open
	fresh     bool      // the store is complete: a list, or the initial events of the open watch, have filled it
	undecoded error     // why an object's last state could not be decoded; nil if all could be
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

// listAndWatch lists and watches until the run is over.
func (r *run) listAndWatch() {
	silent := logr.Discard() // the reflector would write a line per retry
	p := r.part
	if p.selection.isWatchedForSet() && p.selection.key.form == Full {
		p.set.own.identity.readIdentityOnce(r.ctx, p.set.clients)
	}
	if !r.resolveRequestedKind() {
		return
	}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: r.listForReflector,
		WatchFuncWithContext: r.watchForReflector},
		&p.selection)
	reflector := cache.NewReflectorWithOptions(lw, nil, &sink{run: r, undecoded: map[string]error{}}, cache.ReflectorOptions{
		Name: p.selection.targetResource().String(), Logger: &silent, Clock: r.clockEndingWithRun(),
		Backoff:      newRunBackoff(),
		ResyncPeriod: time.Nanosecond, // due at once, so that the reflector calls endResyncGoroutine
	})
	reflector.ShouldResync = endResyncGoroutine
	reflector.RunWithContext(logr.NewContext(r.ctx, silent))
	r.calls.waitForRequests() // a list may outlive the reflector for a moment
}

// newRunBackoff returns how long a run waits between failed requests. With its own default, a reflector may still wait
// for a minute after the server is back.
func newRunBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}
}

// clockEndingWithRun returns a clock whose waits end with the run.
func (r *run) clockEndingWithRun() clock.Clock { return &interruptible{ctx: r.ctx} }

// endRunLocked ends the run; objects that its requests still bring are ignored. The caller holds the Set's lock.
func (r *run) endRunLocked() {
	r.over, r.open = true, false
	r.staged = nil
	r.freeListSlot()
	r.cancel()
}

// isWatchWorking reports whether a watch is open and the store is complete, with each object as the server has it.
func (r *run) isWatchWorking() bool { return r.open && r.fresh && r.undecoded == nil }

func (r *run) listForReflector(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !r.calls.startRequest() {
		return nil, context.Canceled
	}
	defer r.calls.recordRequestDone()
	if err := r.waitForListSlot(ctx); err != nil {
		return nil, err
	}
	answer, err := r.part.selection.listForWatch(ctx, o)
	if err != nil {
		r.handleRequestFailure(ctx, "list", err)
		return nil, err
	}
	r.callUnderSetLock(func() { r.listed = true })
	return answer, nil
}

func (r *run) watchForReflector(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if initial {
		if err := r.waitForListSlot(ctx); err != nil {
			return nil, err
		}
	}
	w, err := r.openOnOwnGoroutine(ctx, o)
	if err != nil {
		r.handleRequestFailure(ctx, "watch", err)
		return nil, err
	}
	r.callUnderSetLock(func() { r.recordWatchOpened(initial) })
	return &stream{Interface: w, closed: sync.OnceFunc(r.recordWatchClosed)}, nil
}

// callUnderSetLock calls f under the Set's lock unless the run is over.
func (r *run) callUnderSetLock(f func()) {
	r.part.set.lock.changeUnderLock(func() {
		if !r.over {
			f()
		}
	})
}

// recordWatchOpened records an open watch. initial reports whether the watch begins with all objects
// (sendInitialEvents), which the reflector passes to sink.Replace.
func (r *run) recordWatchOpened(initial bool) {
	r.open = true
	if initial {
		r.fresh = false
		return
	}
	r.fresh = true
	// A list counts only with a watch: an identity that may only list would see no change.
	if r.staged != nil {
		r.part.replaceByListing(r.staged)
		r.staged = nil
	}
	r.becomeSyncedOnce()
}

// recordWatchClosed records the end of a watch. Servers end watches regularly and the reflector opens the next, so this
// is an error only if the initial objects were not complete. The server doesn't explain why such a stream ends, but the
// error of a list may explain it.
func (r *run) recordWatchClosed() {
	ask := false
	r.callUnderSetLock(func() {
		r.open = false
		// Until now, the open watch has shown every change.
		if r.part.state == Synced {
			r.part.lastSync = time.Now()
		}
		r.degradeIfLasting()
		if ask = !r.fresh && time.Since(r.explained) > r.part.set.options.DegradedAfter; ask {
			r.explained = time.Now()
			r.handleWatchTrouble(errors.New("the stream ended before all objects were there"))
		}
	})
	if ask {
		_, err := r.part.selection.listSelectedObjects(r.ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsForbidden(err) && r.ctx.Err() == nil {
			r.callUnderSetLock(func() { r.handleWatchTrouble(err) })
		}
	}
}

// recordUndecoded records why an object's last state could not be decoded; nil means that all could.
func (r *run) recordUndecoded(err error) {
	r.undecoded = err
	switch {
	case err != nil:
		r.handleWatchTrouble(err)
	case r.isWatchWorking():
		r.becomeSyncedOnce()
	}
}

func (r *run) becomeSyncedOnce() {
	if r.undecoded != nil {
		r.handleWatchTrouble(r.undecoded)
		return
	}
	if r.part.state != Synced && !r.began.IsZero() {
		r.part.set.metrics.observeSyncTime(r.part, time.Since(r.began))
	}
	r.part.becomeSynced()
}

// degradeIfLasting plans to make the part Degraded and to free its slot after DegradedAfter, unless it is Synced by
// then.
func (r *run) degradeIfLasting() {
	p := r.part
	if (p.state != Degraded || r.slot) && p.agenda.degrade.IsZero() {
		p.agenda.degrade = time.Now().Add(p.set.options.DegradedAfter)
		p.agenda.armTimer(p)
	}
}

// handleRequestFailure makes the part Forbidden or NotServed if the failed request says so. The reflector repeats
// requests that failed for other reasons.
func (r *run) handleRequestFailure(ctx context.Context, verb string, err error) {
	switch {
	case ctx.Err() != nil:
		r.callUnderSetLock(r.freeListSlot)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		state, problem := r.decideStateOfFailure(ctx, verb, err)
		r.callUnderSetLock(func() { r.part.endRunAndEmpty(state, problem) })
	default:
		r.callUnderSetLock(func() {
			r.freeListSlot()
			r.handleWatchTrouble(err)
		})
	}
}

func (r *run) handleWatchTrouble(err error) {
	p := r.part
	p.cause = err
	if p.state == Degraded {
		p.replaceStateError(p.newDegradedError()) // the cause may be another one than before
	}
	r.degradeIfLasting()
}

// decideStateOfFailure returns Forbidden or NotServed for a request that failed with 403 or 404. It asks discovery
// first: the server checks rights before it looks whether a resource exists, and so answers 403 for some resources that
// don't exist.
func (r *run) decideStateOfFailure(ctx context.Context, verb string, err error) (State, error) {
	p := r.part
	served, lookErr := p.set.catalog.findResource(ctx, p.selection.targetResource(), time.Time{})
	if lookErr == nil {
		r.callUnderSetLock(func() { p.global = served != nil && !served.Namespaced })
		if problem := p.selection.checkServedResource(served); problem != nil {
			return NotServed, problem
		}
	}
	if apierrors.IsNotFound(err) {
		return NotServed, p.selection.newNotServedError("")
	}
	missing := []string{verb}
	if verb == "watch" && !r.reviewListRight(ctx) {
		missing = append(missing, "list")
	}
	return Forbidden, p.selection.newForbiddenError(missing, err)
}

// reviewListRight reports whether the identity may list. Unless a list of this run has succeeded, it requests a list of
// one object.
func (r *run) reviewListRight(ctx context.Context) bool {
	var listed bool
	if r.callUnderSetLock(func() { listed = r.listed }); listed {
		return true
	}
	_, err := r.part.selection.listSelectedObjects(ctx, metav1.ListOptions{Limit: 1})
	return !apierrors.IsForbidden(err)
}

// waitForListSlot waits for a slot, so that at most StartConcurrency initial lists go on at a time. The slot is freed
// when all objects have arrived, when a request fails, or when the part becomes Degraded. The Set's own parts need no
// slot.
func (r *run) waitForListSlot(ctx context.Context) error {
	s, has := r.part.set, r.part.selection.isWatchedForSet()
	r.callUnderSetLock(func() {
		if has = has || r.slot; has {
			r.recordListStart()
		}
	})
	if has {
		return nil
	}
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return err
	}
	taken := false
	r.callUnderSetLock(func() {
		taken, r.slot = true, true
		r.recordListStart()
	})
	// The run has ended while it waited, so nothing else would free this slot.
	if !taken {
		s.slots.Release(1)
		return context.Canceled
	}
	return nil
}

// recordListStart records that a list begins. Without a complete store, the part becomes Syncing.
func (r *run) recordListStart() {
	p := r.part
	if r.began.IsZero() {
		r.began = time.Now()
		p.set.metrics.countRunStart(p)
	}
	if !p.hasCompleteStore() && p.state != Syncing {
		p.enterState(Syncing, nil)
	}
	r.degradeIfLasting()
}

func (r *run) freeListSlot() {
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

// inflight counts the requests of a run or of a catalog, so that the run or the Set can wait for them at its end.
type inflight struct {
	mu   sync.Mutex
	over bool
	wg   sync.WaitGroup
}

func (i *inflight) startRequest() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return false
	}
	i.wg.Add(1)
	return true
}

func (i *inflight) recordRequestDone() { i.wg.Done() }

func (i *inflight) waitForRequests() {
	i.mu.Lock()
	i.over = true
	i.mu.Unlock()
	i.wg.Wait()
}
