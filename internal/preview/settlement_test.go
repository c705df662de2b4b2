package preview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// cluster builds the facts of a case.
type cluster struct{ facts }

func newCluster() *cluster {
	return &cluster{facts{forest: forest.New(forest.Rules{}), finalized: map[string]bool{}}}
}

// namespace adds a namespace with these labels, in pairs, that has all its keys.
func (c *cluster) namespace(name string, labels ...string) *cluster {
	n := &forest.Namespace{Name: name, UID: "uid-" + name, Labels: map[string]string{}, Annotations: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	c.forest = c.forest.WithNamespace(n)
	c.forest = c.forest.WithNamespace(n.With(c.forest.Desired(name)))
	return c
}

func (c *cluster) root(name string) *cluster {
	return c.namespace(name, v1alpha1.LabelType, v1alpha1.TypeRoot)
}

func (c *cluster) below(parent, name string) *cluster {
	return c.namespace(name, v1alpha1.LabelParent, parent)
}

// grown adds a SubNamespace and its namespace.
func (c *cluster) grown(parent, name string) *cluster {
	c.forest = c.forest.WithSub(&forest.Sub{Parent: parent, Name: name, UID: parent + "/" + name})
	c.finalized[parent+"/"+name] = true
	return c.namespace(name, v1alpha1.LabelParent, parent, v1alpha1.LabelBound, v1alpha1.True)
}

// deleted marks the SubNamespace as being deleted.
func (c *cluster) deleted(parent, name string) *cluster {
	sub := *c.forest.Sub(parent, name)
	sub.Deleting = true
	c.forest = c.forest.WithSub(&sub)
	return c
}

func (c *cluster) terminating(name string) *cluster {
	n := c.forest.Namespace(name).With(forest.Change{})
	n.Terminating = true
	c.forest = c.forest.WithNamespace(n)
	return c
}

// asks adds a HierarchyConfiguration, whose request means the parent that stands there.
func (c *cluster) asks(h forest.Hierarchy) *cluster {
	h.UID = "asks-" + h.Namespace
	c.forest = c.forest.WithHierarchy(&h).WithRequestDated(h.Namespace, time.Time{}, nil)
	if n := c.forest.Namespace(h.Namespace); h.Parent == nil {
		c.forest = c.forest.WithNamespace(n.With(c.forest.Desired(n.Name)))
	}
	return c
}

// deletedTenant adds an LNamespace that is being deleted, and owns the namespace of its name where there is one.
func (c *cluster) deletedTenant(name string, finalizers ...string) *cluster {
	l := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "tenant", Finalizers: finalizers, DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
	c.tenants = append(c.tenants, l)
	c.forest = c.forest.WithTenant(forest.TenantOf(l))
	if n := c.forest.Namespace(name); n != nil {
		mark := "tenant"
		c.forest = c.forest.WithNamespace(n.With(forest.Change{Annotations: map[string]*string{v1alpha1.AnnotationLNamespaceUID: &mark}}))
	}
	return c
}

func TestSettlement(t *testing.T) {
	to := func(parent string) *string { return &parent }
	const ours = v1alpha1.FinalizerLNamespace
	cases := map[string]struct {
		of    *cluster
		want  []string
		notes []string
	}{
		"at rest": {of: newCluster().root("r").grown("r", "a").below("a", "b")},
		"a move takes those below along": {
			of:   newCluster().root("r").root("s").below("r", "a").below("a", "b").asks(forest.Hierarchy{Namespace: "a", Parent: to("s")}),
			want: []string{"update Namespace a", "update Namespace b"},
		},
		"a required child follows the move that makes it lawful": {
			of:   newCluster().root("r").namespace("a").asks(forest.Hierarchy{Namespace: "a", Parent: to("r"), Required: []string{"k", "l"}}),
			want: []string{"create SubNamespace a/k", "create SubNamespace a/l", "create Namespace k", "create Namespace l", "update Namespace a"},
		},
		"moves that exclude each other": {
			of: newCluster().root("r").below("r", "a").below("r", "b").
				asks(forest.Hierarchy{Namespace: "a", Parent: to("b")}).asks(forest.Hierarchy{Namespace: "b", Parent: to("a")}),
			want:  []string{"update Namespace a"},
			notes: []string{"namespace b: its HierarchyConfiguration and another one ask for places that exclude each other (would make a cycle: b -> a -> b); the operator grants the one that it sees first"},
		},
		"a SubNamespace goes, and its namespace with what is below": {
			of: newCluster().root("r").asks(forest.Hierarchy{Namespace: "r", AllowCascading: true}).
				grown("r", "a").grown("a", "b").grown("b", "c").deleted("r", "a"),
			want: []string{"update Namespace a", "delete Namespace a", "update Namespace b", "delete Namespace b", "delete Namespace c"},
		},
		"a SubNamespace goes, and its namespace is held by what is below": {
			of: newCluster().root("r").grown("r", "a").grown("a", "b").deleted("r", "a"),
		},
		"both go, the upper one only if the lower one goes first": {
			of:    newCluster().root("r").grown("r", "a").grown("a", "b").deleted("r", "a").deleted("a", "b"),
			want:  []string{"delete Namespace b", "delete Namespace a"},
			notes: []string{"namespace a: it is deleted with SubNamespace r/a if the operator looks at those below it first, and stays otherwise"},
		},
		"finalizers of others": {
			of: func() *cluster {
				c := newCluster().root("r").grown("r", "a").deleted("r", "a").deletedTenant("r", "example.com/hold")
				clear(c.finalized)
				return c
			}(),
			notes: []string{
				"LNamespace r: it is being deleted, and finalizers of others hold it; what comes when it is gone is not in this plan",
				"SubNamespace r/a: it is being deleted, and finalizers of others hold it; what comes when it is gone is not in this plan"},
		},
		"a namespace is being terminated, and releases what it may not take along": {
			of: newCluster().root("r").below("r", "a").grown("a", "b").terminating("a"),
		},
		"a required child goes and comes again": {
			of:    newCluster().root("r").asks(forest.Hierarchy{Namespace: "r", Required: []string{"a"}}).grown("r", "a").deleted("r", "a"),
			want:  []string{"delete Namespace a"},
			notes: []string{"required child a of namespace r: its SubNamespace is made when the namespace that is being terminated is gone"},
		},
		"a name is being freed": {
			of:    newCluster().root("r").grown("r", "a").terminating("a"),
			notes: []string{"namespace a: it is made anew for SubNamespace r/a when the one that is being terminated is gone"},
		},
		"an LNamespace goes":              {of: newCluster().root("r").deletedTenant("r", ours), want: []string{"delete Namespace r"}},
		"an LNamespace goes, and is held": {of: newCluster().root("r").deletedTenant("r", ours).grown("r", "a"), want: []string{"held Namespace r"}},
		"an LNamespace goes that may take along what is below, and its root doesn't say so yet": {
			of: func() *cluster {
				c := newCluster().root("r").deletedTenant("r", ours).grown("r", "a")
				tenant := *c.forest.Tenant("r")
				tenant.AllowCascading = true
				c.forest = c.forest.WithTenant(&tenant)
				return c
			}(),
			want:  []string{"update Namespace r", "delete Namespace r", "delete Namespace a"},
			notes: []string{"LNamespace r: which copies of its RoleBindings the operator deletes below it, before Kubernetes deletes them with their namespaces, can't be known"},
		},
		"a request for a place below a namespace that goes": {
			of:    newCluster().root("r").root("s").grown("r", "a").deleted("r", "a").below("s", "b").asks(forest.Hierarchy{Namespace: "b", Parent: to("a")}),
			want:  []string{"delete Namespace a"},
			notes: []string{"namespace b: the place that its HierarchyConfiguration asks for can be given now, and not after other writes of this plan (parent namespace a is being terminated); which comes first can't be known"},
		},
		"an LNamespace goes that has no namespace": {of: newCluster().namespace("r").deletedTenant("q", ours)},
	}
	for name, tc := range cases {
		t.Run("PROP-M6 "+name, func(t *testing.T) {
			plan := func(of facts) *settlement {
				p := newSettlement(&of, config.Default(), "warren-system")
				p.settle(nil)
				return p
			}
			p := plan(tc.of.facts)
			if diff := cmp.Diff(tc.want, told(p.writes)); diff != "" {
				t.Errorf("writes: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, p.notes); diff != "" {
				t.Errorf("notes: -want, +got:\n%s", diff)
			}
			after := tc.of.facts
			after.forest = p.f
			if again := plan(after); len(again.writes) != len(p.held) {
				t.Errorf("planned again after the writes: %v", told(again.writes))
			}
		})
	}
}

func told(writes []Write) []string {
	var all []string
	for _, w := range writes {
		name := w.Name
		if w.Namespace != "" {
			name = w.Namespace + "/" + name
		}
		all = append(all, string(w.Verb)+" "+w.Kind+" "+name)
	}
	return all
}
