package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

func TestUndoSaysWhatUsersDidSince(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*site)
		want   string
	}{
		"a sub-namespace below": {func(s *site) { s.Namespaces["new"] = namespace("new", v1alpha1.LabelParent, "svc") },
			"namespace new was placed below svc"},
		"a namespace that moved": {func(s *site) { s.Namespaces["svc"].Labels[v1alpha1.LabelParent] = "other" },
			"namespace svc was moved below other: move it back below team (kubectl warren set svc --parent team)"},
		"a root that moved": {func(s *site) { s.Namespaces["org"].Labels[v1alpha1.LabelParent] = "other" },
			"namespace org was moved below other: make it a root again (kubectl warren set org --root)"},
		"a namespace that is gone": {func(s *site) { delete(s.Namespaces, "svc") }, ""},
	} {
		t.Run("MIG-U3 the error of --undo names each namespace that users placed or moved since, with what to do: "+name, func(t *testing.T) {
			s := hncSite(copies.All, hncPropagate)
			s.Namespaces["other"] = namespace("other", v1alpha1.LabelType, v1alpha1.TypeRoot)
			s.apply(t, Hierarchy, s.plan, 1000)
			c.change(s)
			_, err := NewUndo(s.estate(s.Cluster), s.Cluster)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestUndoRestoresInheritedKeys(t *testing.T) {
	t.Run("MIG-U4 --undo restores each inherited key, keeps a label that a user changed since, "+
		"and deletes the operator's HierarchyConfigurations", func(t *testing.T) {
		const level = "pod-security.kubernetes.io/enforce"
		s := hncSite(copies.All, hncPropagate)
		s.Rules.InheritLabel = func(key string) bool { return key == level || key == "zone" || key == "tier" }
		for _, key := range []string{"zone", "tier"} {
			s.Namespaces["org"].Labels[key] = "a"
			s.Namespaces["svc"].Labels[key] = "b"
		}
		s.Namespaces["org"].Labels[level] = "baseline"
		s.apply(t, Hierarchy, s.plan, 1000)
		// What Warren does in between: namespaces inherit keys, and when they leave they lose them, except levels of pod
		// security. A user sets tier.
		delete(s.Namespaces["svc"].Labels, "zone")
		s.Namespaces["svc"].Labels["tier"] = "own"
		s.Namespaces["svc"].Labels[level], s.Namespaces["team"].Labels[level] = "baseline", "baseline"
		made := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.OperatorName}
		s.Hierarchies["svc"] = &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "svc", Name: "hierarchy", Labels: made}}
		undo := func() Plan {
			plan, err := NewUndo(s.estate(s.Cluster), s.Cluster)
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
		s.apply(t, "", undo, 1000)
		want := map[string]string{"zone": "b", "tier": "own"}
		if diff := cmp.Diff(want, s.Namespaces["svc"].Labels); diff != "" {
			t.Errorf("svc (-want +got):\n%s", diff)
		}
		if len(s.Namespaces["team"].Labels) > 0 || len(s.Hierarchies) > 0 {
			t.Errorf("left: %v, %v", s.Namespaces["team"].Labels, s.Hierarchies)
		}
	})
}

func TestUndoWithoutThePeersDefinitions(t *testing.T) {
	t.Run("MIG-U5 without the CRDs of HNC, --undo is refused and names --finish, which needs none of them", func(t *testing.T) {
		s := hncSite(copies.All, hncPropagate)
		s.apply(t, Hierarchy, s.plan, 1000)
		estate := s.estate(s.Cluster)
		estate.peer, estate.IsGone = hncPeer, true
		if _, err := NewUndo(estate, s.Cluster); err == nil || !strings.Contains(err.Error(), "migrate hnc --finish takes the last step") {
			t.Errorf("%v", err)
		}

		none, every := HNC{}, func(string) bool { return true }
		none.settings, _ = settingsOfHNC(nil)
		s.estate = func(c Cluster) *Estate { return EstateOfHNC(none, c.Namespaces, c.Kinds, AllowedKeys{every, every}) }
		for _, step := range s.plan().Steps {
			if step.Phase != Finish {
				t.Errorf("%s must be done before --finish", step.Object)
			}
		}
		s.apply(t, Finish, s.plan, 1000)
		s.follow()
		for _, copied := range []string{"Secret team/every", "Secret svc/every", "Secret team/some"} {
			keys := s.keys()[copied]
			if keys["hnc.x-k8s.io/inherited-from"] != "" || !strings.HasPrefix(keys["@"+v1alpha1.AnnotationSourceHash], "update:") {
				t.Errorf("%s doesn't follow its source: %v", copied, keys)
			}
		}
	})
}
