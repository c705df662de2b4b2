// Package live follows the forest through the caller's watches, and tells pages which rows have changed.
package live

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/graph"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/restrict"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// caches hold what the four cluster-wide watches show. mu guards view, subs, tenants and the sinks' status.
type caches struct {
	mu      sync.Mutex
	view    graph.Facts
	subs    map[types.NamespacedName]*v1alpha1.SubNamespace
	tenants map[string]*v1alpha1.LNamespace
	sinks   []*sink
	changed func()
}

// newCaches makes empty caches. changed is called after each change, with a lock held: it must be quick.
func newCaches(changed func()) *caches {
	c := &caches{changed: changed}
	c.view.View = gather.EmptyView()
	c.subs, c.tenants = map[types.NamespacedName]*v1alpha1.SubNamespace{}, map[string]*v1alpha1.LNamespace{}
	c.sinks = []*sink{
		{caches: c, what: "namespaces", put: c.putNamespace, gone: c.dropNamespace, clear: func() { c.view.View.Forest = gather.EmptyView().Forest }},
		{caches: c, what: "HierarchyConfigurations", put: c.putHierarchy, gone: c.dropHierarchy, clear: func() { clear(c.view.View.Conditions) }},
		{caches: c, what: "SubNamespaces", put: c.putSub, gone: c.dropSub, clear: func() { clear(c.subs) }},
		{caches: c, what: "LNamespaces", put: c.putTenant, gone: c.dropTenant, clear: func() { clear(c.tenants) }},
	}
	return c
}

func (c *caches) putNamespace(object client.Object) {
	restrict.DropAnnotations(object)
	c.view.View.Forest = c.view.View.Forest.WithNamespace(forest.NamespaceOf(object))
}

func (c *caches) dropNamespace(object client.Object) {
	c.view.View.Forest = c.view.View.Forest.WithoutNamespace(object.GetName())
}

func (c *caches) putHierarchy(object client.Object) {
	if hierarchy, ok := object.(*v1alpha1.HierarchyConfiguration); ok {
		c.view.View.Conditions[hierarchy.Namespace] = hierarchy.Status.Conditions
	}
}

func (c *caches) dropHierarchy(object client.Object) {
	delete(c.view.View.Conditions, object.GetNamespace())
}

func (c *caches) putSub(object client.Object) {
	if sub, ok := object.(*v1alpha1.SubNamespace); ok {
		sub.Annotations, sub.ManagedFields = nil, nil
		c.subs[client.ObjectKeyFromObject(sub)] = sub
	}
}

func (c *caches) dropSub(object client.Object) { delete(c.subs, client.ObjectKeyFromObject(object)) }

func (c *caches) putTenant(object client.Object) {
	if tenant, ok := object.(*v1alpha1.LNamespace); ok {
		tenant.Annotations, tenant.ManagedFields = nil, nil
		c.tenants[tenant.Name] = tenant
	}
}

func (c *caches) dropTenant(object client.Object) { delete(c.tenants, object.GetName()) }

// copyFacts returns a copy of what is known, and since when the watches have been broken, if they are.
func (c *caches) copyFacts() (graph.Facts, Trouble) {
	c.mu.Lock()
	defer c.mu.Unlock()
	facts := graph.Facts{View: c.view.View, Tenants: slices.Collect(maps.Values(c.tenants))}
	facts.View.Conditions = maps.Clone(c.view.View.Conditions)
	facts.View.Subs = slices.SortedFunc(maps.Values(c.subs), func(a, b *v1alpha1.SubNamespace) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var trouble Trouble
	for _, s := range c.sinks {
		if sentence := s.describeUnread(); sentence != "" {
			facts.Unread = append(facts.Unread, sentence)
		}
		trouble = trouble.firstTrouble(troubleOf(s.status))
	}
	return facts, trouble
}

// findState returns the state of the watch of Namespaces, which decides whether the caller sees all trees.
func (c *caches) findState() watchset.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sinks[0].status
}

// isSettled reports whether each of the four watches is synced, or has reported why it is not.
func (c *caches) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.sinks, func(s *sink) bool {
		return s.status.State == "" || s.status.State == watchset.Pending || s.status.State == watchset.Syncing
	})
}

// Trouble reports that the API server does not answer; the zero value reports that it does.
type Trouble struct {
	Sentence string
	Since    time.Time
}

func (t Trouble) firstTrouble(other Trouble) Trouble {
	if t.Sentence != "" {
		return t
	}
	return other
}

func troubleOf(status watchset.Status) Trouble {
	if status.State != watchset.Degraded {
		return Trouble{}
	}
	trouble := Trouble{Sentence: "the API server does not answer", Since: status.Since}
	degraded := &watchset.DegradedError{}
	if errors.As(status.Err, &degraded) {
		switch {
		case apierrors.IsUnauthorized(degraded.Cause):
			trouble.Sentence = "the API server does not know you any more (401 Unauthorized): log in again; if this page does not go on then, run kubectl warren ui anew"
		case degraded.Cause != nil:
			trouble.Sentence = failure.Describe(degraded.Cause)
		}
		if !degraded.LastSync.IsZero() {
			trouble.Since = degraded.LastSync
		}
	}
	return trouble
}

// sink takes the objects of one kind into the caches.
type sink struct {
	caches    *caches
	what      string
	put, gone func(client.Object)
	clear     func()
	status    watchset.Status
	read      bool // put and gone have added to a whole list
}

// describeUnread explains why the kind is not shown; "" where it is.
func (s *sink) describeUnread() string {
	switch s.status.State {
	case watchset.Forbidden:
		return "you may not list " + s.what
	case watchset.NotServed:
		return "the API server has no " + s.what
	case watchset.Pending, watchset.Syncing, "":
		return s.what + " are not read yet"
	case watchset.Degraded:
		if !s.read {
			return s.what + " are not read yet"
		}
	}
	return ""
}

func (s *sink) applyChange(change func()) {
	s.caches.mu.Lock()
	defer s.caches.mu.Unlock()
	change()
	s.caches.changed()
}

// Replace implements watchset.Sink.
func (s *sink) Replace(_, _ string, all []client.Object) {
	s.applyChange(func() {
		s.read = true
		s.clear()
		for _, object := range all {
			s.put(object)
		}
	})
}

// Put implements watchset.Sink.
func (s *sink) Put(object client.Object) { s.applyChange(func() { s.put(object) }) }

// Gone implements watchset.Sink.
func (s *sink) Gone(object client.Object) { s.applyChange(func() { s.gone(object) }) }

// State implements watchset.Sink.
func (s *sink) State(_ string, now watchset.Status) {
	s.applyChange(func() {
		s.status = now
		if now.State == watchset.Forbidden || now.State == watchset.NotServed || now.State == watchset.Pending {
			s.read = false
			s.clear() // what was known no longer counts
		}
	})
}
