package copying

import "sync"

// maxWeight is how many bytes of heavy work may be under way at once: two bodies of the largest kind. With sixteen such bodies under way, an
// API server with two cores took more than a minute to bring any write, by anybody, to its watches.
const maxWeight = 3 << 20

// weights let a few heavy keys, which have a weight, be worked on at a time, and set the others aside until there is room. A worker never
// waits for room, so keys without a weight never wait behind heavy ones.
type weights[K, L comparable] struct {
	mu       sync.Mutex // guards all below; the queue is never called while it is held
	of       map[K]int  // the weights, in bytes, of heavy keys that are queued or set aside
	aside    *lanes[K, L]
	isAside  map[K]bool
	underWay int // in bytes
}

func newWeights[K, L comparable](turnOf func(K) Turn[L]) *weights[K, L] {
	return &weights[K, L]{of: map[K]int{}, isAside: map[K]bool{}, aside: newLanes(turnOf, func(K, int) {})}
}

// note remembers the weight of a key that is queued.
func (w *weights[K, L]) note(k K, weight int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.of, k); weight > 0 {
		w.of[k] = weight
	}
}

// begin says whether there is room for the work of a key, and sets the key aside if there is none. Where nothing heavy is under way there is
// room for everything.
func (w *weights[K, L]) begin(k K) (weight int, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	weight = w.of[k]
	if weight > 0 && w.underWay > 0 && w.underWay+weight > maxWeight {
		weight = w.aside.turnOf(k).Weight // the key's work may be a deletion by now, which has no weight
	}
	if weight == 0 || w.underWay == 0 || w.underWay+weight <= maxWeight {
		delete(w.of, k)
		w.underWay += weight
		return weight, true
	}
	if !w.isAside[k] {
		w.isAside[k] = true
		w.aside.Push(k)
	}
	return 0, false
}

// end gives back the room of heavy work that is done, and returns the keys that may have room now.
func (w *weights[K, L]) end(weight int) (ready []K) {
	if weight == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.underWay -= weight
	for room := maxWeight - w.underWay; room > 0 && w.aside.Len() > 0; {
		k := w.aside.Pop()
		delete(w.isAside, k)
		ready = append(ready, k)
		room -= w.of[k]
	}
	return ready
}

// count says how many keys are set aside.
func (w *weights[K, L]) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.aside.Len()
}
