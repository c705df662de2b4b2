package exporter

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// blindAfter is how long a watch may fail before the failure is reported. A watch that ends without an error is opened
// again in less time.
const blindAfter = time.Minute

// silentAfter is how long a watch may receive nothing before that is reported: without changes, the API server sends a
// bookmark about once a minute.
const silentAfter = 10 * time.Minute

// reportSight stores for the reporter why the exporter doesn't see changes in the cluster, and sends an Event when that
// begins and when it ends. until is the time until which the exporter has seen all changes.
func (k *keeper) reportSight(until time.Time, trouble error) {
	since := until
	if since.Before(k.run.StartedAt) {
		since = k.run.StartedAt
	}
	switch unseen := k.clock.Now().Sub(since); {
	case trouble != nil && unseen < blindAfter:
		trouble = nil
	case trouble == nil && unseen >= silentAfter:
		trouble = fmt.Errorf("a watch is open, and the API server has sent nothing on it since %s", since.UTC().Format(time.RFC3339))
	}
	k.mu.Lock()
	was := k.blind
	k.blind = trouble
	k.mu.Unlock()
	switch {
	case trouble != nil && was == nil:
		k.events.Event(k.self, corev1.EventTypeWarning, eventBlind,
			fmt.Sprintf("the exporter can't watch the cluster: %v. %s; later changes get the time at which the exporter sees them",
				trouble, describeComplete(until)))
	case trouble == nil && was != nil:
		k.events.Event(k.self, corev1.EventTypeNormal, eventSeeing, "the exporter watches the cluster again")
	}
}

// describeComplete returns the sentence about the time until which the exporter has seen all changes; the zero time
// means that it has not read the whole cluster since its start.
func describeComplete(until time.Time) string {
	if until.IsZero() {
		return "It has not read the whole cluster since its start, and kubectl warren billing status shows until when the ledger is complete"
	}
	return "The ledger is complete until " + until.UTC().Format(time.RFC3339)
}
