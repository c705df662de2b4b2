package copies

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Output is something that the caller of a State must do or report: a Queue, an Event, a Log, or what only one of the
// engines asks for.
type Output any

// Queue asks for keys to be queued, at once or after a delay.
type Queue[K comparable] struct {
	Keys  []K
	After time.Duration
}

// Event is an Event on a source or a copy.
type Event struct {
	Slot    Slot
	Kind    schema.GroupVersionKind
	UID     string
	Warning bool
	Reason  v1alpha1.Reason
	Message string
}

// Log is a line for the log. Err is nil for a mere message.
type Log struct {
	Message string
	Slot    Slot
	Err     error
}
