package simulation

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// history is one run of a script.
type history struct {
	script   script
	server   *server
	settings copyengine.Settings
	options  distribute.Options
	replicas []*replica
	late     []lateCall        // of processes that have died
	faults   []fault           // of the next calls
	places   map[string]placed // by the place in a hash
	quiet    bool              // everything was done, and nothing is to be written any more
	// isUnsteady means that one of the ops in unsteady was done. From then on, limits may be exceeded for a while.
	isUnsteady bool
	coverage   coverage
	rows       func(what string) // is called with what happens, in words; may be nil
}

// lateCall is a call of a process that has died, which may still reach the API server.
type lateCall struct {
	worker *worker
	call   call
}

// run runs a script, and returns what is wrong; nil if nothing is.
func run(s script, coverage coverage, rows func(string)) (wrong *Failure) {
	h := newHistory(s, coverage)
	defer func() {
		if r := recover(); r != nil {
			failed, is := r.(*Failure)
			if !is {
				failed = &Failure{Invariant: "FLT-M8", Text: fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
			}
			wrong = failed
		}
		h.stopAll()
	}()
	h.begin()
	h.rows = rows
	for _, e := range s.events {
		h.record(h.happen(e))
	}
	h.end()
	return nil
}

// record calls rows with what has happened, and when.
func (h *history) record(what string) {
	if h.rows != nil && what != "" {
		h.rows(fmt.Sprintf("%6.1fs  %s", h.server.now.Sub(time.Unix(1_000_000, 0)).Seconds(), what))
	}
}

func newHistory(s script, coverage coverage) *history {
	rules := forest.Rules{}
	if s.setup.limit > 0 {
		rules.Limits.Copies = new(int32(s.setup.limit))
	}
	if s.setup.bytes > 0 {
		rules.Limits.Bytes = new(int64(s.setup.bytes))
	}
	h := &history{script: s, server: newServer(forest.New(rules)), coverage: coverage, places: map[string]placed{}}
	mode := copies.OptIn
	if s.setup.removed {
		mode = copies.Remove
	}
	h.settings = copyengine.Settings{
		RetryMin: time.Second, RetryMax: 5 * time.Minute, DegradedAfter: time.Minute, Timing: copyengine.DefaultTiming(), SpreadStep: 2,
	}
	for _, gvk := range copiedKinds {
		kind := copyengine.Kind{GroupVersionKind: gvk, Mode: copies.OptIn, Scope: copyengine.Cluster}
		switch gvk {
		case secrets:
			kind.Mode = mode
		case configMaps:
			kind.Mode = copies.All
		}
		h.settings.Kinds = append(h.settings.Kinds, kind)
	}
	h.options = distribute.Options{
		Settings: distribute.Settings{Kinds: []schema.GroupVersionKind{configMaps}, AllowOverwrite: true,
			Protected: func(string) bool { return false }},
		Covered:  func(gk schema.GroupKind) bool { return gk == configMaps.GroupKind() },
		RetryMin: time.Second, RetryMax: time.Minute, DegradedAfter: time.Minute, Timing: distribute.DefaultTiming(),
	}
	h.makeFirstNamespaces(s.setup)
	return h
}

// begin starts two replicas. The first has listed everything, and leads.
func (h *history) begin() {
	h.replicas = []*replica{newReplica(h, "r1"), newReplica(h, "r2")}
	h.catchUp(h.replicas[0])
	h.replicas[0].becomeLeader()
}

// catchUp lets all watches of a replica show everything. It reports whether there was anything to show.
func (h *history) catchUp(r *replica) (some bool) {
	for range 10_000 {
		i := slices.IndexFunc(r.watches, func(w *watch) bool { return w.isDue(h.server) })
		if i < 0 {
			return some
		}
		w := r.watches[i]
		h.record(r.name + ": the watch of " + w.name + " " + w.step(h.server, 0))
		some = true
	}
	h.fail("FLT-M9", "the watches of %s never end", r.name)
	return some
}

func (r *replica) becomeLeader() {
	r.leads = true
	r.applyCopies(copyengine.Elected{})
	r.applyRuns(distribute.Elected{})
}

// happen lets one event happen, and returns what has happened, in words; "" if nothing could.
func (h *history) happen(e event) string {
	switch e.op {
	case work:
		return h.work(e)
	case begin:
		return h.beginTask(e)
	case show:
		return h.show(e)
	case pass:
		h.pass(time.Duration(e.a*e.a) * 10 * time.Millisecond)
		return ""
	case control:
		if h.server.control() {
			return "the controllers of Kubernetes work"
		}
		return ""
	case tick:
		return h.tickAll()
	case scrub:
		return h.scrub(e)
	case askRights:
		return h.askRights(e)
	}
	h.isUnsteady = h.isUnsteady || unsteady[e.op]
	if e.op < work {
		return h.act(e)
	}
	return h.disturb(e)
}

// living returns the replicas that match.
func (h *history) living(match func(*replica) bool) (all []*replica) {
	for _, r := range h.replicas {
		if r.alive && match(r) {
			all = append(all, r)
		}
	}
	return all
}

// work lets one of all workers go on: its call reaches the API server, or its answer reaches the State.
func (h *history) work(e event) string {
	var all []*worker
	for _, r := range h.replicas {
		all = append(all, r.workers...)
	}
	if len(all) == 0 {
		return h.beginTask(e)
	}
	return h.goOn(all[e.a%len(all)])
}

func (h *history) goOn(w *worker) string {
	if w.done {
		h.record(w.name + ": takes in the answer to " + describe(w.what))
		w.finish()
		return ""
	}
	if len(h.faults) > 0 {
		w.fault, h.faults = h.faults[0], h.faults[1:]
	}
	what, failed := w.pending, w.fault
	w.advance()
	if failed != noFault {
		return fmt.Sprintf("%s: %s %s FAILS: %s", w.name, what.verb, what.slot, faultNames[failed])
	}
	return fmt.Sprintf("%s: %s %s", w.name, what.verb, what.slot)
}

// mostWorkers is how many requests of a replica are under way at most.
const mostWorkers = 4

func (h *history) beginTask(e event) string {
	leaders := h.living(func(r *replica) bool { return r.leads && len(r.workers) < mostWorkers && len(r.free()) > 0 })
	if len(leaders) == 0 {
		return ""
	}
	r := leaders[e.a%len(leaders)]
	free := r.free()
	r.begin(free[e.b%len(free)])
	return ""
}

func (h *history) show(e event) string {
	due := h.living(func(r *replica) bool {
		return slices.ContainsFunc(r.watches, func(w *watch) bool { return w.isDue(h.server) })
	})
	if len(due) == 0 {
		return ""
	}
	r := due[e.a%len(due)]
	watches := slices.DeleteFunc(slices.Clone(r.watches), func(w *watch) bool { return !w.isDue(h.server) })
	w := watches[e.b%len(watches)]
	return r.name + ": the watch of " + w.name + " " + w.step(h.server, e.c%20)
}

func (h *history) pass(d time.Duration) {
	h.server.now = h.server.now.Add(d)
	for _, r := range h.replicas {
		r.wake()
	}
}

func (h *history) tickAll() string {
	for _, r := range h.living(func(r *replica) bool { return r.leads }) {
		synced := r.view.Synced()
		r.applyCopies(copyengine.Ticked{Synced: synced, Idle: synced && len(r.waiting)+len(r.workers) == 0})
	}
	return ""
}

// disturb makes something go wrong, or ends what has gone wrong.
func (h *history) disturb(e event) string {
	switch r := h.replicas[e.a%len(h.replicas)]; e.op {
	case fail1:
		h.faults = append(h.faults, fault(1+e.a%int(faults-1)))
	case deny:
		at := slotOfDenial(h.pickSlot(e.a))
		if h.server.denied[at] = !h.server.denied[at]; !h.server.denied[at] {
			delete(h.server.denied, at)
		}
		return fmt.Sprintf("a policy refuses %s in %s: %t", at.Kind.Kind, at.Namespace, h.server.denied[at])
	case breakWatch:
		w := r.watches[e.b%len(r.watches)]
		w.breakOff()
		return r.name + ": the watch of " + w.name + " ends with 410"
	case kill:
		return h.kill(e)
	case start:
		return h.startOne()
	case elect:
		return h.elect(e)
	case breakKind:
		gk := copiedKinds[e.a%len(copiedKinds)].GroupKind()
		h.server.outages[gk] = []watchset.State{watchset.Degraded, watchset.Forbidden, watchset.NotServed}[e.b%3]
		return fmt.Sprintf("%s is %s", gk, h.server.outages[gk])
	case healKind:
		for _, gvk := range copiedKinds {
			if gk := gvk.GroupKind(); h.server.outages[gk] != "" {
				delete(h.server.outages, gk)
				return gk.String() + " is listed again"
			}
		}
	case restoreEtcd:
		return h.restore(e)
	case landLate:
		return h.landLate(e)
	}
	return ""
}

func (h *history) kill(e event) string {
	living := h.living(func(*replica) bool { return true })
	if len(living) == 0 {
		return ""
	}
	r := living[e.a%len(living)]
	r.die()
	return r.name + ": the process is killed"
}

func (h *history) startOne() string {
	for i, r := range h.replicas {
		if !r.alive {
			h.replicas[i] = newReplica(h, r.name)
			return r.name + ": a process starts"
		}
	}
	return ""
}

// elect makes another replica the leader. The one before goes on for a while: it takes no new tasks, but finishes those that it has.
func (h *history) elect(e event) string {
	able := h.living(func(r *replica) bool { return !r.leads && !r.deposed && r.view.Synced() })
	if len(able) == 0 {
		return ""
	}
	for _, r := range h.replicas {
		r.deposed = r.deposed || r.leads
		r.leads = false
	}
	r := able[e.a%len(able)]
	r.becomeLeader()
	return r.name + ": leads"
}

// restore restores etcd from a snapshot. Every process ends, as the operator does when it sees that the cluster's revision has become
// smaller.
func (h *history) restore(e event) string {
	for _, r := range h.replicas {
		if r.alive {
			r.die()
		}
	}
	h.late = nil
	n := max(len(names), len(h.server.log)-1-e.a%20)
	h.server.restore(n)
	return fmt.Sprintf("etcd is restored to version %d", h.server.versionAt(n))
}

func (h *history) landLate(e event) string {
	if len(h.late) == 0 {
		return ""
	}
	i := e.a % len(h.late)
	one := h.late[i]
	h.late = slices.Delete(h.late, i, i+1)
	one.worker.current = one.worker
	_ = one.call.do()
	return fmt.Sprintf("%s, which is dead: %s %s comes late", one.worker.name, one.call.verb, one.call.slot)
}

// scrub lets a leader compare a copy with its source, as the operator's scrub does.
func (h *history) scrub(e event) string {
	slot := h.pickObject(e.a, isCopy)
	o := h.server.at(slot)
	for _, r := range h.living(func(r *replica) bool { return r.leads && o != nil }) {
		uid, version := string(o.meta.UID), o.meta.ResourceVersion
		if known := r.copies.FindUnchanged(slot, uid, version); known != nil && !h.server.holds(o, slot.At(known.From)) {
			r.applyCopies(copyengine.DriftFound{Slot: slot, UID: uid, ResourceVersion: version})
		}
		if d, known := r.distribute.FindUnchanged(slot, uid, version); known != nil && !d.Holds(o.whole(), known.Foreign) {
			r.applyRuns(distribute.DriftFound{Slot: slot, UID: uid, ResourceVersion: version})
		}
	}
	return ""
}

func (h *history) stopAll() {
	for _, r := range h.replicas {
		if r.alive {
			r.die()
		}
	}
}

// unsteady are the ops after which the operator does not know all copies that it has written.
var unsteady = map[op]bool{
	unlabelCopy: true, moveNamespace: true, deleteNamespace: true, makeNamespace: true, kill: true, elect: true,
	start: true, restoreEtcd: true,
}

var faultNames = [faults]string{"", "429", "503", "no answer, not done", "no answer, but done"}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

func sortedSlots(m map[copies.Slot]*object) []copies.Slot {
	return slices.SortedFunc(maps.Keys(m), slotOrder{}.Compare)
}
