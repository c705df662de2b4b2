package simulation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
)

// TestConflictsOfRails has each object that may be in the place of a rail.
func TestConflictsOfRails(t *testing.T) {
	slot := slotOf(configMaps, "a", "s")
	marked := func(from string, labels ...string) func(*metav1.ObjectMeta) {
		return func(meta *metav1.ObjectMeta) {
			meta.Annotations["from"] = from
			for _, key := range labels {
				meta.Labels[key] = from
			}
		}
	}
	tests := map[string]struct {
		object func(*metav1.ObjectMeta)
		err    error // of the last write at the slot
		want   bool
	}{
		"no object":                            {nil, nil, false},
		"a copy":                               {marked("acme", v1alpha1.LabelInheritedFrom), nil, false},
		"a copy without its label":             {marked("acme"), nil, false},
		"a copy of a ResourceDistribution":     {marked("rd1", v1alpha1.LabelDistributedBy), nil, true},
		"an unrelated object":                  {func(*metav1.ObjectMeta) {}, nil, true},
		"an object that is being deleted":      {func(m *metav1.ObjectMeta) { m.DeletionTimestamp = new(metav1.Now()) }, nil, true},
		"one that has gone since the answer":   {nil, copies.ErrObstacle, true},
		"the end of one that was deleted":      {nil, copies.ErrBeingDeleted, true},
		"no object, after a write that failed": {nil, errNoReply, false},
	}
	for name, tt := range tests {
		t.Run("FLT-M6 the model tells the rails whose name another object has: "+name, func(t *testing.T) {
			h := newHistory(script{}, nil)
			r := newReplica(h, "r1")
			if tt.object != nil {
				h.putObject(slot, contentOf(slot.Kind, 1, nil), tt.object)
				o := h.server.at(slot)
				o.from = o.meta.Annotations["from"]
			}
			r.recordObstacle(copyengine.CopyWritten{WriteCopy: copyengine.WriteCopy{Slot: slot}, Err: tt.err})
			if got := r.isInConflict(slot); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			r.recordObstacle(copyengine.CopyWritten{WriteCopy: copyengine.WriteCopy{Slot: slot}})
			if got := r.isInConflict(slot); tt.object == nil && got {
				t.Error("a write has succeeded, and the conflict has not ended")
			}
		})
	}
}
