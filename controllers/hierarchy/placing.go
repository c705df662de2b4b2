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

// errMoveWaits reports that another namespace is being moved: who waits is queued when its turn has come.
var errMoveWaits = errors.New("another namespace is being moved")

// placing lets one namespace at a time be placed elsewhere, so that two moves can't form a cycle. No worker waits meanwhile: who finds
// another move under way is queued when its turn has come. Trees take turns.
type placing struct {
	mu       sync.Mutex // guards all below; the queue is never called while it is held
	underWay bool
	next     string // whose turn it is, and who has been queued for it; "" if nobody has
	waiting  fairqueue.Order[string]
	again    requeue.Source[reconcile.Request]
}

// begin reports whether the namespace called name may be placed elsewhere now. Who may calls end, and who may not is queued again when it
// may.
func (m *placing) begin(s *forest.Snapshot, name, parent string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.underWay || m.next != "" && m.next != name {
		m.waiting.Push(name, fairqueue.Attributes{Tenant: cmp.Or(s.RootOf(name), s.RootOf(parent), name)})
		return false
	}
	m.underWay, m.next = true, ""
	return true
}

// hasTurn reports whether a request is for the namespace whose turn it is, for which all others wait.
func (m *placing) hasTurn(r reconcile.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next != "" && m.next == r.Name
}

// endMove ends a move, and gives the turn to the next.
func (m *placing) endMove() {
	m.mu.Lock()
	m.underWay = false
	m.mu.Unlock()
	m.passTurn("")
}

// passTurn gives the turn to the next if it is that of the namespace called name, which needs it no longer.
func (m *placing) passTurn(name string) {
	if next := m.takeTurn(name); next != "" {
		m.again.Add(requestNamed(next))
	}
}

// takeTurn takes the turn from the namespace called name, if it has it, and returns whose it is then; "" if nobody waits.
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
