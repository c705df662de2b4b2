package copying

// lanes orders keys by class, and within a class in turns by lane. It implements workqueue.Queue, which calls it under its own
// lock.
type lanes[K, L comparable] struct {
	urgency func(K) (int, L)
	classes [3]class[K, L]
	size    int
}

type class[K, L comparable] struct {
	lanes map[L][]K
	turns []L // those with keys, in the order of their turns
}

func newLanes[K, L comparable](urgency func(K) (int, L)) *lanes[K, L] {
	q := &lanes[K, L]{urgency: urgency}
	for i := range q.classes {
		q.classes[i].lanes = map[L][]K{}
	}
	return q
}

// Touch implements workqueue.Queue. A key that waits keeps its turn.
func (q *lanes[K, L]) Touch(K) {}

// Push implements workqueue.Queue.
func (q *lanes[K, L]) Push(k K) {
	number, of := q.urgency(k)
	c := &q.classes[number]
	if len(c.lanes[of]) == 0 {
		c.turns = append(c.turns, of)
	}
	c.lanes[of] = append(c.lanes[of], k)
	q.size++
}

// Len implements workqueue.Queue.
func (q *lanes[K, L]) Len() int { return q.size }

// Pop implements workqueue.Queue. It is called only when Len is not 0.
func (q *lanes[K, L]) Pop() K {
	for i := range q.classes {
		c := &q.classes[i]
		if len(c.turns) == 0 {
			continue
		}
		of := c.turns[0]
		k := c.lanes[of][0]
		c.turns = c.turns[1:]
		if rest := c.lanes[of][1:]; len(rest) > 0 {
			c.lanes[of] = rest
			c.turns = append(c.turns, of)
		} else {
			delete(c.lanes, of)
		}
		q.size--
		return k
	}
	panic("Pop on an empty queue")
}
