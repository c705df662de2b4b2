package distribute

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// woods returns a forest from texts such as "name label=value". The labels parent and type get Warren's domain.
func woods(namespaces ...string) *forest.Snapshot {
	f := forest.New(forest.Rules{ProtectedName: protected})
	for _, text := range namespaces {
		words := strings.Fields(text)
		n := &forest.Namespace{Name: words[0], UID: words[0], Labels: map[string]string{}}
		for _, word := range words[1:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "gone":
				n.Terminating = true
			case "parent", "type", "protected":
				n.Labels[v1alpha1.Domain+"/"+key] = value
			default:
				n.Labels[key] = value
			}
		}
		f = f.WithNamespace(n)
	}
	return f
}

func protected(name string) bool { return strings.HasPrefix(name, "kube-") }

func named(names ...string) []v1alpha1.NamespaceReference {
	var all []v1alpha1.NamespaceReference
	for _, name := range names {
		all = append(all, v1alpha1.NamespaceReference{Name: v1alpha1.NamespaceName(name)})
	}
	return all
}

func TestTargets(t *testing.T) {
	f := woods("d1 dist=yes", "d2 dist=yes", "d3 dist=yes", "x1", "default", "kube-system dist=yes", "gone dist=yes gone=1",
		"locked dist=yes protected=true", "pay type=root", "pay-a parent=pay", "pay-b parent=pay-a dist=yes", "lost parent=nowhere",
		"below parent=lost")
	dist := &metav1.LabelSelector{MatchLabels: map[string]string{"dist": "yes"}}
	for name, c := range map[string]struct {
		spec v1alpha1.DistributionTargets
		want string
	}{
		"DIST-D03 `targets: {}` selects all namespaces, `default` too, except protected and terminating " +
			"ones": {v1alpha1.DistributionTargets{}, "below d1 d2 d3 default lost pay pay-a pay-b x1"},
		"a selector": {v1alpha1.DistributionTargets{NamespaceLabelSelector: dist}, "d1 d2 d3 pay-b"},
		"an empty selector": {v1alpha1.DistributionTargets{NamespaceLabelSelector: &metav1.LabelSelector{},
			IncludedNamespaces: named("d1")}, "d1"},
		"DIST-D05 excluded namespaces are no targets, though they match the selector": {v1alpha1.DistributionTargets{NamespaceLabelSelector: dist,
			ExcludedNamespaces: named("d2", "pay-b")}, "d1 d3"},
		"DIST-D06 of included namespaces, only those that match the selector are " +
			"targets": {v1alpha1.DistributionTargets{NamespaceLabelSelector: dist, IncludedNamespaces: named("d1", "x1")},
			"d1"},
		"DIST-D07 trees selects the root and all namespaces below " +
			"it": {v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{"pay"}}, "pay pay-a pay-b"},
		"DIST-D08 of a tree, only namespaces that match the selector are " +
			"targets": {v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{"pay"},
			NamespaceLabelSelector: dist}, "pay-b"},
		"a plain namespace": {v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{"x1"}}, "x1"},
		"DIST-D95 no namespace of an excluded tree is a target, though it matches the " +
			"selector": {v1alpha1.DistributionTargets{NamespaceLabelSelector: dist,
			ExcludedTrees: []v1alpha1.NamespaceName{"pay"}}, "d1 d2 d3"},
		"DIST-D95 a tree below one in `trees` can be excluded; the rest is " +
			"targets": {v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{"pay"},
			ExcludedTrees: []v1alpha1.NamespaceName{"pay-a"}}, "pay"},
		"DIST-D95 no copy is written or removed in namespaces whose parent is missing, if a missing root is " +
			"excluded": {v1alpha1.DistributionTargets{IncludedNamespaces: named("lost", "d1"),
			ExcludedTrees: []v1alpha1.NamespaceName{"nowhere"}}, "d1 lost? below?"},
		"what is halted is frozen": {v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{"lost"}}, "lost below?"},
	} {
		t.Run(name, func(t *testing.T) {
			targets, err := ReadTargets(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, namespace := range slices.Sorted(f.All()) {
				switch targets.Choose(f, namespace, protected, nil) {
				case Chosen:
					got = append(got, namespace)
				case Frozen:
					if n := f.Namespace(namespace); !n.Terminating && !protected(namespace) && namespace != "locked" {
						got = append(got, namespace+"?")
					}
				}
			}
			want := strings.Fields(c.want)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ReadTargets(v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{"pay"},
		ExcludedTrees: []v1alpha1.NamespaceName{"pay"}}); err == nil ||
		!strings.Contains(err.Error(), `"pay" is both in trees and in excludedTrees`) {
		t.Errorf("DIST-D95: %v", err)
	}
	if _, err := ReadTargets(v1alpha1.DistributionTargets{IncludedNamespaces: named("d1"), ExcludedNamespaces: named("d1")}); err == nil ||
		!strings.Contains(err.Error(), `namespace "d1" is both included and excluded`) {
		t.Errorf("DIST-D09: %v", err)
	}
}

func TestBounded(t *testing.T) {
	dist := &metav1.LabelSelector{MatchLabels: map[string]string{"dist": "yes"}}
	for name, c := range map[string]struct {
		spec v1alpha1.DistributionTargets
		want bool
	}{
		"all":                      {v1alpha1.DistributionTargets{}, false},
		"a selector":               {v1alpha1.DistributionTargets{NamespaceLabelSelector: dist}, false},
		"names":                    {v1alpha1.DistributionTargets{IncludedNamespaces: named("d1")}, true},
		"names among the selected": {v1alpha1.DistributionTargets{IncludedNamespaces: named("d1"), NamespaceLabelSelector: dist}, true},
		"names and trees":          {v1alpha1.DistributionTargets{IncludedNamespaces: named("d1"), Trees: []v1alpha1.NamespaceName{"pay"}}, true},
	} {
		targets, err := ReadTargets(c.spec)
		if err != nil || targets.Bounded() != c.want {
			t.Errorf("%s: got %v, %v", name, targets.Bounded(), err)
		}
	}
}

func TestAHaltedTreeCostsOneClimbForEachNamespace(t *testing.T) {
	t.Run("DIST-D120 the choice of a halted namespace costs at most twice as much in an excluded tree of 1,000 as in one of "+
		"10", func(t *testing.T) {
		allocations := func(size int) float64 {
			namespaces := []string{"big type=root gone=1"}
			for i := range size {
				namespaces = append(namespaces, fmt.Sprintf("big-%d parent=big", i))
			}
			f := woods(namespaces...)
			targets, err := ReadTargets(v1alpha1.DistributionTargets{ExcludedTrees: []v1alpha1.NamespaceName{"big"}})
			if err != nil {
				t.Fatal(err)
			}
			return testing.AllocsPerRun(10, func() {
				if got := targets.Choose(f, "big-0", protected, nil); got != Frozen {
					t.Fatalf("a halted namespace is %v, want Frozen", got)
				}
			})
		}
		if small, large := allocations(10), allocations(1000); large > 2*small {
			t.Errorf("%g allocations in a tree of 1,000 namespaces, %g in one of 10", large, small)
		}
	})
}
