package forest_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// seed adds scripts to a fuzz target: the same ones on each run, and so many that a test run without fuzzing tests the property, too.
func seed(f *testing.F, scripts int) {
	random := rand.New(rand.NewPCG(1, 2))
	for range scripts {
		bytes := make([]byte, 200+random.IntN(400))
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		f.Add(bytes)
	}
}

// A snapshot depends neither on the order in which its facts came, nor on facts that were replaced. No later change alters it.
func FuzzSnapshot(f *testing.F) {
	seed(f, 60)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		s, script := forest.New(rules()), &script{bytes: bytes, tenants: true}
		var snapshots []*forest.Snapshot
		var said []string
		for !script.done() {
			s, _ = script.change(s)
			snapshots, said = append(snapshots, s), append(said, answers(s))
			requireRuled(t, s)
		}
		for i, snapshot := range snapshots {
			if diff := cmp.Diff(said[i], answers(snapshot)); diff != "" {
				t.Fatalf("snapshot %d of %d says something else now: -then, +now:\n%s", i, len(snapshots), diff)
			}
		}
		fresh := forest.New(rules())
		for _, name := range slices.Backward(append(slices.Clone(pool), "gone")) {
			for _, sub := range s.SubsNamed(name) {
				fresh = fresh.WithSub(sub)
			}
			if n := s.Namespace(name); n != nil {
				fresh = fresh.WithNamespace(n)
			}
			if tenant := s.Tenant(name); tenant != nil {
				fresh = fresh.WithTenant(tenant)
			}
			if h := s.Hierarchy(name); h != nil {
				fresh = fresh.WithHierarchy(h)
			}
		}
		if diff := cmp.Diff(answers(fresh), answers(s)); diff != "" {
			t.Fatalf("-built from scratch, +grown by changes:\n%s", diff)
		}
	})
}

// requireRuled compares the places and relatives of all namespaces with those that ruled computes independently.
func requireRuled(t *testing.T, s *forest.Snapshot) {
	t.Helper()
	second := ruled{s}
	for name := range s.All() {
		count, terminating := s.Descendants(name)
		said := []any{s.Place(name).Path, s.Children(name), s.Instances(name), forest.BoundChildren(s, name), count, terminating}
		children, instances := second.with(v1alpha1.LabelParent, name), second.with(v1alpha1.LabelTemplate, name)
		bound := slices.DeleteFunc(slices.Clone(children), func(child string) bool {
			n := s.Namespace(child)
			return n.Terminating || n.Labels[v1alpha1.LabelBound] != "true"
		})
		below := second.below(name)
		ending := slices.DeleteFunc(slices.Clone(below), func(name string) bool { return !s.Namespace(name).Terminating })
		want := []any{second.path(name), children, instances, bound, len(below), len(ending)}
		if diff := cmp.Diff(want, said, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: -second opinion on path, children, instances, bound children, descendants, terminating ones; +snapshot:\n%s", name, diff)
		}
	}
}

// AffectedNamespaces names every namespace that differs after a change. A write of the operator affects only the written namespace, unless
// it changes its type, parent or template.
func FuzzAffected(f *testing.F) {
	seed(f, 150)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		s, script := forest.New(rules()), &script{bytes: bytes, tenants: true}
		for !script.done() {
			now, name := script.change(s)
			requireComplete(t, s, now, name)
			if s = now; script.pick(2) == 0 {
				continue
			}
			name = pickOf(script, pool...)
			n, c := s.Namespace(name), forest.DesiredChange(s, name)
			if n == nil || c.Empty() {
				continue
			}
			now = s.WithNamespace(written(n, c))
			requireComplete(t, s, now, name)
			after := now.Namespace(name)
			if affected := forest.AffectedNamespaces(now, s, name); len(affected) > 1 && after.Parent() == n.Parent() && after.Type() == n.Type() &&
				after.Template() == n.Template() {
				t.Fatalf("an own write on %s (%v) is said to affect %v", name, patchOf(c), affected)
			}
			s = now
		}
	})
}

func requireComplete(t *testing.T, old, now *forest.Snapshot, name string) {
	t.Helper()
	affected := forest.AffectedNamespaces(now, old, name)
	if len(affected) == 0 || affected[0] != name {
		t.Fatalf("Affected(%q) = %v lacks the namespace itself", name, affected)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(affected)))) != len(affected) {
		t.Fatalf("Affected(%q) = %v names one twice", name, affected)
	}
	for _, other := range pool {
		if slices.Contains(affected, other) {
			continue
		}
		before, okBefore := old.Sources(other)
		after, okAfter := now.Sources(other)
		switch {
		case !reflect.DeepEqual(old.Place(other), now.Place(other)):
			t.Fatalf("%s changed; the place of %s went from %v to %v, but only %v are affected", name, other, old.Place(other),
				now.Place(other), affected)
		case !slices.Equal(before.Names, after.Names) || before.Unknown != after.Unknown || okBefore != okAfter:
			t.Fatalf("%s changed; the sources of %s went from %v to %v, but only %v are affected", name, other, before, after, affected)
		// the request waits, and will be decided again
		case forest.RequestOf(old, other).Asked && forest.RequestMayChange(now, other, forest.ConcernedBy(now, old, affected)):
		case restoring(old, other): // a write is due anyway, and will use the newer snapshot
		case !reflect.DeepEqual(forest.DesiredChange(old, other), forest.DesiredChange(now, other)):
			t.Fatalf("%s changed; what %s needs went from %v to %v, but only %v are affected", name, other,
				patchOf(forest.DesiredChange(old, other)), patchOf(forest.DesiredChange(now, other)), affected)
		}
	}
}

// restoring reports whether a namespace lacks labels that the operator must restore from the LNamespace: type, or template.
func restoring(s *forest.Snapshot, name string) bool {
	c := forest.DesiredChange(s, name).Labels
	return c[v1alpha1.LabelType] != nil || c[v1alpha1.LabelTemplate] != nil
}

// In whatever order the operator writes namespaces, each is written at most once, and all end as the rules require.
func FuzzDesired(f *testing.F) {
	seed(f, 150)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		s, script := forest.New(rules()), &script{bytes: bytes}
		for !script.done() {
			for range 12 {
				s, _ = script.change(s)
			}
			want := ruled{s}.all()
			order := slices.Clone(pool)
			for i := range order {
				j := script.pick(i + 1)
				order[i], order[j] = order[j], order[i]
			}
			before := s.Len()
			after, writes, ok := settled(s, order)
			if !ok || writes > before {
				t.Fatalf("%d namespaces took %d writes; settled: %t", before, writes, ok)
			}
			got := map[string]*forest.Namespace{}
			for name := range after.All() {
				got[name] = written(after.Namespace(name), forest.Change{})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("-by the rules, +settled:\n%s", diff)
			}
			s = after
		}
	})
}
