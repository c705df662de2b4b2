package migrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// If Warren's keys and objects existed before the migration, an undo restores them, whether the migration wants the
// same values or others.
func TestUndoRestoresWhatWasThereBefore(t *testing.T) {
	withKeys := func() *site {
		s := hncSite(copies.All, hncPropagate)
		s.Namespaces["org"].Labels[v1alpha1.LabelType] = "root"
		s.Namespaces["team"].Labels[v1alpha1.LabelParent] = "org"
		for _, o := range s.Kinds[0].Objects {
			switch o.Namespace + "/" + o.Name {
			case "org/every":
				o.Labels[v1alpha1.LabelPropagate] = "create"
			case "org/some":
				o.Labels[v1alpha1.LabelPropagate] = "update"
				o.Annotations[v1alpha1.AnnotationSelect] = "team.tree.tenancy.warren.dev/depth,!svc.tree.tenancy.warren.dev/depth"
			case "org/none":
				o.Labels[v1alpha1.LabelPropagate] = "none"
			}
		}
		made := map[string]string{v1alpha1.LabelCreatedBy: madeHere}
		s.Subs["org/team"] = &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "org", Name: "team", Labels: made}}
		s.Hierarchies["org"] = &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "org", Name: "hierarchy", Labels: made}}
		s.Hierarchies["org"].Spec.PropagatedLabels = []v1alpha1.MetadataKey{"cost", "own"}
		return s
	}
	for writes := range 30 {
		t.Run(fmt.Sprintf("MIG-U1 --undo restores Warren's own keys and objects as they were before --apply: "+
			"after %d writes", writes), func(t *testing.T) {
			s := withKeys()
			before, hierarchy := s.keys(), s.Hierarchies["org"].Spec.DeepCopy()
			s.apply(t, Hierarchy, s.plan, writes)
			s.apply(t, "", func() Plan { plan, _ := NewUndo(s.estate(s.Cluster), s.Cluster); return plan }, 1000)
			if diff := cmp.Diff(before, s.keys()); diff != "" {
				t.Errorf("keys (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(hierarchy, &s.Hierarchies["org"].Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("HierarchyConfiguration (-before +after):\n%s", diff)
			}
			if s.Subs["org/team"] == nil || len(s.Subs) != 1 || len(s.Hierarchies) != 1 {
				t.Errorf("objects: %v, %v", s.Subs, s.Hierarchies)
			}
		})
	}
}

// A SubNamespace may have fewer characters in annotations than an anchor of HNC.
func TestLongAnnotationsOfAnAnchorStayOnTheNamespace(t *testing.T) {
	t.Run("MIG-U2 a SubNamespace gets those annotations of an anchor that fit; the plan names the others, "+
		"which stay on the Namespace", longAnnotations)
}

func longAnnotations(t *testing.T) {
	t.Helper()
	every := func(string) bool { return true }
	e := newEmptyEstate()
	anchor := hncObject("SubnamespaceAnchor", "org", "team", nil)
	annotations := map[string]string{"a": strings.Repeat("x", 8000), "b": strings.Repeat("y", 200), "c": strings.Repeat("é", 190)}
	spec := e.subNamespaceSpecOf("SubnamespaceAnchor", &anchor, nil, annotations, AllowedKeys{every, every})
	var kept []string
	for key := range spec.Annotations {
		kept = append(kept, key)
	}
	slices.Sort(kept)
	if diff := cmp.Diff([]string{"a", "c"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	want := []Gap{{"annotation b of SubnamespaceAnchor org/team",
		"if the Namespace has this key, its value stays; key and value have 201 characters, and 191 are left of the 8192 that all " +
			"annotations of a SubNamespace may have together: keep long texts in a ConfigMap"}}
	if diff := cmp.Diff(want, e.Gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
}
