package propagation

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// narrowFeed enters what the watches of a narrow kind see in the tables: the watches of the followed namespaces or, in scope Auto, the watch
// of the whole cluster while that is allowed. It implements watchset.Sink.
type narrowFeed struct {
	*feed
	followed *followed
	troubles *troubles

	mu sync.Mutex // guards all below; nothing else is called while it is held but followed.all
	// states are by namespace. In scope Auto, propagate.Everywhere has the state of the watch of the whole cluster. A namespace that is kept
	// as Pending is one for which informers.maxInformers or informers.maxNamespaces leaves no room.
	states   map[string]watchset.Status
	complete bool // every namespace that is to be watched has had a state
}

// watchNarrow watches a narrow kind until ctx is done.
func (k *kinds) watchNarrow(ctx context.Context, resource schema.GroupVersionResource, f *narrowFeed) {
	selector, err := labels.Parse(selectors[f.role])
	if err != nil {
		panic(err) // the selectors are constants
	}
	scope := watchset.Namespaces(k.followed.set)
	if f.isAuto() {
		scope = watchset.Auto(k.followed.set)
	}
	lease, err := k.set.Acquire(watchset.Static("propagation"), watchset.Request{
		Resource: resource, Scope: scope, LabelSelector: selector, Sink: f,
	})
	if err != nil {
		ctrl.Log.WithName("propagation").Error(err, "watching a kind as far as the rights go", "kind", f.kind.GroupKind().String())
		return // the set has stopped, as the process does
	}
	f.settle() // there may be no namespace to wait for
	<-ctx.Done()
	lease.Release()
}

// Replace implements watchset.Sink, and so do the next three.
func (f *narrowFeed) Replace(namespace, resourceVersion string, all []client.Object) {
	objects := make([]*metav1.PartialObjectMetadata, 0, len(all))
	for _, object := range all {
		objects = append(objects, object.(*metav1.PartialObjectMetadata))
	}
	f.follow(f.tables.replaceObjectsIn(f.origin, namespace, resourceVersion, objects))
}

func (f *narrowFeed) Put(object client.Object)  { f.feed.Put(object.(*metav1.PartialObjectMetadata)) }
func (f *narrowFeed) Gone(object client.Object) { f.feed.Gone(object.(*metav1.PartialObjectMetadata)) }

func (f *narrowFeed) State(namespace string, now watchset.Status) {
	wasWide := f.isWide()
	changed := f.note(namespace, now)
	switch {
	case now.State == watchset.NotServed:
		f.kinds.setWatch(f.run, f.role, kindPending)
		f.vanished()
		return
	case now.State == watchset.Pending && now.Err == nil && namespace != propagate.Everywhere && wasWide:
		f.queue.Add(f.tables.setSight(f.origin, namespace, propagate.Awaited)...)
		return // the watch of the whole cluster shows what this watch has brought
	case now.State == watchset.Pending && now.Err == nil && namespace != propagate.Everywhere:
		f.follow(f.tables.forgetNamespace(f.origin, namespace))
	default:
		f.queue.Add(f.tables.setSight(f.origin, namespace, sightIn(now))...)
	}
	if wasWide && !f.isWide() {
		f.followed.noteChange()
	}
	if changed && namespace == propagate.Everywhere && now.State == watchset.Forbidden { // one that is degraded brings nothing again
		f.tables.forgetElsewhere(f.origin, f.followed.isWanted())
	}
	if now.State == watchset.Synced {
		f.followed.noteSeen()
	}
	f.settle()
	if changed {
		f.tell(namespace)
	}
}

func (f *narrowFeed) isAuto() bool { return f.kind.Scope == Auto }

// isSynced says whether all objects in namespace are known.
func (f *narrowFeed) isSynced(namespace string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[propagate.Everywhere].State == watchset.Synced || f.states[namespace].State == watchset.Synced
}

// isWide says whether the watch of the whole cluster is synced.
func (f *narrowFeed) isWide() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states[propagate.Everywhere].State == watchset.Synced
}

// sightIn translates the state of an informer into the sight of its namespace.
func sightIn(now watchset.Status) propagate.Sight {
	switch now.State {
	case watchset.Synced:
		return propagate.Seen
	case watchset.Syncing:
		return propagate.Awaited
	}
	return propagate.Unseen
}

// note keeps the state of a namespace, and says whether there is something new to report. Syncing is not kept: the state before the new try
// counts until the try has ended.
func (f *narrowFeed) note(namespace string, now watchset.Status) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known := f.states[namespace]
	switch {
	case now.State == watchset.Syncing:
		return false
	case now.State == watchset.Pending && now.Err == nil:
		delete(f.states, namespace)
		return known && was.State != watchset.Synced
	case now.State == watchset.NotServed:
		f.complete = true // this watch ends: a state that comes later must not make it active
	}
	f.states[namespace] = now
	return known && was.State != now.State || !known && now.State != watchset.Synced || !slices.Equal(was.Missing, now.Missing)
}

// settle makes the watch active once every namespace that is to be watched has a state. Forbidden is a state, too: readiness depends on no
// right.
func (f *narrowFeed) settle() {
	if f.completes() {
		f.queue.Add(f.kinds.setWatch(f.run, f.role, kindActive)...)
	}
}

func (f *narrowFeed) completes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.complete {
		return false
	}
	wide, told := f.states[propagate.Everywhere]
	switch {
	case f.isAuto() && !told:
		return false
	case f.isAuto() && wide.State != watchset.Forbidden: // the watch of the whole cluster stands for all namespaces
		f.complete = true
		return true
	}
	for namespace := range f.followed.all {
		if _, told := f.states[namespace]; !told {
			return false
		}
	}
	f.complete = true
	return true
}

// tell has the namespaces reported anew whose copies depend on the sight of namespace, which may be propagate.Everywhere.
func (f *narrowFeed) tell(namespace string) {
	if namespace == propagate.Everywhere {
		f.troubles.tellEverywhere()
		return
	}
	f.troubles.tellAround(namespace)
}

// unseen returns why the operator can see nothing in namespace; the zero Status where the operator sees the objects there, or is about to
// list them.
func (f *narrowFeed) unseen(namespace string) watchset.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, looked := f.states[namespace]
	wide := f.states[propagate.Everywhere]
	switch {
	case wide.State == watchset.Synced, now.State == watchset.Synced:
		return watchset.Status{}
	case !looked && wide.State != watchset.Forbidden: // where the watch of the whole cluster is forbidden, each namespace has its own
		return wide
	}
	return now
}
