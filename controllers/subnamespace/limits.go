package subnamespace

import (
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// waitingSubNamespaces keeps trees within their limits: it knows which namespaces are being created, and which
// SubNamespaces wait.
type waitingSubNamespaces struct {
	snapshot func() *forest.Snapshot

	mu sync.Mutex // guards all below; while it is held, only the view's lock is taken
	// underWay holds the SubNamespaces whose namespaces are being created, with the root of the tree against whose
	// limits these count.
	underWay map[types.NamespacedName]string
	lines    *lines // the SubNamespaces that limits hold back
	// full holds, by root, the last answer that a tree has no room, all in the snapshot fullIn. A weak pointer keeps no
	// old forest in memory.
	full   map[string]full
	fullIn weak.Pointer[forest.Snapshot]
}

func newWaitingSubNamespaces(snapshot func() *forest.Snapshot) *waitingSubNamespaces {
	return &waitingSubNamespaces{snapshot: snapshot, underWay: map[types.NamespacedName]string{}, lines: newLines(), full: map[string]full{}}
}

// waitForDepth puts a SubNamespace in the line of those that would exceed the limit of depth of the tree of root.
func (w *waitingSubNamespaces) waitForDepth(root string, sub *v1alpha1.SubNamespace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines.waitForDepth(root, waiterOf(sub))
}

// dropSub takes a SubNamespace out of its line, and returns the root in whose line it was, or "".
func (w *waitingSubNamespaces) dropSub(key types.NamespacedName) (root string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.dropSub(key)
}

// lineOf returns the root of the tree in whose line for room a SubNamespace waits, or "".
func (w *waitingSubNamespaces) lineOf(key types.NamespacedName) (root string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.lineOf(key)
}

// isEmpty reports whether no limit holds any SubNamespace back.
func (w *waitingSubNamespaces) isEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.isEmpty()
}

// waitingIn returns the SubNamespaces that limits of the tree of root hold back.
func (w *waitingSubNamespaces) waitingIn(root string) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.listTree(root)
}

// reservePlace takes a place in the tree for a namespace that is about to be created, so that the tree never holds one
// too many. Older SubNamespaces that wait in line come first. The caller calls release when the namespace is in the
// view or could not be created. release is nil if there is no place; v then explains why.
func (w *waitingSubNamespaces) reservePlace(sub *v1alpha1.SubNamespace) (release func(), v verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.snapshot()
	place := s.Place(sub.Namespace)
	if !place.InTree() {
		return nil, verdict{reason: v1alpha1.ReasonCreating,
			message: "the parent namespace has just changed: the operator tries again by itself"}
	}
	root, waiter := place.Path[0], waiterOf(sub)
	reserved := 0
	for key, under := range w.underWay {
		// Where the view has the namespace already, the tree's own count includes it.
		if under == root && s.Namespace(key.Name) == nil {
			reserved++
		}
	}
	if why := w.noRoom(s, root, reserved, w.lines.countAhead(root, waiter)+1); why != "" {
		w.lines.waitForRoom(root, waiter)
		v = blockedVerdict(forest.Obstacle{Reason: v1alpha1.ReasonLimitExceeded, Message: why})
		v.inLine = true
		return nil, v
	}
	// It has a place now, so younger SubNamespaces need not wait for it.
	w.lines.dropSub(waiter.key)
	w.underWay[waiter.key] = root
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.underWay, waiter.key)
	}, verdict{}
}

// full records that a tree had no room: reserved is how many namespaces were being created, adding how many more it had
// no room for.
type full struct {
	reserved, adding int
	text             string
}

// noRoom explains why there is no room, as forest.NoRoom does. It walks a full tree once for all that ask about the
// same snapshot: where there is no room for some number, there is none for more. The caller holds the lock.
func (w *waitingSubNamespaces) noRoom(s *forest.Snapshot, root string, reserved, adding int) string {
	if in := weak.Make(s); w.fullIn != in {
		w.fullIn = in
		clear(w.full)
	}
	if last := w.full[root]; last.text != "" && last.reserved == reserved && last.adding <= adding {
		return last.text
	}
	text := forest.NoRoom(s, root, reserved, adding)
	w.full[root] = full{reserved, adding, text}
	return text
}

// leaveLine takes a SubNamespace that no limit holds back any more out of its line, and requeues those that still wait
// there. No event would requeue them, because nothing in the forest need have changed.
func (r *Reconciler) leaveLine(key types.NamespacedName) {
	if root := r.waiting.dropSub(key); root != "" {
		r.lookAgainInLine(root)
	}
}

// lookAgainInLine requeues all SubNamespaces that limits of the tree of root hold back.
func (r *Reconciler) lookAgainInLine(root string) {
	for _, key := range r.waiting.waitingIn(root) {
		r.line.Add(reconcile.Request{NamespacedName: key})
	}
}

// listWaiting returns the SubNamespaces that wait for limits of the trees that a change concerns.
func (r *Reconciler) listWaiting(c view.Change) (waiting []types.NamespacedName) {
	if r.waiting.isEmpty() { // a SubNamespace that joins a line later is judged by the newest snapshot once more
		return nil
	}
	for root := range forest.ConcernedBy(c.New, c.Old, c.Namespaces) {
		waiting = append(waiting, r.waiting.waitingIn(root)...)
	}
	return waiting
}

// concernedSubs returns requests for the SubNamespaces to which a change of the forest matters: those in the namespaces
// that changed, those with the names of these namespaces, and those that wait for limits of their trees.
func (r *Reconciler) concernedSubs(c view.Change) []reconcile.Request {
	found := map[types.NamespacedName]bool{}
	for _, name := range c.Namespaces {
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			for _, sub := range s.Subs(name) {
				found[types.NamespacedName{Namespace: sub.Parent, Name: sub.Name}] = true
			}
		}
		for _, sub := range c.New.SubsNamed(name) {
			found[types.NamespacedName{Namespace: sub.Parent, Name: sub.Name}] = true
		}
	}
	for _, key := range r.listWaiting(c) {
		found[key] = true
	}
	requests := make([]reconcile.Request, 0, len(found))
	for name := range found {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}
