package fairqueue

import "slices"

// Order orders keys by their turns. It implements workqueue.Queue, which calls it under its own lock.
type Order[K comparable] struct {
	turnOf  func(K) Attributes
	handOut func(K, Attributes) // unless it is nil, it is called with a key that is handed out, and the turn it has waited for
	touched map[K]bool          // keys that came again while they waited: they are handed out with the turn that they have then
	hurried func(K) bool        // unless it is nil, it reports whether a key that comes again while it waits takes the place of its new turn
	tenants ring[string, *tenant[K]]
	size    int
}

// tenant holds the keys of one tenant.
type tenant[K comparable] struct {
	classes [3]ring[string, *lane[K]]
	size    int
}

// entry is a key that waits, and what of its turn is asked for again when it is handed out.
type entry[K any] struct {
	key    K
	weight int
	urgent bool
}

// lane holds the keys that share turns.
type lane[K any] struct {
	keys         []entry[K]
	length, left int // in keys: of each turn, and of what is left of the present one
}

// ring hands out its members in turns. Its zero value is empty.
type ring[N comparable, M any] struct {
	members map[N]M
	turns   []N // the members, in the order of their turns
}

// member returns the member called name, a new one, which comes last, if there is none.
func (r *ring[N, M]) member(name N, makeOne func() M) M {
	found, ok := r.members[name]
	if !ok {
		if r.members == nil {
			r.members = map[N]M{}
		}
		found = makeOne()
		r.members[name] = found
		r.turns = append(r.turns, name)
	}
	return found
}

// first returns the member whose turn it is.
func (r *ring[N, M]) first() M { return r.members[r.turns[0]] }

// pass ends the turn of the first member, which comes last from now on or, if it leaves, is removed.
func (r *ring[N, M]) pass(leaves bool) {
	name := r.turns[0]
	r.turns = r.turns[1:]
	if leaves {
		delete(r.members, name)
		return
	}
	r.turns = append(r.turns, name)
}

// remove takes the member called name out.
func (r *ring[N, M]) remove(name N) {
	delete(r.members, name)
	r.turns = slices.DeleteFunc(r.turns, func(one N) bool { return one == name })
}

// NewOrder returns lanes without keys.
func NewOrder[K comparable](turnOf func(K) Attributes, handOut func(K, Attributes)) *Order[K] {
	return &Order[K]{turnOf: turnOf, handOut: handOut, touched: map[K]bool{}}
}

// Hurry makes a key that comes again while it waits take the place of the turn that it has by then, if hurried says so of it. Hurried must be
// true of few keys: finding one among those of its tenant takes time.
func (q *Order[K]) Hurry(hurried func(K) bool) *Order[K] {
	q.hurried = hurried
	return q
}

// Touch implements workqueue.Queue. A key that waits keeps its place unless it is hurried, but what its work takes may be another by now.
func (q *Order[K]) Touch(k K) {
	if q.hurried != nil && q.hurried(k) && q.remove(k) {
		q.Push(k)
		return
	}
	q.touched[k] = true
}

// remove takes a key out that waits in the tenant of its turn, and reports whether it was there.
func (q *Order[K]) remove(k K) bool {
	name := q.turnOf(k).Tenant
	t := q.tenants.members[name]
	if t == nil {
		return false // it waits with another tenant: its namespace has moved since
	}
	for i := range t.classes {
		class := &t.classes[i]
		for lane, of := range class.members {
			at := slices.IndexFunc(of.keys, func(e entry[K]) bool { return e.key == k })
			if at < 0 {
				continue
			}
			if of.keys = slices.Delete(of.keys, at, at+1); len(of.keys) == 0 {
				class.remove(lane)
			}
			q.size--
			if t.size--; t.size == 0 {
				q.tenants.remove(name)
			}
			return true
		}
	}
	return false
}

// Push implements workqueue.Queue.
func (q *Order[K]) Push(k K) { q.PushTurn(k, q.turnOf(k)) }

// PushTurn has a key wait for a turn that is known.
func (q *Order[K]) PushTurn(k K, turn Attributes) {
	t := q.tenants.member(turn.Tenant, func() *tenant[K] { return &tenant[K]{} })
	of := t.classes[turn.Class].member(turn.Lane, func() *lane[K] { return &lane[K]{} })
	of.keys = append(of.keys, entry[K]{k, turn.Weight, turn.Urgent})
	of.length = max(1, turn.Burst)
	t.size++
	q.size++
}

// Len implements workqueue.Queue.
func (q *Order[K]) Len() int { return q.size }

// Pop implements workqueue.Queue. It is called only when Len is not 0.
func (q *Order[K]) Pop() K {
	k, turn := q.First()
	t := q.tenants.first()
	t.pop()
	q.tenants.pass(t.size == 0)
	q.size--
	if q.touched[k] {
		delete(q.touched, k)
		turn = q.turnOf(k)
	}
	if q.handOut != nil {
		q.handOut(k, turn)
	}
	return k
}

// First returns the key that Pop would return, and the turn it waits for. It is called only when Len is not 0.
func (q *Order[K]) First() (K, Attributes) {
	turn := Attributes{Tenant: q.tenants.turns[0]}
	t := q.tenants.first()
	turn.Class = t.lowest()
	class := &t.classes[turn.Class]
	turn.Lane = class.turns[0]
	of := class.first()
	e := of.keys[0]
	turn.Burst, turn.Weight, turn.Urgent = of.length, e.weight, e.urgent
	return e.key, turn
}

// lowest returns the lowest class that has keys. It is called only when there are any.
func (t *tenant[K]) lowest() int {
	return slices.IndexFunc(t.classes[:], func(class ring[string, *lane[K]]) bool { return len(class.turns) > 0 })
}

// pop takes the next key of the lowest class.
func (t *tenant[K]) pop() {
	t.size--
	class := &t.classes[t.lowest()]
	of := class.first()
	if of.pop(); of.left == 0 || len(of.keys) == 0 {
		class.pass(len(of.keys) == 0)
	}
}

// pop takes the next key, and counts the turn.
func (l *lane[K]) pop() {
	if l.left == 0 {
		l.left = l.length
	}
	l.left--
	l.keys = l.keys[1:]
}
