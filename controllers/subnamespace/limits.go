package subnamespace

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// reserve takes a place in the tree for a namespace that is about to be created, so that the tree never holds one too many. Older
// SubNamespaces that wait in line come first. release gives the place back once the namespace is in the view, or couldn't be
// created; it is nil where there is no room, and v then says why.
func (r *Reconciler) reserve(sub *v1alpha1.SubNamespace) (release func(), v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.Index.Snapshot()
	place := s.Place(sub.Namespace)
	if !place.InTree() {
		return nil, verdict{reason: v1alpha1.ReasonCreating, message: "the parent namespace has just changed: the operator decides again in a moment"}
	}
	root, w := place.Path[0], waiterOf(sub)
	reserved := 0
	for name, under := range r.room {
		if under == root && s.Namespace(name) == nil {
			reserved++
		}
	}
	if why := r.noRoom(s, root, reserved, r.lines.ahead(root, w)+1); why != "" {
		r.lines.waitForRoom(root, w)
		v = blocked(forest.Obstacle{Reason: v1alpha1.ReasonLimitExceeded, Message: why})
		v.inLine = true
		return nil, v
	}
	r.lines.leave(w.key)
	r.room[sub.Name] = root
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.room, sub.Name)
	}, verdict{}
}

// full records that a tree had no room for adding more namespaces, in one snapshot and with reserved ones being created.
type full struct {
	snapshot         *forest.Snapshot
	reserved, adding int
	text             string
}

// noRoom says why there is no room, as forest.Snapshot.NoRoom does. It walks the tree once for all that ask about the same
// snapshot: where there is no room for some number, there is none for more. The caller holds the lock.
func (r *Reconciler) noRoom(s *forest.Snapshot, root string, reserved, adding int) string {
	if last := r.full[root]; last.snapshot == s && last.reserved == reserved && last.adding <= adding {
		return last.text
	}
	text := s.NoRoom(root, reserved, adding)
	if text == "" {
		delete(r.full, root)
	} else {
		r.full[root] = full{s, reserved, adding, text}
	}
	return text
}

// leaveLine takes a SubNamespace that no limit holds back any more out of its line, and requeues those behind it: nothing in the
// forest need have changed, so no event would.
func (r *Reconciler) leaveLine(key types.NamespacedName) {
	r.mu.Lock()
	root := r.lines.leave(key)
	r.mu.Unlock()
	if root != "" {
		r.lookAgainInLine(root)
	}
}

// lookAgainInLine requeues all SubNamespaces that limits of the tree of root hold back.
func (r *Reconciler) lookAgainInLine(root string) {
	q := r.queue.Load()
	if q == nil {
		return // the controller has not started, and reconciles everything when it does
	}
	r.mu.Lock()
	keys := r.lines.of(root)
	r.mu.Unlock()
	for _, key := range keys {
		(*q).Add(reconcile.Request{NamespacedName: key})
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *Reconciler) listen(_ context.Context, q queue) error {
	r.queue.Store(&q)
	return nil
}

// listWaiting returns the SubNamespaces that wait for limits of the trees that a change concerns.
func (r *Reconciler) listWaiting(c view.Change) (waiting []types.NamespacedName) {
	r.mu.Lock()
	nobody := r.lines.isEmpty()
	r.mu.Unlock()
	if nobody { // a SubNamespace that joins a line later is judged by the newest snapshot once more
		return nil
	}
	concerned := c.New.ConcernedBy(c.Old, c.Namespaces)
	r.mu.Lock()
	defer r.mu.Unlock()
	for root := range concerned {
		waiting = append(waiting, r.lines.of(root)...)
	}
	return waiting
}

// concerned returns requests for the SubNamespaces to which a change of the forest matters: those in the namespaces that changed,
// those that want their names, and those that wait for limits of their trees.
func (r *Reconciler) concerned(c view.Change) []reconcile.Request {
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
