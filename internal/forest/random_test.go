package forest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warren-tenancy/warren/internal/forest"
)

// script turns the bytes of a fuzzer into changes of a small forest, in which collisions are frequent.
type script struct {
	bytes   []byte
	tenants bool // also changes LNamespaces and HierarchyConfigurations, and labels as the operator writes them for a tenant
}

var pool = []string{"a", "b", "c", "d", "e", "f", "t", "u", "kube-k"}

func (s *script) done() bool { return len(s.bytes) == 0 }

// pick returns a number below n; 0 when no bytes are left.
func (s *script) pick(n int) int {
	if s.done() {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return int(b) % n
}

func pickOf[T any](s *script, from ...T) T { return from[s.pick(len(from))] }

// change applies one change, and returns the name of the changed namespace.
func (s *script) change(f *forest.Snapshot) (*forest.Snapshot, string) {
	name := pickOf(s, pool...)
	kinds := 10
	if s.tenants {
		kinds = 15
	}
	switch s.pick(kinds) {
	case 0:
		return f.WithoutNamespace(name), name
	case 1:
		parent := pickOf(s, pool...)
		return f.WithSub(&forest.Sub{Parent: parent, Name: name, Labels: s.keys("team", "app", "foo"), Annotations: s.keys("memo", "note")}), name
	case 2:
		return f.WithoutSub(pickOf(s, pool...), name), name
	case 3, 4, 5:
		return f.WithNamespace(s.edited(f, name)), name
	case 10:
		return f.WithoutTenant(name), name
	case 11:
		return f.WithTenant(&forest.Tenant{Name: name, UID: "uid-" + name, Template: pickOf(s, "", "t", "gone"), AllowCascading: s.pick(2) == 0,
			Deleting: s.pick(6) == 5}), name
	case 12:
		return f.WithoutHierarchy(name), name
	case 13, 14:
		return f.WithHierarchy(s.hierarchy(name)), name
	}
	return f.WithNamespace(s.namespace(name)), name
}

// hierarchy returns a random HierarchyConfiguration of a namespace.
func (s *script) hierarchy(name string) *forest.Hierarchy {
	h := &forest.Hierarchy{Namespace: name, UID: fmt.Sprint("hierarchy-", s.pick(2)), AllowCascading: s.pick(3) == 0}
	if s.pick(3) > 0 {
		parent := pickOf(s, append([]string{"", "gone"}, pool...)...)
		h.Parent = &parent
	}
	for _, child := range pool[:4] {
		if s.pick(8) == 7 {
			h.Required = append(h.Required, child)
		}
	}
	for side, keys := range [2][]string{{"team", "app", "foo"}, {"memo", "note"}} {
		for _, key := range keys {
			switch s.pick(6) {
			case 4:
				h.Propagated[side] = append(h.Propagated[side], key)
			case 5:
				h.Overridden[side] = append(h.Overridden[side], key)
			}
		}
	}
	return h
}

// namespace returns a new namespace, as a user or a restored backup creates it.
func (s *script) namespace(name string) *forest.Namespace {
	n := namespace(name)
	n.UID = fmt.Sprint("uid-", name, s.pick(2))
	parents, kind := append(slices.Clone(pool), "gone", "Bad_Name"), s.pick(12)
	if name == "t" || name == "u" {
		kind = 3 - s.pick(2)
	}
	switch kind {
	case 0:
		below(pickOf(s, parents...))(n)
		root(n)
	case 1, 2:
		root(n)
	case 3:
		template(n)
	case 4:
		typed("rooot")(n)
	case 5:
	default:
		below(pickOf(s, parents...))(n)
	}
	if s.pick(3) == 0 {
		references(pickOf(s, "t", "u", "c", "gone", "Bad_Name"))(n)
	}
	for _, t := range []trait{bound, protected, terminating, inherited("team"), inherited("@memo,env"), placed("gone/" + name),
		annotation("tenancy.warren.dev/lnamespace-uid", "uid-"+name)} {
		if s.pick(5) == 4 {
			t(n)
		}
	}
	maps.Copy(n.Labels, s.keys("team", "env", "app", "memo", "tier"))
	maps.Copy(n.Annotations, s.keys("memo", "note"))
	return n
}

// edited returns the namespace with one of its keys changed or removed.
func (s *script) edited(f *forest.Snapshot, name string) *forest.Namespace {
	old := f.Namespace(name)
	if old == nil {
		return s.namespace(name)
	}
	n := written(old, forest.Change{})
	if s.pick(6) == 0 {
		n.Terminating = !n.Terminating
		return n
	}
	keys, key := n.Labels, pickOf(s, "team", "env", "app", "tenancy.warren.dev/parent", "tenancy.warren.dev/type",
		"tenancy.warren.dev/template", "tenancy.warren.dev/bound")
	if s.pick(4) == 0 {
		keys, key = n.Annotations, pickOf(s, "memo", "note", "tenancy.warren.dev/inherited", "tenancy.warren.dev/cascading")
	}
	if s.pick(3) == 0 {
		delete(keys, key)
	} else {
		keys[key] = pickOf(s, append([]string{"root", "template", "true", "x", "y", "team,@memo"}, pool...)...)
	}
	return n
}

func (s *script) keys(names ...string) keys {
	result := keys{}
	for _, name := range names {
		if value := s.pick(9); value < 3 {
			result[name] = fmt.Sprint("v", value)
		}
	}
	return result
}

// answers returns, as text, everything that can be read from a snapshot.
func answers(s *forest.Snapshot) string {
	var b strings.Builder
	for _, name := range append(slices.Clone(pool), "gone", "Bad_Name") {
		sources, ok := s.Sources(name)
		count, going := s.Descendants(name)
		_, _ = fmt.Fprintln(&b, name, s.Place(name), sources.Names, sources.Unknown, ok, patchOf(forest.DesiredChange(s, name)),
			s.Children(name), s.Instances(name),
			forest.BoundChildren(s, name), slices.Sorted(s.Below(name)), count, going, forest.CascadingAllowed(s, name), forest.RefusedKeys(s, name),
			s.SelectableLabels(name), forest.RequestOf(s, name))
		for _, sub := range append(s.Subs(name), s.SubsNamed(name)...) {
			_, _ = fmt.Fprintln(&b, *sub)
		}
	}
	_, _ = fmt.Fprintln(&b, s.Len(), slices.Sorted(s.All()))
	return b.String()
}
