package subnamespace

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// reserve takes a place in the tree for a namespace that is about to be made, so that the tree never holds one too many,
// not for a moment. The oldest SubNamespaces that wait come first. release is nil where there is no room.
func (r *Reconciler) reserve(sub *v1alpha1.SubNamespace) (release func(), v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.Index.Snapshot()
	place := s.Place(sub.Namespace)
	if !place.InTree() {
		return nil, verdict{reason: v1alpha1.ReasonCreating, message: "the parent namespace has just changed: the operator decides again in a moment"}
	}
	root := place.Path[0]
	key := sub.Namespace + "/" + sub.Name
	reserved := 0
	for name := range r.room {
		if s.Namespace(name) == nil {
			reserved++
		}
	}
	if why := s.NoRoom(root, reserved, r.before(s, root, sub)+1); why != "" {
		r.wait(root, key, true)
		return nil, blocked(forest.Obstacle{Reason: v1alpha1.ReasonLimitExceeded, Message: why})
	}
	delete(r.waiting[root], key)
	r.room[sub.Name] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.room, sub.Name)
	}, verdict{}
}

// wait notes that a SubNamespace is held back by a limit of its tree: forRoom by the number of namespaces, else by the
// depth. The caller holds the lock.
func (r *Reconciler) wait(root, key string, forRoom bool) {
	if r.waiting[root] == nil {
		r.waiting[root] = map[string]bool{}
	}
	r.waiting[root][key] = forRoom
}

// before counts the SubNamespaces of the tree that wait for room and are older than sub.
func (r *Reconciler) before(s *forest.Snapshot, root string, sub *v1alpha1.SubNamespace) int {
	own := s.Sub(sub.Namespace, sub.Name)
	if own == nil {
		return 0
	}
	older := 0
	for key, forRoom := range r.waiting[root] {
		parent, name, _ := strings.Cut(key, "/")
		if !forRoom {
			continue
		}
		if other := s.Sub(parent, name); other != nil && !other.Deleting && s.Namespace(name) == nil && forest.Older(other, own) < 0 {
			older++
		}
	}
	return older
}

// concerned are the SubNamespaces that a change of the forest matters to: those in the namespaces that changed, those
// that want their names, and those that wait for room in their trees.
func (r *Reconciler) concerned(c view.Change) []reconcile.Request {
	found := map[types.NamespacedName]bool{}
	roots := map[string]bool{}
	for _, name := range c.Namespaces {
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			for _, sub := range s.Subs(name) {
				found[types.NamespacedName{Namespace: sub.Parent, Name: sub.Name}] = true
			}
			if place := s.Place(name); place.InTree() {
				roots[place.Path[0]] = true
			}
		}
		for _, sub := range c.New.SubsNamed(name) {
			found[types.NamespacedName{Namespace: sub.Parent, Name: sub.Name}] = true
		}
	}
	r.mu.Lock()
	for root := range roots {
		for key := range r.waiting[root] {
			parent, name, _ := strings.Cut(key, "/")
			found[types.NamespacedName{Namespace: parent, Name: name}] = true
		}
	}
	r.mu.Unlock()
	requests := make([]reconcile.Request, 0, len(found))
	for name := range found {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}
