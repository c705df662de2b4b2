package watchset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// listeners get what a Set reports: feeds of Sources get events, queues of States get owners. The Set's lock guards it.
type listeners struct {
	feeds  map[feedKey][]*feed
	states map[string][]*stateQueue // by controller
}

func newListeners() listeners {
	return listeners{feeds: map[feedKey][]*feed{}, states: map[string][]*stateQueue{}}
}

func (n *listeners) addEventFeed(f *feed) { n.feeds[f.feedKey] = append(n.feeds[f.feedKey], f) }

func (n *listeners) dropEventFeed(f *feed) {
	n.feeds[f.feedKey] = slices.DeleteFunc(n.feeds[f.feedKey], func(other *feed) bool { return other == f })
}

// stopAllFeeds makes all feeds end once their queues are empty.
func (n *listeners) stopAllFeeds() {
	for _, feeds := range n.feeds {
		for _, f := range feeds {
			f.work.ShutDown()
		}
	}
}

func (n *listeners) addStateQueue(controller string, q *stateQueue) {
	n.states[controller] = append(n.states[controller], q)
}

func (n *listeners) dropStateQueue(controller string, q *stateQueue) {
	n.states[controller] = slices.DeleteFunc(n.states[controller], func(other *stateQueue) bool { return other == q })
}

// enqueueOwnerLater enqueues an owner in the queues of its controller's States once the lock is free.
func (n *listeners) enqueueOwnerLater(owner Owner, lock *setLock) {
	for _, q := range n.states[owner.Controller] {
		lock.callAfterUnlock(func() { q.Add(reconcile.Request{NamespacedName: owner.NamespacedName}) })
	}
}
