package copyengine

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
)

// Settings are what the configuration says about copies.
type Settings struct {
	Kinds []Kind
	Rules copies.Rules
	// RetryMin and RetryMax bound the back-off of copies that the API server refuses.
	RetryMin, RetryMax time.Duration
	// DegradedAfter is how long readiness and rights wait for a kind that was not listed completely yet.
	DegradedAfter time.Duration
	Timing        Timing
	// AwaitsShare reports whether the namespace's share of a budget is not in force yet, so that new copies must wait, for as long as it
	// takes; nil if there are no budgets. It is called under the engine's lock.
	AwaitsShare func(namespace string) bool
	// SpreadStep is how many namespaces one step of a spread looks at; 0 stands for the number that production uses.
	SpreadStep int
}

// Kind is a kind that is copied, and how.
type Kind struct {
	schema.GroupVersionKind // an empty version means the one that the API server prefers
	Mode                    copies.KindMode
	Scope                   Scope
}

// Scope is where a kind is watched.
type Scope string

// The scopes of a kind. Auto is the whole cluster while the operator's RBAC allows that, else the namespaces of the
// forest.
const (
	Cluster    Scope = "Cluster"
	Namespaces Scope = "Namespaces"
	Auto       Scope = "Auto"
)

// IsNarrow reports whether the kind is watched only where the operator's own RBAC allows: namespace by namespace or, in
// scope Auto, in the whole cluster while that is allowed.
func (k Kind) IsNarrow() bool { return k.Scope == Namespaces || k.Scope == Auto }

// Timing holds the engine's time constants, so that tests can shrink them.
type Timing struct {
	// ConflictMax bounds the back-off of slots where another object, or one that is being deleted, is in the way. It
	// also bounds the back-off after a 409 to a write, and while a RoleBinding waits for the copy of its Role.
	ConflictMax time.Duration
	// TransientMin and TransientMax bound the back-off of requests that fail without being refused.
	TransientMin, TransientMax time.Duration
	// EventQuiet is the shortest time between two Events of one reason on one source.
	EventQuiet time.Duration
	// Write bounds the requests for one Key together.
	Write time.Duration
	// LoopWindow is how long a copy that somebody changes in a loop is left as it is.
	LoopWindow time.Duration
	// Tick is the time between two Ticked Inputs, and between two checks of whether a scrub is due.
	Tick time.Duration
	// Stuck is how long a namespace waits for removals before this is reported.
	Stuck time.Duration
	// Rails is how long the first RoleBindings of a namespace wait for missing copies of other kinds.
	Rails time.Duration
}

// DefaultTiming returns what production uses.
func DefaultTiming() Timing {
	return Timing{
		ConflictMax:  45 * time.Second,
		TransientMin: 200 * time.Millisecond, TransientMax: 30 * time.Second,
		EventQuiet: 5 * time.Minute,
		Write:      30 * time.Second,
		LoopWindow: 10 * time.Minute,
		Tick:       time.Second,
		Stuck:      time.Second,
		Rails:      10 * time.Second,
	}
}

// Roles returns the roles of the watches that the kind needs.
func (k Kind) Roles() []Role {
	if k.Mode == copies.All {
		return []Role{SourcesAndCopies}
	}
	return []Role{SourcesAlone, CopiesAlone}
}
