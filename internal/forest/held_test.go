package forest_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// held returns a forest with tenant payments, whose lists have listed, and namespace legacy, which joined its tree while holders had rights
// in it.
func held(listed, holders []string, change func(*forest.Namespace)) *forest.Snapshot {
	on := map[string]bool{}
	for _, who := range listed {
		on[who] = true
	}
	legacy := &forest.Namespace{
		Name: "legacy", UID: "uid-legacy", Labels: map[string]string{v1alpha1.LabelParent: "payments", v1alpha1.TreeLabel("payments"): "1",
			"own": "x"},
		Annotations: map[string]string{v1alpha1.AnnotationAncestry: "payments/legacy", v1alpha1.AnnotationAppliedParent: "uid-hc:payments"},
	}
	if record := forest.RecordOfHolders(holders); record != nil {
		legacy.Annotations[v1alpha1.AnnotationHeldBy] = *record
	}
	if change != nil {
		change(legacy)
	}
	payments := "payments"
	return forest.New(forest.Rules{}).
		WithNamespace(&forest.Namespace{
			Name: "payments", UID: "uid-payments", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
			Annotations: map[string]string{v1alpha1.AnnotationLNamespaceUID: "uid-1"},
		}).
		WithTenant(&forest.Tenant{Name: "payments", UID: "uid-1", Listed: on}).
		WithNamespace(legacy).WithHierarchy(&forest.Hierarchy{Namespace: "legacy", UID: "uid-hc", Parent: &payments})
}

func TestAbandoned(t *testing.T) {
	alice, dave := []string{"User alice"}, []string{"User dave"}
	cases := map[string]struct {
		listed, holders []string
		change          func(*forest.Namespace)
		want            bool
	}{
		"Listed":     {alice, alice, nil, false},
		"OneIsLeft":  {dave, []string{"User alice", "User dave"}, nil, false},
		"NobodyLeft": {dave, alice, nil, true},
		"NoLists":    {nil, alice, nil, true},
		"NoRecord":   {dave, nil, nil, false},
		"Unreadable": {dave, nil, func(n *forest.Namespace) { n.Annotations[v1alpha1.AnnotationHeldBy] = "User alice" }, false},
		"Bound":      {dave, alice, func(n *forest.Namespace) { n.Labels[v1alpha1.LabelBound] = v1alpha1.True }, false},
		"Protected":  {dave, alice, func(n *forest.Namespace) { n.Labels[v1alpha1.LabelProtected] = v1alpha1.True }, false},
		"Halted": {dave, alice, func(n *forest.Namespace) {
			n.Labels[v1alpha1.LabelParent], n.Annotations[v1alpha1.AnnotationAncestry] = "gone", "payments/gone/legacy"
		}, true},
		"OtherTree": {dave, alice, func(n *forest.Namespace) {
			n.Labels[v1alpha1.LabelParent], n.Annotations[v1alpha1.AnnotationAncestry] = "gone", "other/gone/legacy"
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := held(tc.listed, tc.holders, tc.change)
			if tenant, got := forest.ToRelease(s, "legacy"); got != tc.want || got && tenant.Name != "payments" {
				t.Errorf("ToRelease = %v, %v", tenant, got)
			}
			if got := len(forest.AbandonedBy(s, "payments")) == 1; got != tc.want {
				t.Errorf("Abandoned = %v", forest.AbandonedBy(s, "payments"))
			}
		})
	}
}

// A namespace that the operator releases keeps its own keys and the record of its request. One change releases it, and nothing is
// left to do after that.
func TestReleased(t *testing.T) {
	s := held(nil, []string{"User alice"}, nil)
	free := written(s.Namespace("legacy"), forest.DesiredChange(s, "legacy"))
	if diff := cmp.Diff(map[string]string{"own": "x", v1alpha1.LabelReleased: v1alpha1.True}, free.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.AnnotationAppliedParent: "uid-hc:payments"}, free.Annotations); diff != "" {
		t.Error(diff)
	}
	s = s.WithNamespace(free)
	if again := forest.DesiredChange(s, "legacy"); !again.Empty() || !forest.IsReleased(s, "legacy") {
		t.Errorf("a second look wants %v", again)
	}
	cleared := s.WithHierarchy(&forest.Hierarchy{Namespace: "legacy", UID: "uid-hc"})
	if n := written(free, forest.DesiredChange(cleared, "legacy")); n.Type() != "" || n.Annotations[v1alpha1.AnnotationAppliedParent] != "" {
		t.Errorf("a cleared request makes %v, %v", n.Labels, n.Annotations)
	}
}

// A change of a tenant's lists affects the namespaces that the operator must release because of it, or must no longer release. It also
// affects all namespaces below them.
func TestAffectedByLists(t *testing.T) {
	child := namespace("child", below("legacy"), placed("payments/legacy/child"))
	before := held([]string{"User alice"}, []string{"User alice"}, nil).WithNamespace(child)
	now := held(nil, []string{"User alice"}, nil).WithNamespace(child)
	for _, s := range [][2]*forest.Snapshot{{now, before}, {before, now}} {
		if diff := cmp.Diff([]string{"payments", "legacy", "child"}, forest.AffectedNamespaces(s[0], s[1], "payments")); diff != "" {
			t.Error(diff)
		}
	}
	same := before.WithTenant(before.Tenant("payments"))
	if diff := cmp.Diff([]string{"payments"}, forest.AffectedNamespaces(same, before, "payments")); diff != "" {
		t.Error(diff)
	}
}

// A namespace that the operator is about to release gets no copy any more, and those below it stay as they are until they are halted.
func TestSourcesOfAbandoned(t *testing.T) {
	for name, listed := range map[string][]string{"listed": {"User alice"}, "abandoned": nil} {
		t.Run(name, func(t *testing.T) {
			s := held(listed, []string{"User alice"}, nil).WithNamespace(namespace("child", below("legacy"), placed("payments/legacy/child")))
			own, ok := s.Sources("legacy")
			if want := listed != nil; own.Has("payments") != want || !ok {
				t.Errorf("the namespace itself: %v, %v", own.Names, ok)
			}
			if got, ok := s.Sources("child"); ok != (listed != nil) || ok && !got.Has("payments") {
				t.Errorf("the namespace below it: %v, %v", got.Names, ok)
			}
		})
	}
}

func TestAnLNamespaceThatAdoptsATreeConcernsWhatIsBelow(t *testing.T) {
	t.Run("HIER-L9 when another LNamespace adopts a root, the namespaces "+
		"below whose holders it does not list are judged again", func(t *testing.T) {
		s := held([]string{"User dave"}, []string{"User alice"}, nil)
		before := namespace("payments", root)
		old := s.WithNamespace(before)
		if _, released := forest.ToRelease(old, "legacy"); released {
			t.Fatal("legacy is in the tree of no tenant yet")
		}
		if _, released := forest.ToRelease(s, "legacy"); !released {
			t.Fatal("the tenant lists no holder of legacy")
		}
		if got := forest.AffectedNamespaces(s, old, "payments"); !slices.Contains(got, "legacy") {
			t.Errorf("only %v are looked at again, so legacy stays in the tree", got)
		}
	})
}
