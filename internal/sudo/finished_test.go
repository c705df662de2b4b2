package sudo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestLateDecisionIsObserved(t *testing.T) {
	t.Run("REQ-H5 a decision on a request that is over changes nothing but observedGeneration", func(t *testing.T) {
		m := asked(decide("mia", v1alpha1.SudoApprove)).settle(t).wait(10 * time.Minute).settle(t)
		was := *meta.FindStatusCondition(m.Request.Status.Conditions, string(v1alpha1.ConditionActive))
		m.decide("lea", v1alpha1.SudoDeny)
		m.acts = nil
		m.wait(time.Minute).settle(t)
		is := *meta.FindStatusCondition(m.Request.Status.Conditions, string(v1alpha1.ConditionActive))
		was.ObservedGeneration = m.Request.Generation
		if diff := cmp.Diff(was, is); diff != "" || m.Request.Status.ObservedGeneration != m.Request.Generation || len(m.acts) != 1 {
			t.Errorf("observedGeneration is %d, the generation %d; acts %v; condition (-want +got):\n%s", m.Request.Status.ObservedGeneration,
				m.Request.Generation, m.acts, diff)
		}
	})
}
