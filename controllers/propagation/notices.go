package propagation

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// notices send Events on sources and copies.
type notices struct {
	recorder record.EventRecorder
	kinds    *kinds
	quiet    time.Duration // how long a source gets no second Event of one reason

	mu     sync.Mutex // guards sent and pruned
	sent   map[notice]time.Time
	pruned time.Time // when old entries of sent were last dropped: once in the quiet time, as there may be very many
}

// notice is an Event that a source has got.
type notice struct {
	slot   propagate.Slot
	reason v1alpha1.Reason
}

// tellSource sends an Event on a source, at most once for each reason in the quiet time. ConflictResolved is always sent.
func (n *notices) tellSource(slot propagate.Slot, uid, eventType string, reason v1alpha1.Reason, message string) {
	if n.isDue(notice{slot, reason}, time.Now()) || reason == v1alpha1.ReasonConflictResolved {
		n.send(slot, uid, eventType, reason, message)
	}
}

// isDue says whether no such Event was sent for the quiet time, and if so notes that one is sent now.
func (n *notices) isDue(one notice, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.sent[one]; ok && now.Sub(last) < n.quiet {
		return false
	}
	if now.Sub(n.pruned) >= n.quiet {
		maps.DeleteFunc(n.sent, func(_ notice, when time.Time) bool { return now.Sub(when) >= n.quiet })
		n.pruned = now
	}
	n.sent[one] = now
	return true
}

// send makes an Event on a source or a copy.
func (n *notices) send(slot propagate.Slot, uid, eventType string, reason v1alpha1.Reason, message string) {
	mapping := n.kinds.mappingOf(slot.Kind)
	if mapping == nil {
		return
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.Namespace, object.Name, object.UID = slot.Namespace, slot.Name, types.UID(uid)
	n.recorder.Event(object, eventType, string(reason), message)
}
