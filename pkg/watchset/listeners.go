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

func (n *listeners) addEventFeed(f *feed) {
	for _, key := range f.feedKeys() {
		n.feeds[key] = append(n.feeds[key], f)
	}
}

func (n *listeners) dropEventFeed(f *feed) {
	for _, key := range f.feedKeys() {
		n.feeds[key] = slices.DeleteFunc(n.feeds[key], func(other *feed) bool { return other == f })
	}
}

// feedKeys returns the keys by which a part may find the feed: with the version of the resource, and without it (see
// feedResource).
func (f *feed) feedKeys() []feedKey {
	return slices.Compact([]feedKey{f.feedKey, {f.controller, f.resource.GroupResource().WithVersion("")}})
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
