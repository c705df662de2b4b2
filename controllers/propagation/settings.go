package propagation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Kind is a kind that is propagated, and how.
type Kind struct {
	schema.GroupVersionKind // an empty version means the one that the server prefers
	Mode                    propagate.KindMode
	Scope                   Scope
}

// Scope is where a kind is watched.
type Scope string

// The scopes of a kind. Auto is the whole cluster while that is allowed, and the namespaces of the forest else.
const (
	Cluster    Scope = "Cluster"
	Namespaces Scope = "Namespaces"
	Auto       Scope = "Auto"
)

// isNarrow says whether the kind is narrow: watched only where the operator's own RBAC allows, namespace by namespace or, in scope Auto, in
// the whole cluster while that is allowed.
func (k Kind) isNarrow() bool { return k.Scope == Namespaces || k.Scope == Auto }

// Settings are what the configuration says about propagation.
type Settings struct {
	Kinds []Kind
	Rules propagate.Rules
	// RetryMin and RetryMax bound the back-off of copies that are rejected.
	RetryMin, RetryMax time.Duration
	Scrub              copying.Scrub
}

// Options are what the engine is made of.
type Options struct {
	Config      *rest.Config
	Mapper      meta.RESTMapper
	View        *view.View
	Events      record.EventRecorder
	Concurrency int
	Timing      Timing
	// Informers are the options of the informers of narrow kinds; see Kind.isNarrow.
	Informers watchset.Options
	// Troubled is called with the namespaces that have something new to report: those with troubles, those above them, and those of the
	// sources. It must not block, nor call the engine; nil reports to nobody. The operator gives hierarchy.Reporter.Again.
	Troubled func(namespaces ...string)
	// Unprotected says whether the ValidatingAdmissionPolicy is missing that forbids everybody else to change copies; nil means that it is in
	// force. The operator asks guard.Guard.Missing.
	Unprotected func() bool
}

// Timing holds the engine's time constants, so that tests can shrink them.
type Timing struct {
	// ConflictMax caps the back-off of tries to write where another object, or one that is being deleted, is in the way.
	ConflictMax time.Duration
	// TransientMin and TransientMax bound the back-off of writes that fail without being refused.
	TransientMin, TransientMax time.Duration
	// KindMin and KindMax bound the back-off of questions whether a kind is served; KindGone is the first pause for a kind that was served
	// before.
	KindMin, KindMax, KindGone time.Duration
	// Degraded is how long a kind may be without a complete list before readiness waits for it no longer.
	Degraded time.Duration
	// EventQuiet is how long a source gets no second Event of one reason.
	EventQuiet time.Duration
	// Write bounds one request.
	Write time.Duration
	// LoopWindow is how long a copy that somebody changes in a loop is left as it is.
	LoopWindow time.Duration
	// ScrubTick is the time between two checks whether a scrub is due.
	ScrubTick time.Duration
	// Stuck is how long a namespace waits for removals before this is reported.
	Stuck time.Duration
	// Rails is how long the first RoleBindings of a namespace wait for copies of other kinds that can't be written.
	Rails time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		ConflictMax:  45 * time.Second,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		KindMin: 200 * time.Millisecond, KindMax: 5 * time.Minute, KindGone: 5 * time.Second,
		Degraded:   30 * time.Second,
		EventQuiet: 5 * time.Minute,
		Write:      30 * time.Second,
		LoopWindow: 10 * time.Minute,
		ScrubTick:  time.Second,
		Stuck:      time.Second,
		Rails:      10 * time.Second,
	}
}
