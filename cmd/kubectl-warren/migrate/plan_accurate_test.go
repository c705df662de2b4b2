package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
)

// accurateSite has a template, and below it a root, a sub-namespace and one more below that, with copies that Accurate
// made from level to level. It also has an instance of the template.
func accurateSite() *site {
	from, propagated := "@accurate.cybozu.com/from", "@accurate.cybozu.com/propagate"
	s := newSite(copies.OptIn, []*metav1.PartialObjectMetadata{
		namespace("tmpl", accurateType, "template"), namespace("root", accurateType, "root", accurateTemplate, "tmpl"),
		namespace("sub", accurateParent, "root"), namespace("deep", accurateParent, "sub"), namespace("instance", accurateTemplate, "tmpl"),
		namespace("plain"),
	},
		object(secrets, "tmpl", "base", propagated, "update"), object(secrets, "root", "base", propagated, "update", from, "tmpl"),
		object(secrets, "sub", "base", propagated, "update", from, "root"), object(secrets, "deep", "base", propagated, "update", from, "sub"),
		object(secrets, "instance", "base", propagated, "update", from, "tmpl"),
		object(secrets, "root", "seed", propagated, "create"), object(secrets, "sub", "seed", propagated, "create", from, "root"),
		object(secrets, "sub", "own"), object(secrets, "plain", "idle", propagated, "update"),
	)
	sub := hncObject("SubNamespace", "root", "sub", map[string]any{"labels": map[string]any{"team": "a", "tier": "web"}})
	s.estate = func(c Cluster) *Estate {
		ours := configfile.Default()
		ours.SubNamespaces.Labels = config.Globs{"team"}
		file := "labelKeys: [team]\nwatches: [{kind: Secret, version: v1}, {group: apps, kind: Deployment, version: v1}]\nnamingPolicies: " +
			"[{root: '^a', match: '^b'}]\n"
		e, err := EstateOfAccurate([]unstructured.Unstructured{sub, hncObject("SubNamespace", "sub", "deep", nil)}, []byte(file), c, ours)
		if err != nil {
			panic(err)
		}
		return e
	}
	return s
}

func TestPlanOfAccurate(t *testing.T) {
	s := accurateSite()
	var gaps []string
	for _, gap := range s.plan().Gaps {
		gaps = append(gaps, gap.What)
	}
	want := []string{"label tier of SubNamespace root/sub", "annotation propagate of Secret plain/idle", "labelKeys team",
		"watches Deployment.apps", "namingPolicies ^a"}
	if diff := cmp.Diff(want, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	before := s.keys()
	s.apply(t, Hierarchy, s.plan, 1000)
	keys := s.keys()
	for _, name := range []string{"root", "sub", "deep", "instance"} {
		if base := keys["Secret "+name+"/base"]; base[v1alpha1.LabelInheritedFrom] != "tmpl" ||
			!strings.HasPrefix(base["@"+v1alpha1.AnnotationSourceHash], "create:") {
			t.Errorf("Secret %s/base isn't taken over from the template: %v", name, base)
		}
	}
	s.apply(t, "", func() Plan { plan, _ := NewUndo(s.estate(s.Cluster), s.Cluster); return plan }, 1000)
	if diff := cmp.Diff(before, s.keys()); diff != "" {
		t.Errorf("undone (-before +after):\n%s", diff)
	}
	s.apply(t, Finish, s.plan, 1000)
	s.follow()
	if plan := s.plan(); len(plan.Steps) > 0 {
		t.Errorf("something is left: %+v", plan.Steps)
	}
	keys = s.keys()
	if keys["Secret tmpl/base"][v1alpha1.LabelPropagate] != "update" || keys["Secret root/seed"][v1alpha1.LabelPropagate] != "create" ||
		keys["Secret plain/idle"][v1alpha1.LabelPropagate] != "" {
		t.Errorf("sources: %v", keys)
	}
	for name, want := range map[string]map[string]string{
		"tmpl": {v1alpha1.LabelType: "template"}, "root": {v1alpha1.LabelType: "root", v1alpha1.LabelTemplate: "tmpl"},
		"sub": {v1alpha1.LabelParent: "root", v1alpha1.LabelBound: "true"}, "instance": {v1alpha1.LabelTemplate: "tmpl"}, "plain": {},
	} {
		got := keys["Namespace "+name]
		for key := range got {
			if !strings.HasPrefix(key, v1alpha1.Domain) {
				delete(got, key)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
