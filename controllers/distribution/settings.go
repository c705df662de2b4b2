package distribution

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Settings are the settings of the configuration that this controller uses.
type Settings struct {
	distribute.Settings
	// Covered says whether a kind's propagation has mode All, which makes every object of the kind in a tree a source.
	Covered func(schema.GroupKind) bool
	// RetryMin and RetryMax bound the back-off of copies that the API server refuses.
	RetryMin, RetryMax time.Duration
	// DegradedAfter is how long copies, or ResourceDistributions, may be without a complete list before readiness waits no longer.
	DegradedAfter time.Duration
	Scrub         copying.Scrub
}

// Options are the controller's dependencies.
type Options struct {
	Config *rest.Config
	// Informers follow ResourceDistributions and their copies. The manager starts them.
	Informers   *watchset.Set
	View        *view.View
	Events      record.EventRecorder
	Concurrency int
	// Unprotected says whether the admission policy that keeps others from changing locked copies is missing. The operator asks
	// guard.Guard.Missing.
	Unprotected func() bool
	Timing      Timing
}

// Timing holds the controller's time constants, so that tests can shrink them.
type Timing struct {
	// Pace is the least time between two writes of a status while work goes on, Last before the one at its end.
	Pace, Last time.Duration
	// TransientMin and TransientMax bound the back-off of writes that fail without being refused.
	TransientMin, TransientMax time.Duration
	// Write limits one write, and List the request that lists obstacles.
	Write, List time.Duration
	// LoopWindow is how long a copy that somebody changes again and again is left unrestored.
	LoopWindow time.Duration
	// ScrubTick is the time between two checks of whether a scrub is due.
	ScrubTick time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Pace: 2 * time.Second, Last: 300 * time.Millisecond,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		Write: 30 * time.Second, List: 60 * time.Second, LoopWindow: 10 * time.Minute, ScrubTick: time.Second,
	}
}
