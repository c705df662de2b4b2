package propagation

import (
	"sync"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// removals hold back writes in a namespace until the copies that a move takes away from it are deleted.
type removals struct {
	facts    facts
	queue    *queue
	troubles *troubles
	stuck    time.Duration // how long a namespace waits before this is reported

	mu         sync.Mutex                 // guards barriers and unanswered; nothing else is called while it is held
	barriers   map[string]*removalBarrier // by namespace
	unanswered map[string]int             // by namespace: DELETEs without an answer yet
}

// removalBarrier delays writes in one namespace.
type removalBarrier struct {
	since    time.Time
	reported bool // the barrier has lasted for stuck, and its namespace was reported
}

func newRemovals(f facts, q *queue, tr *troubles, stuck time.Duration) *removals {
	return &removals{facts: f, queue: q, troubles: tr, stuck: stuck, barriers: map[string]*removalBarrier{}, unanswered: map[string]int{}}
}

// holdBack says whether an action at slot must wait for removals in its namespace, and if so raises a barrier there. An action waits because
// its plan says so, or because a DELETE in the namespace is not answered yet, even if the watch has already shown that the copy is gone.
func (r *removals) holdBack(slot propagate.Slot, action propagate.Action) bool {
	if waitsForRemoval(action) {
		r.mu.Lock()
		r.raise(slot.Namespace)
		r.mu.Unlock()
		if !waitsForRemoval(r.facts.plan(slot)) { // the copy went between the plan and the barrier: nobody else will release the barrier
			r.release(slot.Namespace)
		}
		return true
	}
	if action.Verb != propagate.Create && action.Verb != propagate.Update {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unanswered[slot.Namespace] == 0 {
		return false
	}
	r.raise(slot.Namespace)
	return true
}

// raise sets up a barrier in namespace. The caller holds the lock.
func (r *removals) raise(namespace string) {
	if r.barriers[namespace] == nil {
		r.barriers[namespace] = &removalBarrier{since: time.Now()}
	}
}

// release takes the barriers of namespaces away, and queues each namespace that had one.
func (r *removals) release(namespaces ...string) {
	for _, namespace := range namespaces {
		if r.drop(namespace) {
			r.queue.Add(namespaceKey(namespace))
		}
	}
}

// drop takes the barrier of a namespace away, and says whether there was one.
func (r *removals) drop(namespace string) bool {
	r.mu.Lock()
	barrier := r.barriers[namespace]
	delete(r.barriers, namespace)
	r.mu.Unlock()
	if barrier != nil && barrier.reported {
		r.troubles.tell(namespace)
	}
	return barrier != nil
}

// during calls remove, which sends a DELETE in namespace, and holds back writes in namespace until the answer has come.
func (r *removals) during(namespace string, remove func() error) error {
	r.mu.Lock()
	r.unanswered[namespace]++
	r.mu.Unlock()
	err := remove()
	r.mu.Lock()
	r.unanswered[namespace]--
	last := r.unanswered[namespace] == 0
	if last {
		delete(r.unanswered, namespace)
	}
	waiting := r.barriers[namespace] != nil
	r.mu.Unlock()
	switch {
	case last && err == nil:
		r.release(namespace)
	case last && waiting:
		r.releaseIndependent(namespace)
	}
	return err
}

// releaseIndependent queues the slots in namespace that need not wait for a removal that has failed. The removal is tried again by itself.
func (r *removals) releaseIndependent(namespace string) {
	waits := false
	for _, slot := range r.facts.slotsIn(namespace) {
		switch action := r.facts.plan(slot); {
		case waitsForRemoval(action):
			waits = true
		case action.Verb == propagate.Create || action.Verb == propagate.Update:
			r.queue.Add(slotKey(slot))
		}
	}
	if !waits {
		r.drop(namespace)
	}
}

// reportStuck has the namespaces reported in which nothing has moved for as long as stuck says.
func (r *removals) reportStuck() {
	var late []string
	r.mu.Lock()
	for namespace, barrier := range r.barriers {
		if !barrier.reported && time.Since(barrier.since) >= r.stuck {
			barrier.reported = true
			late = append(late, namespace)
		}
	}
	r.mu.Unlock()
	r.troubles.tell(late...)
}

// isReported says whether it was reported that namespace waits for removals.
func (r *removals) isReported(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	barrier := r.barriers[namespace]
	return barrier != nil && barrier.reported
}

// namespaces returns the names of the namespaces that wait for removals.
func (r *removals) namespaces() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for namespace := range r.barriers {
		all = append(all, namespace)
	}
	return all
}

// waitsForRemoval says whether an action is held back because copies must go before.
func waitsForRemoval(action propagate.Action) bool {
	return action.Reason == v1alpha1.ReasonWaitingForRemoval
}
