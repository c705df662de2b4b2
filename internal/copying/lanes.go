package copying

// Turn says where a key waits. Tenants take turns. Within a tenant the lowest class comes first, and within a class lanes, such as the copies
// of one source, take turns. So a tenant, or a lane, with very many keys delays nobody else.
type Turn[L comparable] struct {
	Tenant string
	Class  int // 0 to 2
	Lane   L
	// Length is how many keys of the lane follow one another before the next lane has its turn; 0 stands for one.
	Length int
	// Weight is how many bytes the work sends, where they are many; else 0. See Queue.
	Weight int
	// Urgent work waits for no room, whatever other tenants have to do: it takes rights away, or asks nothing of the API server.
	Urgent bool
}

// lanes order keys by their turns. It implements workqueue.Queue, which calls it under its own lock.
type lanes[K, L comparable] struct {
	turnOf  func(K) Turn[L]
	handOut func(K, Turn[L]) // unless it is nil, it is called with a key that is handed out; of the turn tenant, weight and urgency are set
	tenants ring[string, *tenant[K, L]]
	size    int
}

// tenant holds the keys of one tenant.
type tenant[K, L comparable] struct {
	classes [3]ring[L, *lane[K]]
	size    int
}

// first returns the key that Pop would return. It is called only when Len is not 0.
func (q *lanes[K, L]) first() K {
	t := q.tenants.first()
	for i := range t.classes {
		if class := &t.classes[i]; len(class.turns) > 0 {
			return class.first().keys[0].key
		}
	}
	panic("a tenant without keys")
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

func newLanes[K, L comparable](turnOf func(K) Turn[L], handOut func(K, Turn[L])) *lanes[K, L] {
	return &lanes[K, L]{turnOf: turnOf, handOut: handOut}
}

// Touch implements workqueue.Queue. A key that waits keeps its turn.
func (q *lanes[K, L]) Touch(K) {}

// Push implements workqueue.Queue.
func (q *lanes[K, L]) Push(k K) {
	turn := q.turnOf(k)
	t := q.tenants.member(turn.Tenant, func() *tenant[K, L] { return &tenant[K, L]{} })
	of := t.classes[turn.Class].member(turn.Lane, func() *lane[K] { return &lane[K]{} })
	of.keys = append(of.keys, entry[K]{k, turn.Weight, turn.Urgent})
	of.length = max(1, turn.Length)
	t.size++
	q.size++
}

// Len implements workqueue.Queue.
func (q *lanes[K, L]) Len() int { return q.size }

// Pop implements workqueue.Queue. It is called only when Len is not 0.
func (q *lanes[K, L]) Pop() K {
	name, t := q.tenants.turns[0], q.tenants.first()
	e := t.pop()
	q.tenants.pass(t.size == 0)
	q.size--
	if q.handOut != nil {
		q.handOut(e.key, Turn[L]{Tenant: name, Weight: e.weight, Urgent: e.urgent})
	}
	return e.key
}

func (t *tenant[K, L]) pop() entry[K] {
	t.size--
	for i := range t.classes {
		class := &t.classes[i]
		if len(class.turns) == 0 {
			continue
		}
		of := class.first()
		e := of.pop()
		if of.left == 0 || len(of.keys) == 0 {
			class.pass(len(of.keys) == 0)
		}
		return e
	}
	panic("pop of a tenant without keys")
}

// pop takes the next key, and counts the turn.
func (l *lane[K]) pop() entry[K] {
	if l.left == 0 {
		l.left = l.length
	}
	l.left--
	e := l.keys[0]
	l.keys = l.keys[1:]
	return e
}
