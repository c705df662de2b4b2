package forest_test

import (
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestRequestForAYoungerParent(t *testing.T) {
	asked := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	made := map[string]time.Time{"org": asked.Add(time.Minute)}
	for name, tc := range map[string]struct {
		mark []trait
		want string
	}{
		"HIER-P21 after a restart, a request for a p younger than HC(x) waits; the message has the command for a mark": {nil,
			"org is younger than this object, so the operator can't know after its restart whether spec.parent means this namespace: clear " +
				"spec.parent, then set it again; or a cluster admin runs kubectl warren mark x org"},
		"HIER-P21 after a restart, a request for a p younger than HC(x) is carried out with the mark of its tree": {
			[]trait{annotation(v1alpha1.AnnotationAdopt, "uid-org")}, ""},
		"HIER-P21 after a restart, a request for a p younger than HC(x) waits with the mark of another tree": {
			[]trait{annotation(v1alpha1.AnnotationAdopt, "uid-other")}, "does not name the tree"},
		"HIER-P21 after a restart, a request for a p younger than HC(x) waits with the mark true": {
			[]trait{annotation(v1alpha1.AnnotationAdopt, v1alpha1.True)}, "younger"},
	} {
		t.Run(name, func(t *testing.T) {
			s := forestOf([]*forest.Hierarchy{configured("x", asks("org"))}, namespace("org", root), namespace("other", root),
				namespace("x", tc.mark...))
			s = forest.WithRequestDated(s, "x", asked, made)
			got := ""
			if request := forest.RequestOf(s, "x"); len(request.Obstacles) > 0 {
				got = request.Obstacles[0].Message
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("the obstacle is %q, want one with %q", got, tc.want)
			}
		})
	}
	t.Run("HIER-P21 without a restart, a request for a p that was replaced waits, although "+
		"x has the mark of the new p's tree", func(t *testing.T) {
		h := configured("x", asks("org"))
		h.ParentUID = "uid-first"
		s := forestOf([]*forest.Hierarchy{h}, namespace("org", root), namespace("x", annotation(v1alpha1.AnnotationAdopt, "uid-org")))
		if request := forest.RequestOf(s, "x"); len(request.Obstacles) != 1 {
			t.Errorf("the obstacles are %v, want that org was created later", request.Obstacles)
		}
	})
}

func TestRequestForAParentThatHasGone(t *testing.T) {
	made := map[string]time.Time{"org": {}}
	recorded := func(uid string, observed int64) string {
		hc := &v1alpha1.HierarchyConfiguration{}
		hc.Generation, hc.Status.ObservedGeneration, hc.Status.RequestedParentUID = 2, observed, uid
		return forest.RequestedParent(hc)
	}
	for name, tc := range map[string]struct {
		recorded string
		missing  bool
		want     string
	}{
		"HIER-P22 after a restart, a request for a p that was deleted waits, because status.requestedParentUID has recorded its UID": {
			recorded("uid-first", 2), true, "org was deleted after spec.parent named it"},
		"HIER-P22 after a restart, a request for a p that was replaced waits, even if the new p is older than HC(x)": {
			recorded("uid-first", 2), false, "org was created after spec.parent named it"},
		"HIER-P22 after a restart, a request for the p that status.requestedParentUID names is carried out": {
			recorded("uid-org", 2), false, ""},
		"HIER-P22 what status.requestedParentUID says of an earlier spec does not count after a restart": {
			recorded("uid-first", 1), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := configured("x", asks("org"))
			h.ParentUID = tc.recorded
			s := forestOf([]*forest.Hierarchy{h}, namespace("x"))
			if !tc.missing {
				s = s.WithNamespace(namespace("org", root))
			}
			s = forest.WithRequestDated(s, "x", time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), made)
			got := ""
			if request := forest.RequestOf(s, "x"); len(request.Obstacles) > 0 {
				got = request.Obstacles[0].Message
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("the obstacle is %q, want one with %q", got, tc.want)
			}
			if waits := tc.want != ""; waits && forest.FindRequestedParent(s, "x") != tc.recorded {
				t.Errorf("the status would record %q, not %q", forest.FindRequestedParent(s, "x"), tc.recorded)
			}
		})
	}
}
