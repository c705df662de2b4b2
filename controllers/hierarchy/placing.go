package hierarchy

import (
	"cmp"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/fairqueue"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// errMoveWaits reports that a move must wait because another namespace is being moved. The waiting namespace is queued
// when its turn comes.
var errMoveWaits = errors.New("another namespace is being moved")

// placing lets only one namespace at a time move to another parent, so that two moves can't form a cycle. No worker
// waits for a move: a namespace that finds another move under way is queued again when its turn comes. Trees take
// turns.
type placing struct {
	mu       sync.Mutex // guards all below; it is never held during a call of again
	underWay bool
	next     string // the namespace whose turn it is, and which has been queued; "" for none
	waiting  fairqueue.Order[string]
	again    requeue.Source[reconcile.Request]
}

// beginMove reports whether the namespace called name may move below parent now. If so, the caller calls endMove after
// the move. If not, the namespace is queued again when its turn comes.
func (m *placing) beginMove(s *forest.Snapshot, name, parent string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.underWay || m.next != "" && m.next != name {
		// A namespace that is in no tree yet waits in turn with the tree that it joins.
		m.waiting.Push(name, fairqueue.Attributes{Tenant: cmp.Or(s.RootOf(name), s.RootOf(parent), name)})
		return false
	}
	m.underWay, m.next = true, ""
	return true
}

// hasTurn reports whether a request is for the namespace whose turn it is. All other moves wait for that namespace.
func (m *placing) hasTurn(r reconcile.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next != "" && m.next == r.Name
}

// endMove ends the move under way, and queues the namespace whose turn is next, if any waits.
func (m *placing) endMove() {
	m.mu.Lock()
	m.underWay = false
	m.mu.Unlock()
	m.passTurn("")
}

// passTurn ends the turn of the namespace called name, which doesn't need it, and queues the namespace whose turn is
// next, if any waits. It does nothing if another namespace has the turn.
func (m *placing) passTurn(name string) {
	if next := m.takeTurn(name); next != "" {
		m.again.Add(requestNamed(next))
	}
}

// takeTurn ends the turn of the namespace called name, and returns the namespace whose turn is next. It returns "" if
// no namespace waits, a move is under way, or the turn belongs to another namespace. An empty name means that no
// namespace has the turn.
func (m *placing) takeTurn(name string) (next string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.underWay || m.next != name {
		return ""
	}
	m.next = ""
	if m.waiting.Len() > 0 {
		m.next = m.waiting.Pop()
	}
	return m.next
}
