package copying

// Turn says where a key waits. Tenants take turns; within a tenant the lowest class comes first, and within a class lanes take turns: so
// whoever has very many keys waiting delays nobody but themselves.
type Turn[L comparable] struct {
	Tenant string
	Class  int // 0 to 2
	Lane   L
}

// lanes order keys by their turns. It implements workqueue.Queue, which calls it under its own lock.
type lanes[K, L comparable] struct {
	turnOf  func(K) Turn[L]
	tenants ring[string, *tenant[K, L]]
	size    int
}

// tenant holds the keys of one tenant.
type tenant[K, L comparable] struct {
	classes [3]ring[L, *[]K]
	size    int
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

// first is the member whose turn it is.
func (r *ring[N, M]) first() M { return r.members[r.turns[0]] }

// pass ends the turn of the first member: it comes last now, or leaves.
func (r *ring[N, M]) pass(leaves bool) {
	name := r.turns[0]
	r.turns = r.turns[1:]
	if leaves {
		delete(r.members, name)
		return
	}
	r.turns = append(r.turns, name)
}

func newLanes[K, L comparable](turnOf func(K) Turn[L]) *lanes[K, L] {
	return &lanes[K, L]{turnOf: turnOf}
}

// Touch implements workqueue.Queue. A key that waits keeps its turn.
func (q *lanes[K, L]) Touch(K) {}

// Push implements workqueue.Queue.
func (q *lanes[K, L]) Push(k K) {
	turn := q.turnOf(k)
	t := q.tenants.member(turn.Tenant, func() *tenant[K, L] { return &tenant[K, L]{} })
	lane := t.classes[turn.Class].member(turn.Lane, func() *[]K { return &[]K{} })
	*lane = append(*lane, k)
	t.size++
	q.size++
}

// Len implements workqueue.Queue.
func (q *lanes[K, L]) Len() int { return q.size }

// Pop implements workqueue.Queue. It is called only when Len is not 0.
func (q *lanes[K, L]) Pop() K {
	t := q.tenants.first()
	k := t.pop()
	q.tenants.pass(t.size == 0)
	q.size--
	return k
}

func (t *tenant[K, L]) pop() K {
	t.size--
	for i := range t.classes {
		class := &t.classes[i]
		if len(class.turns) == 0 {
			continue
		}
		lane := class.first()
		k := (*lane)[0]
		*lane = (*lane)[1:]
		class.pass(len(*lane) == 0)
		return k
	}
	panic("pop of a tenant without keys")
}
