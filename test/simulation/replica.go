package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"iter"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	runcopies "github.com/warren-tenancy/warren/controllers/copies"
	rundistribution "github.com/warren-tenancy/warren/controllers/distribution"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// replica is one process of the operator: the real States, over a real View, with the real code that carries out their requests. Only the
// queue, the watches and the API server are the model's.
type replica struct {
	*history
	name       string
	alive      bool
	leads      bool // it takes keys from the queue
	deposed    bool // it has led, and must never lead again
	view       *view.View
	feed       *view.Feed
	copies     *copyengine.State
	distribute *distribute.State
	requests   *runcopies.Requests
	ofRuns     *rundistribution.Requests
	watches    []*watch
	waiting    []task
	timers     map[task]time.Time
	workers    []*worker
	current    *worker // the worker whose code runs
	kindStates map[string]copies.KindState
	obstacles  map[copies.Slot]bool // slots where the last write has found another object
	impatient  bool                 // the State has just decided to give rights although rails are missing
}

// task is a key of the queue of copies or of distributions.
type task struct {
	copies copyengine.Key
	runs   distribute.Key
}

// worker carries out one request of a State, one call of the API server after the other.
type worker struct {
	*replica
	task    task
	what    copyengine.Output
	since   int // how many changes of the log the replica knew for certain when the State decided
	next    func() (call, bool)
	stop    func()
	yield   func(call) bool
	pending call
	fault   fault // of the pending call
	stopped bool
	done    bool
	answer  func()
}

// call is one request to the API server that is under way.
type call struct {
	verb string
	slot copies.Slot
	do   func() error
}

func newReplica(h *history, name string) *replica {
	r := &replica{history: h, name: name, alive: true, timers: map[task]time.Time{}, kindStates: map[string]copies.KindState{},
		obstacles: map[copies.Slot]bool{}}
	r.view = view.New(h.server.forest.Rules())
	r.feed = &view.Feed{View: r.view}
	r.copies = copyengine.NewState(r.view.Snapshot(), h.settings)
	r.distribute = distribute.NewState(r.view.Snapshot(), h.options)
	r.requests = runcopies.NewRequests(client{r}, r.view, h.settings.Rules, func(look func(*copyengine.State)) { look(r.copies) },
		r.applyCopies).Unshared()
	r.ofRuns = &rundistribution.Requests{API: client{r}, Timing: h.options.Timing, List: client{r}.listObstacles}
	r.view.Subscribe(func(c view.Change) {
		r.applyCopies(copyengine.ForestChanged{Old: c.Old, New: c.New, Namespaces: c.Namespaces})
		r.applyRuns(distribute.ForestChanged{Old: c.Old, New: c.New, Namespaces: c.Namespaces})
	})
	r.applyRuns(distribute.DefinitionChanged{})
	r.addWatches()
	return r
}

func (r *replica) addWatches() {
	r.watches = []*watch{r.namespaceWatch(), r.distributionWatch()}
	for _, kind := range r.settings.Kinds {
		for _, role := range kind.Roles() {
			r.watches = append(r.watches, r.copiesWatch(copyengine.Watch{Kind: kind.GroupKind(), Role: role}))
		}
	}
	for _, gvk := range r.options.Kinds {
		gk := gvk.GroupKind()
		r.watches = append(r.watches, &watch{name: "distributed " + gk.Kind, kind: gk, selects: hasLabel(gk, v1alpha1.LabelDistributedBy),
			sink: sink{
				replace: func(version int, all []*object) {
					r.applyRuns(distribute.CopiesListed{Kind: gk, ResourceVersion: strconv.Itoa(version), Objects: metasOf(all)})
				},
				put:   func(o *object) { r.applyRuns(distribute.CopySeen{Kind: gk, Object: o.meta}) },
				gone:  func(o *object) { r.applyRuns(distribute.CopyGone{Kind: gk, Object: o.meta}) },
				state: func(now watchset.Status) { r.applyRuns(distribute.KindChanged{Kind: gk, Status: now}) },
			}})
	}
}

// namespaceWatch feeds the view as an informer does.
func (r *replica) namespaceWatch() *watch {
	w := &watch{name: "Namespaces", kind: namespaces, selects: hasLabel(namespaces, ""), known: map[copies.Slot]*object{}}
	w.sink = sink{
		replace: func(_ int, all []*object) {
			missing := w.known
			w.known = map[copies.Slot]*object{}
			for _, o := range all {
				slot := namespaceSlot(o.meta.Name)
				delete(missing, slot)
				w.sink.put(o)
			}
			for _, slot := range sortedSlots(missing) {
				r.feed.DropNamespace(missing[slot].meta)
			}
			if !r.view.Synced() {
				r.view.MarkSynced()
			}
		},
		put:  func(o *object) { w.known[namespaceSlot(o.meta.Name)] = o; r.feed.TakeNamespace(o.meta) },
		gone: func(o *object) { delete(w.known, namespaceSlot(o.meta.Name)); r.feed.DropNamespace(o.meta) },
	}
	return w
}

func (r *replica) distributionWatch() *watch {
	return &watch{name: "ResourceDistributions", kind: distributions, selects: hasLabel(distributions, ""), sink: sink{
		replace: func(_ int, all []*object) {
			listed := distribute.DistributionsListed{}
			for _, o := range all {
				listed.All = append(listed.All, o.distribution)
			}
			r.applyRuns(listed)
		},
		put:   func(o *object) { r.applyRuns(distribute.DistributionSeen{ResourceDistribution: o.distribution}) },
		gone:  func(o *object) { r.applyRuns(distribute.DistributionGone{ResourceDistribution: o.distribution}) },
		state: func(now watchset.Status) { r.applyRuns(distribute.DefinitionChanged{Status: now}) },
	}}
}

func (r *replica) copiesWatch(of copyengine.Watch) *watch {
	label := map[copyengine.Role]string{
		copyengine.SourcesAlone: v1alpha1.LabelPropagate, copyengine.CopiesAlone: v1alpha1.LabelInheritedFrom,
	}[of.Role]
	name := map[copyengine.Role]string{copyengine.SourcesAlone: "sources", copyengine.CopiesAlone: "copies",
		copyengine.SourcesAndCopies: "all"}[of.Role] + " " + of.Kind.Kind
	return &watch{name: name, kind: of.Kind, selects: hasLabel(of.Kind, label), sink: sink{
		replace: func(version int, all []*object) {
			r.applyCopies(copyengine.Listed{Watch: of, ResourceVersion: textOf(version), Objects: metasOf(all)})
		},
		put:  func(o *object) { r.applyCopies(copyengine.ObjectSeen{Watch: of, Object: o.meta}) },
		gone: func(o *object) { r.applyCopies(copyengine.ObjectGone{Watch: of, Object: o.meta}) },
		state: func(now watchset.Status) {
			r.kindStates[name] = r.kindStates[name].After(now)
			r.applyCopies(copyengine.WatchChanged{Watch: of, Status: now})
		},
	}}
}

// applyCopies applies an Input to the State of copies, and returns the Request that follows.
func (r *replica) applyCopies(input copyengine.Input) (request copyengine.Request) {
	if !r.alive {
		return nil
	}
	r.cover(r, input)
	var queued []queuing
	for _, output := range r.copies.Apply(r.server.now, input) {
		switch one := output.(type) {
		case copyengine.Queue:
			for _, key := range one.Keys {
				queued = append(queued, queuing{task{copies: key}, one.After})
			}
		case copyengine.RightsBeforeRails:
			r.impatient = true
		case copyengine.Request:
			if request != nil {
				r.fail("FLT-M8", "two requests follow from one %T", input)
			}
			request = one
		}
	}
	r.keep(queued)
	return request
}

// applyRuns applies an Input to the State of distributions, and returns the Request that follows.
func (r *replica) applyRuns(input distribute.Input) (request distribute.Request) {
	if !r.alive {
		return nil
	}
	r.cover(r, input)
	var queued []queuing
	for _, output := range r.distribute.Apply(r.server.now, input) {
		switch one := output.(type) {
		case distribute.Queue:
			for _, key := range one.Keys {
				queued = append(queued, queuing{task{runs: key}, one.After})
			}
		case distribute.FollowObstacles:
			r.followObstacles()
		case distribute.Request:
			if request != nil {
				r.fail("FLT-M8", "two requests follow from one %T", input)
			}
			request = one
		}
	}
	r.keep(queued)
	return request
}

// queuing asks for work on a task, at once or after some time.
type queuing struct {
	task
	after time.Duration
}

func (t task) compare(other task) int {
	return cmp.Or(cmp.Compare(t.runs.Distribution, other.runs.Distribution), cmp.Compare(t.runs.Namespace, other.runs.Namespace),
		cmp.Compare(t.copies.Task, other.copies.Task), slotOrder{}.Compare(t.copies.Slot, other.copies.Slot))
}

func (t task) String() string {
	if t.runs != (distribute.Key{}) {
		return fmt.Sprintf("distribution %s %s", t.runs.Distribution, t.runs.Namespace)
	}
	return fmt.Sprintf("%s %s", [...]string{"namespace", "source", "spread", "limits", "slot"}[t.copies.Task], t.copies.Slot)
}

// keep queues tasks as internal/fairqueue does: equal ones once. An Input may return its tasks in the random order of a map; they are
// sorted, so that a history is the same each time.
func (r *replica) keep(all []queuing) {
	slices.SortStableFunc(all, func(a, b queuing) int { return a.compare(b.task) })
	for _, one := range all {
		due := r.server.now.Add(one.after)
		switch at, waits := r.timers[one.task]; {
		case one.after == 0 && !slices.Contains(r.waiting, one.task):
			r.waiting = append(r.waiting, one.task)
		case one.after > 0 && (!waits || due.Before(at)):
			r.timers[one.task] = due
		}
	}
}

// wake queues the tasks whose time has come.
func (r *replica) wake() {
	var due []queuing
	for t, at := range r.timers {
		if !at.After(r.server.now) {
			delete(r.timers, t)
			due = append(due, queuing{task: t})
		}
	}
	r.keep(due)
}

// free returns the tasks that wait and that no worker has.
func (r *replica) free() (tasks []task) {
	for _, t := range r.waiting {
		if !slices.ContainsFunc(r.workers, func(w *worker) bool { return w.task == t }) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// begin lets a worker take a task.
func (r *replica) begin(t task) {
	r.waiting = slices.DeleteFunc(r.waiting, func(other task) bool { return other == t })
	r.record(r.name + ": a worker takes " + t.String())
	if t.runs != (distribute.Key{}) {
		r.carryOutRun(t, r.applyRuns(distribute.Started{Key: t.runs}))
		return
	}
	r.carryOutCopy(t, r.applyCopies(copyengine.Started{Key: t.copies}))
}

func (r *replica) carryOutCopy(t task, request copyengine.Request) {
	if request != nil {
		r.checkDecision(request)
		r.spawn(t, request, func() func() {
			answer := r.requests.CarryOut(context.Background(), request)
			return func() {
				r.recordObstacle(answer)
				r.carryOutCopy(t, r.applyCopies(answer))
			}
		})
	}
}

func (r *replica) carryOutRun(t task, request distribute.Request) {
	if request != nil {
		r.spawn(t, request, func() func() {
			answer := r.ofRuns.CarryOut(context.Background(), request)
			return func() { r.carryOutRun(t, r.applyRuns(answer)) }
		})
	}
}

// spawn lets a new worker carry out a request, up to its first call.
func (r *replica) spawn(t task, what copyengine.Output, carryOut func() func()) {
	w := &worker{replica: r, task: t, what: what, since: r.knows(t)}
	w.next, w.stop = iter.Pull(func(yield func(call) bool) {
		w.yield = yield
		w.answer = carryOut()
	})
	r.workers = append(r.workers, w)
	w.advance()
}

// advance runs the worker to its next call, or to its end.
func (w *worker) advance() {
	w.current = w
	pending, more := w.next()
	w.pending, w.done = pending, !more
	w.fault = noFault
}

// finish hands the answer of a worker to the State.
func (w *worker) finish() {
	w.workers = slices.DeleteFunc(w.workers, func(other *worker) bool { return other == w })
	w.answer()
}

// knows returns how many changes of the log the replica knows for certain: every watch on which a decision about a task may rest has shown
// them.
func (r *replica) knows(t task) int {
	oldest := len(r.server.log)
	for _, w := range r.watches {
		if t.runs != (distribute.Key{}) || w.kind == namespaces || w.kind.Group == t.copies.Slot.Kind.Group {
			oldest = min(oldest, w.cursor)
		}
	}
	return oldest
}

// followObstacles begins and ends watches of obstacles, so that there are those that the State wants.
func (r *replica) followObstacles() {
	wanted := r.distribute.ObstacleWatches()
	r.watches = slices.DeleteFunc(r.watches, func(w *watch) bool { return w.obstacles != nil && !wanted[w.obstacles] })
	for of := range wanted {
		if slices.ContainsFunc(r.watches, func(w *watch) bool { return w.obstacles == of }) {
			continue
		}
		r.watches = append(r.watches, &watch{name: "obstacles of " + of.Distribution, kind: of.Kind, obstacles: of, cursor: len(r.server.log),
			selects: isObstacle(of), sink: sink{
				replace: func(version int, all []*object) {
					r.applyRuns(distribute.ObstaclesListed{Watch: of, ResourceVersion: strconv.Itoa(version), Objects: metasOf(all)})
				},
				put:  func(o *object) { r.applyRuns(distribute.ObstacleSeen{Watch: of, Object: o.meta}) },
				gone: func(o *object) { r.applyRuns(distribute.ObstacleGone{Watch: of, Object: o.meta}) },
			}})
	}
	slices.SortStableFunc(r.watches, func(a, b *watch) int { return cmp.Compare(a.name, b.name) })
}

// die ends the process. Its calls that are under way may still reach the API server, late.
func (r *replica) die() {
	r.alive, r.leads = false, false
	for _, w := range r.workers {
		if !w.done {
			r.late = append(r.late, lateCall{w, w.pending})
		}
		w.stop()
	}
	r.workers = nil
}

// askRights asks, as the reconciler of access does, whether rights in a namespace wait for rails.
func (h *history) askRights(e event) string {
	for _, r := range h.living(func(r *replica) bool { return r.leads }) {
		r.applyCopies(copyengine.RightsAsked{Namespace: names[e.a%len(names)]})
		r.applyCopies(copyengine.FollowDue{})
	}
	return ""
}
