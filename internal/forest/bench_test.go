package forest_test

import (
	"fmt"
	"testing"

	"github.com/warren-tenancy/warren/internal/forest"
)

// plantation returns a forest of size namespaces in which nothing is left to write. Each root has ten children, and each of these has nine.
func plantation(size int) *forest.Snapshot {
	s := forest.New(rules())
	add := func(name, parent string) {
		n := namespace(name, below(parent))
		if parent == "" {
			n = namespace(name, root, label("team", name))
		}
		s = s.WithNamespace(n)
		s = s.WithNamespace(written(n, forest.DesiredChange(s, name)))
	}
	for i := 0; s.Len() < size; i++ {
		tree := fmt.Sprintf("r%d", i)
		add(tree, "")
		for j := range 10 {
			child := fmt.Sprintf("%s-c%d", tree, j)
			add(child, tree)
			for k := range 9 {
				add(fmt.Sprintf("%s-%d", child, k), child)
			}
		}
	}
	return s
}

// oneChange computes what one event leads to: an inherited label of a namespace with nine children gets a new value. It returns how many
// namespaces the change affects.
func oneChange(s *forest.Snapshot) int {
	old := s.Namespace("r0-c3")
	changed := *old
	changed.Labels = patched(old.Labels, map[string]*string{"env": new(string)})
	now := s.WithNamespace(&changed)
	affected := forest.AffectedNamespaces(now, s, "r0-c3")
	for _, name := range affected {
		forest.DesiredChange(now, name)
	}
	return len(affected)
}

// The test compares the memory that one change takes in a small and in a large forest: unlike time, memory doesn't depend on how
// busy the machine is.
func TestOneChangeDoesNotGrowWithTheForest(t *testing.T) {
	small, large := plantation(100), plantation(10000)
	if got := oneChange(large); got != 10 {
		t.Fatalf("a change concerns %d namespaces, want itself and nine children", got)
	}
	a, b := testing.AllocsPerRun(5, func() { oneChange(small) }), testing.AllocsPerRun(5, func() { oneChange(large) })
	if b > 1.5*a {
		t.Errorf("one change takes %.0f allocations among 100 namespaces, %.0f among 10,000", a, b)
	}
}

func BenchmarkWithNamespace(b *testing.B) {
	for _, size := range []int{100, 10000} {
		s := plantation(size)
		leaf := *s.Namespace("r0-c3-3")
		b.Run(fmt.Sprintf("leaf/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				forest.AffectedNamespaces(s.WithNamespace(&leaf), s, leaf.Name)
			}
		})
		b.Run(fmt.Sprintf("subtree/%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				oneChange(s)
			}
		})
	}
}

func BenchmarkDesired(b *testing.B) {
	s := plantation(10000)
	b.ReportAllocs()
	for b.Loop() {
		forest.DesiredChange(s, "r7-c3-3")
	}
}
