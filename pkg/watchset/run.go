package watchset

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// run is one time that a part follows the server: from its start to the loss of a right, of the resource or of the last lease.
// A reflector does the work, and tries again what fails for other reasons; run sees all its requests.
type run struct {
	part   *part
	ctx    context.Context
	cancel context.CancelFunc

	// The Set's lock guards these.
	over   bool
	open   bool      // a watch is open
	fresh  bool      // the store holds what a list, or the start of a stream, brought since the watch was last new
	staged *listing  // waits for its watch
	listed bool      // list was allowed
	slot   bool      // of StartConcurrency
	began  time.Time // the first list

	calls inflight
}

func newRun(p *part) *run {
	ctx, cancel := context.WithCancel(p.set.ctx)
	return &run{part: p, ctx: ctx, cancel: cancel}
}

// follow lists and watches until the run is over.
func (r *run) follow() {
	silent := logr.Discard() // the reflector writes a line per retry
	p := r.part
	if p.isOwn() && p.key.form == Full {
		p.set.identity.learnIdentity(r.ctx, p.set.clients)
	}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch},
		p.client)
	reflector := cache.NewReflectorWithOptions(lw, nil, &sink{r}, cache.ReflectorOptions{
		Name: p.key.resource.String(), Logger: &silent, Clock: &interruptible{ctx: r.ctx},
		// Its own may wait for a minute after the server is back.
		Backoff:      &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second},
		ResyncPeriod: time.Nanosecond, // due at once, so that endResync is asked
	})
	reflector.ShouldResync = endResync
	reflector.RunWithContext(logr.NewContext(r.ctx, silent))
	r.calls.finish() // a list may outlive the reflector for a moment
}

// end ends the run; nothing that it still brings is looked at. The caller holds the lock.
func (r *run) end() {
	r.over, r.open = true, false
	r.staged = nil
	r.freeSlot()
	r.cancel()
}

// working says whether there is nothing to complain about.
func (r *run) working() bool { return r.open && r.fresh }

func (r *run) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !r.calls.start() {
		return nil, context.Canceled
	}
	defer r.calls.done()
	if err := r.takeSlot(ctx); err != nil {
		return nil, err
	}
	answer, err := r.part.fetchList(ctx, o)
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
	return &stream{Interface: w, closed: sync.OnceFunc(func() { r.locked(r.closed) })}, nil
}

// locked does f unless the run is over.
func (r *run) locked(f func()) {
	s := r.part.set
	s.mu.Lock()
	defer s.unlock()
	if !r.over {
		f()
	}
}

// noteOpened notes an open watch; initial says whether it begins with all objects, which sink.Replace gets.
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

// closed notes the end of a watch. By itself that is no trouble: another one follows.
func (r *run) closed() {
	r.open = false
	if r.part.state == Synced {
		r.part.lastSync = time.Now()
	}
	if r.fresh {
		r.degradeIfLasting()
		return
	}
	r.trouble(errors.New("the stream ended before all objects were there"))
}

func (r *run) synced() {
	if r.part.state != Synced && !r.began.IsZero() {
		r.part.set.metrics.synced(r.part, time.Since(r.began))
	}
	r.part.settlePart()
}

// degradeIfLasting has the part Degraded if this goes on for too long.
func (r *run) degradeIfLasting() {
	p := r.part
	if p.state != Degraded && p.agenda.degrade.IsZero() {
		p.agenda.degrade = time.Now().Add(p.set.options.DegradedAfter)
		p.agenda.armTimer(p)
	}
}

// judgeFailure judges a request that failed. What is neither forbidden nor missing the reflector tries again.
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
		p.err = p.degraded() // it may be another one than before
	}
	r.degradeIfLasting()
}

// judgeAnswer tells what is forbidden from what isn't served: the server checks rights before it looks whether a resource exists.
func (r *run) judgeAnswer(ctx context.Context, verb string, err error) (State, error) {
	p := r.part
	served, lookErr := p.set.catalog.findResource(ctx, p.key.resource, time.Time{})
	if lookErr == nil {
		r.locked(func() { p.global = served != nil && !served.Namespaced })
		if problem := p.findMisfit(served); problem != nil {
			return NotServed, problem
		}
	}
	if apierrors.IsNotFound(err) {
		return NotServed, &NotServedError{Resource: p.key.resource}
	}
	missing := []string{verb}
	if verb == "watch" && !r.mayList(ctx) {
		missing = append(missing, "list")
	}
	return Forbidden, p.forbidden(missing, err)
}

// mayList looks whether list is refused as well, at the price of at most one object.
func (r *run) mayList(ctx context.Context) bool {
	var listed bool
	if r.locked(func() { listed = r.listed }); listed {
		return true
	}
	_, err := r.part.fetchList(ctx, metav1.ListOptions{Limit: 1})
	return !apierrors.IsForbidden(err)
}

// takeSlot waits until the initial list may begin. It is freed when all objects are there, or when there is trouble.
func (r *run) takeSlot(ctx context.Context) error {
	s, has := r.part.set, r.part.isOwn()
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
	if !p.sees() {
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

// interruptible is a clock whose waits end with a run: a reflector that backs off doesn't look at its context.
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

// stream is a watch that says when it is closed: a reflector stops every watch that it leaves.
type stream struct {
	watch.Interface
	closed func()
}

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.Interface.Stop()
	s.closed()
}

// inflight counts the requests of a run, so that its end can wait for them.
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

// selecting adds what the part selects.
func (p *part) selecting(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = p.key.labels, p.key.fields
	if p.key.kind == objectScope {
		named := fields.OneTermEqualSelector("metadata.name", p.key.name)
		if f := p.request.FieldSelector; f != nil {
			named = fields.AndSelectors(named, f)
		}
		o.FieldSelector = named.String()
	}
	return o
}
