package migrate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Templates join before the namespaces that reference them, and leave after them. Parents join before their children,
// and leave after them.
func TestOrderOfNamespaces(t *testing.T) {
	s := accurateSite()
	s.Namespaces["outer"] = namespace("outer", accurateType, "template")
	s.Namespaces["tmpl"].Labels[accurateTemplate] = "outer"
	order := func(plan Plan, phase Phase) (names []string) {
		for _, step := range plan.Steps {
			if step.Phase == phase {
				names = append(names, step.Object.Name)
			}
		}
		return names
	}
	if diff := cmp.Diff([]string{"outer", "tmpl", "root", "sub", "deep", "instance"}, order(s.plan(), Namespaces)); diff != "" {
		t.Errorf("joining (-want +got):\n%s", diff)
	}
	s.apply(t, Hierarchy, s.plan, 1000)
	undo, err := NewUndo(s.estate(s.Cluster), s.Cluster)
	if diff := cmp.Diff([]string{"instance", "deep", "sub", "root", "tmpl", "outer"}, order(undo, Leave)); err != nil || diff != "" {
		t.Errorf("leaving, %v (-want +got):\n%s", err, diff)
	}
}
