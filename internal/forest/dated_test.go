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
