package distribution

// key is one piece of work: a review of all targets of a distribution, or of one namespace where that is said.
type key struct{ distribution, namespace string }

// turns orders keys: reviews before writes, and writes in turns by distribution. It implements workqueue.Queue, which calls
// it under its own lock.
type turns struct {
	reviews []key
	lanes   map[string][]key
	order   []string // distributions with writes, in the order of their turns
	size    int
}

func newTurns() *turns { return &turns{lanes: map[string][]key{}} }

// Touch implements workqueue.Queue. A key that waits keeps its turn.
func (q *turns) Touch(key) {}

// Push implements workqueue.Queue.
func (q *turns) Push(k key) {
	q.size++
	if k.namespace == "" {
		q.reviews = append(q.reviews, k)
		return
	}
	if len(q.lanes[k.distribution]) == 0 {
		q.order = append(q.order, k.distribution)
	}
	q.lanes[k.distribution] = append(q.lanes[k.distribution], k)
}

// Len implements workqueue.Queue.
func (q *turns) Len() int { return q.size }

// Pop implements workqueue.Queue. It is called only when Len is not 0.
func (q *turns) Pop() key {
	q.size--
	if len(q.reviews) > 0 {
		k := q.reviews[0]
		q.reviews = q.reviews[1:]
		return k
	}
	of := q.order[0]
	q.order = q.order[1:]
	k := q.lanes[of][0]
	if rest := q.lanes[of][1:]; len(rest) > 0 {
		q.lanes[of] = rest
		q.order = append(q.order, of)
	} else {
		delete(q.lanes, of)
	}
	return k
}
