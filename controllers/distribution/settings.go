package distribution

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/view"
)

// Settings are what the configuration says.
type Settings struct {
	distribute.Settings
	// Covered says whether mode All makes every object of a kind a source of propagation.
	Covered func(schema.GroupKind) bool
	// RetryMin and RetryMax bound the back-off of copies that are refused.
	RetryMin, RetryMax time.Duration
	Scrub              copying.Scrub
}

// Options are what the controller is made of.
type Options struct {
	Config      *rest.Config
	Mapper      meta.RESTMapper
	Index       *view.View
	Events      record.EventRecorder
	Concurrency int
	// Unprotected says whether the policy that keeps everybody off locked copies is missing.
	Unprotected func() bool
	Timing      Timing
}

// Timing holds the controller's time constants, so that tests can shrink them.
type Timing struct {
	// Pace is the least time between two writes of a status while work goes on, Last before the one at its end.
	Pace, Last time.Duration
	// TransientMin and TransientMax bound the back-off of writes that fail without being refused.
	TransientMin, TransientMax time.Duration
	// KindMin and KindMax bound the back-off of looks for a kind that is not served.
	KindMin, KindMax time.Duration
	// Degraded is how long copies, or ResourceDistributions, may be without a complete list before readiness waits no longer.
	Degraded time.Duration
	// Write bounds one request, and List the one that looks for conflicts.
	Write, List time.Duration
	// LoopWindow is how long a copy that somebody changes in a loop is left as it is.
	LoopWindow time.Duration
	// ScrubTick is how often it is asked whether a scrub is due.
	ScrubTick time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		Pace: 2 * time.Second, Last: 300 * time.Millisecond,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		KindMin: time.Second, KindMax: 5 * time.Minute, Degraded: 30 * time.Second,
		Write: 30 * time.Second, List: 60 * time.Second, LoopWindow: 10 * time.Minute, ScrubTick: time.Second,
	}
}
