package view

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestHistoryNotesTheHighestVersion(t *testing.T) {
	h := newHistory()
	for _, version := range []string{"7", "12", "9"} {
		h.recordNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "acme", ResourceVersion: version}})
	}
	if h.version != "12" {
		t.Errorf("after 7, 12 and 9 the highest version is %q", h.version)
	}
	if h.recordVersion("15"); h.version != "15" {
		t.Errorf("after a deletion at 15 the highest version is %q", h.version)
	}
}

func TestDatePlacements(t *testing.T) {
	before := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	after := before.Add(time.Minute)
	const unknown = "unknown" // means that another namespace may have had the name before the operator started
	for name, c := range map[string]struct {
		parentMade time.Time
		stoodBelow string // the UID of the parent that the namespace was below
		want       string
	}{
		"a parent that was there first is meant":                                            {before, "", "parent-uid"},
		"a younger one may have another's name":                                             {after, "", unknown},
		"a younger one is meant where the namespace has stood below it":                     {after, "parent-uid", "parent-uid"},
		"a younger one isn't meant where the namespace has stood below another of the name": {after, "another", unknown},
	} {
		h := newHistory()
		parent := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "parent-uid",
			CreationTimestamp: metav1.NewTime(c.parentMade)}}
		child := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "legacy", UID: "child-uid",
			Annotations: map[string]string{v1alpha1.AnnotationParentUID: c.stoodBelow}}}
		s := forest.New(forest.Rules{})
		for _, n := range []*metav1.PartialObjectMetadata{parent, child} {
			h.recordNamespace(n)
			s = s.WithNamespace(forest.NamespaceOf(n))
		}
		h.asked["legacy"] = before
		s = s.WithHierarchy(forest.HierarchyOf("legacy", "hc-uid", v1alpha1.HierarchyConfigurationSpec{Parent: new("acme")}))

		if got := h.datePlacements(s).Hierarchy("legacy").ParentUID; got != c.want {
			t.Errorf("%s: UID %q instead of %q", name, got, c.want)
		}
		if h.isStarting() {
			t.Errorf("%s: the history still collects", name)
		}
	}
}
