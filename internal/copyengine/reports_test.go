package copyengine_test

import (
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
)

// A replica that begins to lead reports all troubles once it has worked on everything. It does so even if no object's status has a report
// yet.
func TestTroublesFromBeforeTheStartAreReported(t *testing.T) {
	for name, test := range map[string]struct {
		forest *forest.Snapshot
		source func(*apiServer)
	}{
		"FLT-F44 a new leader reports a source that a limit holds back": {limited(0, -1), propagated(at("a"), 1, update)},
		"FLT-F44 a new leader reports an invalid source": {acme(), propagated(at("a"), 1, update, withAnnotation(v1alpha1.AnnotationSelect,
			"in ("))},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t, test.forest, scenarioKinds()...)
			test.source(s.server)
			s.server.events = nil
			s.list()
			s.apply(copyengine.Elected{})
			s.settle()
			s.run(ticked(true, "report a, acme"), ticked(true))
		})
	}
}
