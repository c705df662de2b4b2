package propagation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// narrowFeed takes what the watches of a kind see that is watched namespace by namespace. It implements watchset.Sink.
type narrowFeed struct {
	*feed
	followed *followed
	troubles *troubles

	mu       sync.Mutex                 // guards all below; nothing else is called while it is held
	states   map[string]watchset.Status // by namespace, of those that have one; Pending is one that there is no room for
	complete bool                       // every namespace had a state once
}

// observeNarrow watches a kind in the namespaces that are followed, until ctx is done.
func (k *kinds) observeNarrow(ctx context.Context, resource schema.GroupVersionResource, f *narrowFeed) {
	selector, err := labels.Parse(selectors[f.role])
	if err != nil {
		panic(err) // they are constants
	}
	lease, err := k.set.Acquire(watchset.Static("propagation"), watchset.Request{
		Resource: resource, Scope: watchset.Namespaces(k.followed.set), LabelSelector: selector, Sink: f,
	})
	if err != nil {
		ctrl.Log.WithName("propagation").Error(err, "watching a kind in its namespaces", "kind", f.kind.GroupKind().String())
		return // the set has stopped, as the process does
	}
	f.settle() // there may be no namespace to wait for
	<-ctx.Done()
	lease.Release()
}

// Replace implements watchset.Sink, and so do the next three.
func (f *narrowFeed) Replace(namespace string, all []client.Object) {
	objects := make([]*metav1.PartialObjectMetadata, 0, len(all))
	for _, object := range all {
		objects = append(objects, object.(*metav1.PartialObjectMetadata))
	}
	f.follow(f.tables.replaceObjectsIn(f.origin, namespace, objects))
}

func (f *narrowFeed) Put(object client.Object)  { f.feed.Put(object.(*metav1.PartialObjectMetadata)) }
func (f *narrowFeed) Gone(object client.Object) { f.feed.Gone(object.(*metav1.PartialObjectMetadata)) }

func (f *narrowFeed) State(namespace string, now watchset.Status) {
	changed := f.note(namespace, now)
	switch {
	case now.State == watchset.NotServed:
		f.kinds.setWatch(f.run, f.role, kindPending)
		f.vanished()
		return
	case now.State == watchset.Pending && now.Err == nil:
		f.follow(f.tables.forgetNamespace(f.origin, namespace))
	default:
		f.queue.Add(f.tables.setSight(f.origin, namespace, sightIn(now))...)
	}
	f.settle()
	if changed {
		f.tell(namespace)
	}
}

// sightIn is what can be seen where an informer is so far.
func sightIn(now watchset.Status) propagate.Sight {
	switch now.State {
	case watchset.Synced:
		return propagate.Seen
	case watchset.Syncing:
		return propagate.Awaited
	}
	return propagate.Unseen
}

// note keeps the state of a namespace, and says whether there is something new to report. What is tried again is as it was.
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
		f.complete = true // this watch ends: what is told later makes it active no more
	}
	f.states[namespace] = now
	return known && was.State != now.State || !known && now.State != watchset.Synced || !slices.Equal(was.Missing, now.Missing)
}

// settle makes the watch active once every namespace that is followed has a state, whatever it is: readiness depends on no right.
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
	for namespace := range f.followed.all {
		if _, told := f.states[namespace]; !told {
			return false
		}
	}
	f.complete = true
	return true
}

// tell has the namespaces reported anew whose copies depend on what is seen of a namespace.
func (f *narrowFeed) tell(namespace string) { f.troubles.tellAround(namespace) }

// unseen is why nothing is seen in namespace; the zero Status where it is seen, or about to be.
func (f *narrowFeed) unseen(namespace string) watchset.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.states[namespace]; now.State != watchset.Synced {
		return now
	}
	return watchset.Status{}
}

// unseenIn are the states of all namespaces in which nothing is seen.
func (f *narrowFeed) unseenIn() map[string]watchset.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]watchset.State{}
	for namespace, now := range f.states {
		if now.State != watchset.Synced {
			all[namespace] = now.State
		}
	}
	return all
}

// describeUnseen says why a watch shows nothing, in a few words.
func describeUnseen(now watchset.Status) string {
	switch {
	case now.State == watchset.Forbidden:
		return "forbidden, missing " + strings.Join(now.Missing, ", ")
	case errors.Is(now.Err, watchset.ErrLimit):
		return "not watched, for informers.maxInformers or informers.maxNamespaces is reached"
	case now.Err != nil:
		return text.Cut(now.Err.Error(), mostFailure)
	}
	return strings.ToLower(string(now.State))
}

// describeUnseen is a sentence for each kind that is watched namespace by namespace, and of which nothing is seen in namespace, or no
// source in one of those above it. They are in alphabetical order.
func (k *kinds) describeUnseen(namespace string, above []string) []string {
	found := map[string]bool{}
	for resource, feeds := range k.narrowFeeds() {
		for _, f := range feeds {
			if now := f.unseen(namespace); now.State != "" {
				found[fmt.Sprintf("%s: %s", resource, describeUnseen(now))] = true
			}
			for _, from := range above {
				if now := f.unseen(from); now.State != "" && f.bringsSources() {
					found[fmt.Sprintf("%s in namespace %s: %s", resource, from, describeUnseen(now))] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// countUnseen counts the namespaces in which nothing of a kind is seen, by state.
func (k *kinds) countUnseen(run *kindRun) map[watchset.State]int {
	namespaces := map[string]watchset.State{}
	for _, f := range k.feedsOf(run) {
		maps.Copy(namespaces, f.unseenIn())
	}
	counts := map[watchset.State]int{}
	for _, state := range namespaces {
		counts[state]++
	}
	return counts
}

// narrowFeeds are those that are watched now, by resource.
func (k *kinds) narrowFeeds() map[schema.GroupResource][]*narrowFeed {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[schema.GroupResource][]*narrowFeed{}
	for _, run := range k.runs {
		if len(run.narrow) > 0 {
			all[run.mapping.Resource.GroupResource()] = run.narrow
		}
	}
	return all
}

func (k *kinds) feedsOf(run *kindRun) []*narrowFeed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return run.narrow
}
