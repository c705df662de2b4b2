package copying

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/copies"
)

// EveryReplica runs on every replica, unlike a manager.RunnableFunc, which the manager runs on the leader alone.
type EveryReplica func(context.Context) error

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (EveryReplica) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (run EveryReplica) Start(ctx context.Context) error { return run(ctx) }

// sendEvent sends an Event that a State has decided.
func sendEvent(to record.EventRecorder, e copies.Event) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(e.Kind)
	object.Namespace, object.Name, object.UID = e.Slot.Namespace, e.Slot.Name, types.UID(e.UID)
	eventType := corev1.EventTypeNormal
	if e.Warning {
		eventType = corev1.EventTypeWarning
	}
	to.Event(object, eventType, string(e.Reason), e.Message)
}

// writeLog writes a line that a State has decided, to the log with this name.
func writeLog(name string, l copies.Log) {
	log := ctrl.Log.WithName(name)
	switch {
	case l.Err == nil:
		log.Info(l.Message)
	case l.Slot == copies.Slot{}:
		log.Error(l.Err, l.Message)
	default:
		log.Error(l.Err, l.Message, "slot", l.Slot.String())
	}
}
