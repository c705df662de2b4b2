package fairqueue

import (
	"container/list"
	"slices"

	"k8s.io/client-go/util/workqueue"
)

const classes = 3

// Order holds keys in the order of their turns. Its zero value is empty. It has no lock.
type Order[K comparable] struct {
	places  map[K]*list.Element // of each key, in its lane
	tenants ring[*tenant[K]]
	heavy   ring[*tenant[K]] // the tenants with heavy keys, which take turns of their own
}

// tenant holds the keys of one tenant.
type tenant[K comparable] struct {
	name    string
	lanes   [classes][limits]ring[*lane[K]]
	size    int
	heavy   int   // how many of its keys are heavy
	lastHad limit // the limit of the key that was taken last: keys of one class with different limits take turns
}

// lane holds the keys that share a lane, a class and a limit.
type lane[K comparable] struct {
	tenant      *tenant[K]
	class       int
	limit       limit
	name        string
	keys        list.List // of *entry[K]
	burst, left int       // how many keys make a turn, and how many are left of the present turn
}

// entry is a key that waits.
type entry[K comparable] struct {
	key    K
	lane   *lane[K]
	weight int
	urgent bool
}

// Len returns the number of keys.
func (o *Order[K]) Len() int { return len(o.places) }

// Push adds a key behind the others of its lane. A key that waits already keeps its place, unless its tenant, class,
// lane or limit has changed.
func (o *Order[K]) Push(k K, a Attributes) {
	place, waits := o.places[k]
	// A key that became a deletion, or heavy, must not wait in a lane of other work.
	if waits && !place.Value.(*entry[K]).lane.matches(a) {
		o.removeKey(place)
		waits = false
	}
	if !waits {
		place = o.addKey(k, a)
	}
	e := place.Value.(*entry[K])
	e.weight, e.urgent, e.lane.burst = a.Weight, a.Urgent, max(1, a.Burst)
}

func (l *lane[K]) matches(a Attributes) bool {
	return l.tenant.name == a.Tenant && l.class == a.Class && l.limit == a.limit() && l.name == a.Lane
}

func (o *Order[K]) addKey(k K, a Attributes) *list.Element {
	t := o.tenants.ensureMember(a.Tenant, func() *tenant[K] { return &tenant[K]{name: a.Tenant} })
	t.size++
	if a.limit() == limitedBySize {
		o.heavy.ensureMember(a.Tenant, func() *tenant[K] { return t })
		t.heavy++
	}
	l := t.lanes[a.Class][a.limit()].ensureMember(a.Lane, func() *lane[K] {
		return &lane[K]{tenant: t, class: a.Class, limit: a.limit(), name: a.Lane}
	})
	if o.places == nil {
		o.places = map[K]*list.Element{}
	}
	o.places[k] = l.keys.PushBack(&entry[K]{key: k, lane: l})
	return o.places[k]
}

// removeKey takes a key out, and with it the lane and the tenant that have no other keys.
func (o *Order[K]) removeKey(place *list.Element) *entry[K] {
	e := place.Value.(*entry[K])
	l, t := e.lane, e.lane.tenant
	delete(o.places, e.key)
	if l.keys.Remove(place); l.keys.Len() == 0 {
		t.lanes[l.class][l.limit].removeMember(l.name)
	}
	if l.limit == limitedBySize {
		if t.heavy--; t.heavy == 0 {
			o.heavy.removeMember(t.name)
		}
	}
	if t.size--; t.size == 0 {
		o.tenants.removeMember(t.name)
	}
	return e
}

// Pop takes out the key whose turn it is. It is called only when Len is not 0.
func (o *Order[K]) Pop() K {
	k, _, _ := o.popIf(func(Attributes) bool { return true })
	return k
}

// popIf takes out the first key, in the order of turns, that mayBegin accepts. A key that it rejects holds back the
// keys of the same tenant with the same limit; a heavy one holds back all heavy keys.
func (o *Order[K]) popIf(mayBegin func(Attributes) bool) (k K, a Attributes, ok bool) {
	light := func(a Attributes) bool { return a.Weight == 0 && mayBegin(a) }
	heavy := o.nextHeavy(light, mayBegin)
	for _, t := range o.tenants.turns {
		accepts := light
		if t == heavy {
			accepts = mayBegin
		} else if t.heavy == t.size {
			continue // only heavy keys, as in very many trees after a change of a large source
		}
		if l := t.nextLane(accepts); l != nil {
			a = l.firstAttributes()
			e := o.removeKey(l.keys.Front())
			o.endTurn(l)
			return e.key, a, true
		}
	}
	return k, a, false
}

// nextHeavy returns the tenant whose heavy key may begin, nil if there is none: the first in turn that has no light key
// of a lower class that may begin. If there is no room for its key, smaller keys of others do not overtake it.
func (o *Order[K]) nextHeavy(light, mayBegin func(Attributes) bool) *tenant[K] {
	for _, t := range o.heavy.turns {
		l := t.firstLane(limitedBySize)
		if before := t.nextLane(light); before != nil && before.class < l.class {
			continue
		}
		if mayBegin(l.firstAttributes()) {
			return t
		}
		return nil
	}
	return nil
}

// nextLane returns the lane whose turn it is within the tenant, among those whose first key is accepted; nil if there
// is none.
func (t *tenant[K]) nextLane(accepts func(Attributes) bool) (next *lane[K]) {
	for i := range limits {
		l := t.firstLane((t.lastHad + 1 + i) % limits)
		if l != nil && (next == nil || l.class < next.class) && accepts(l.firstAttributes()) {
			next = l
		}
	}
	return next
}

// firstLane returns the lane with that limit whose turn it is, nil if there is none.
func (t *tenant[K]) firstLane(limit limit) *lane[K] {
	for class := range t.lanes {
		if lanes := &t.lanes[class][limit]; len(lanes.turns) > 0 {
			return lanes.turns[0]
		}
	}
	return nil
}

// firstAttributes returns the attributes of the lane's first key.
func (l *lane[K]) firstAttributes() Attributes {
	e := l.keys.Front().Value.(*entry[K])
	return Attributes{Tenant: l.tenant.name, Class: l.class, Lane: l.name, Burst: l.burst, Weight: e.weight, Urgent: e.urgent}
}

// endTurn ends the turn of a tenant that has handed out a key, and that of the key's lane if its burst is over.
func (o *Order[K]) endTurn(l *lane[K]) {
	t := l.tenant
	t.lastHad = l.limit
	o.tenants.moveToBack(t.name)
	if l.limit == limitedBySize {
		o.heavy.moveToBack(t.name)
	}
	if l.left == 0 {
		l.left = l.burst
	}
	if l.left--; l.left == 0 {
		t.lanes[l.class][l.limit].moveToBack(l.name)
	}
}

// ring holds members that take turns. Its zero value is empty.
type ring[M comparable] struct {
	members map[string]M
	turns   []M // the members; the first is next
}

// ensureMember returns the member with that name. If there is none, it adds one at the end.
func (r *ring[M]) ensureMember(name string, create func() M) M {
	member, ok := r.members[name]
	if !ok {
		if r.members == nil {
			r.members = map[string]M{}
		}
		member = create()
		r.members[name] = member
		r.turns = append(r.turns, member)
	}
	return member
}

// moveToBack makes a member the last, if it is still there.
func (r *ring[M]) moveToBack(name string) {
	if member, ok := r.members[name]; ok {
		r.unlinkMember(member)
		r.turns = append(r.turns, member)
	}
}

func (r *ring[M]) removeMember(name string) {
	r.unlinkMember(r.members[name])
	delete(r.members, name)
}

// unlinkMember takes a member, which is usually the first, out of the turns.
func (r *ring[M]) unlinkMember(member M) {
	if r.turns[0] == member {
		r.turns = r.turns[1:]
		return
	}
	i := slices.Index(r.turns, member)
	r.turns = slices.Delete(r.turns, i, i+1)
}

// ForWorkqueue returns an Order for the field Queue of a workqueue.TypedQueueConfig. attributesOf is called under the
// lock of the workqueue.
func ForWorkqueue[K comparable](attributesOf func(K) Attributes) workqueue.Queue[K] {
	return &ordered[K]{attributesOf: attributesOf}
}

type ordered[K comparable] struct {
	Order[K]
	attributesOf func(K) Attributes
}

// Push implements workqueue.Queue.
func (o *ordered[K]) Push(k K) { o.Order.Push(k, o.attributesOf(k)) }

// Touch implements workqueue.Queue: a key that is added again while it waits has its present attributes from now on.
func (o *ordered[K]) Touch(k K) { o.Push(k) }
