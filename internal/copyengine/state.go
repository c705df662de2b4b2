// Package copyengine acts on the plans of internal/copies. It is pure: its State takes in what has happened (Input), and describes what is
// to be done (Output). The runner in controllers/copies makes the requests.
package copyengine

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// State is the copying engine as a state machine: it knows what the watches and the API server's answers have shown, and decides what is to
// be done. It makes no requests and has no lock, no goroutine and no clock: the runner (controllers/copies) calls Apply, one Input after
// the other, and carries out the Outputs. A standby replica applies what its watches show, and works on no keys.
type State struct {
	settings Settings
	world    *copies.World
	kinds    map[schema.GroupKind]*watchedKind
	// newest holds, for each watch of copies, the highest resourceVersion that the watch has shown.
	newest map[watchedPlace]string
	// unlabelled holds the UIDs of copies that a read has found without their label inherited-from: no watch shows when such a copy is gone.
	unlabelled map[copies.Slot]string
	// sought are the missing sources that FindLoss requests are looking for. An answer counts only while its source is in sought. A source
	// leaves it when a watch shows it, or when its namespace changes.
	sought map[copies.Slot]bool
	// spreads holds the spreads that are not over, by source. The key of each spread waits in the queue.
	spreads map[copies.Slot]*spread
	// bodies is what the last read of each source has shown.
	bodies map[copies.Slot]readVersion
	// followed are the namespaces in which narrow kinds are watched. departed are the namespaces that have left the forest and may hold copies
	// that no watch has shown. Both have the UIDs of the namespaces. The annotation ancestry, which the operator removes later, shows that a
	// namespace has left.
	followed, departed map[string]types.UID

	removals  removals
	railWaits map[string]*railWait // by namespace
	troubles  troubles
	failed    copies.FailedRequests
	repairs   *copies.Repairs
	// drift holds how the drift of a copy was found, until the copy is repaired. It has no entry for drift that a watch has shown.
	drift    map[copies.Slot]DriftSource
	notices  notices
	measured measured

	now time.Time // of the Input that is being applied
	out collector // the Outputs of that Input
}

// NewState returns a State that knows the forest f, and no objects.
func NewState(f *forest.Snapshot, settings Settings) *State {
	s := &State{
		settings: settings, world: copies.NewWorld(f), kinds: map[schema.GroupKind]*watchedKind{}, newest: map[watchedPlace]string{},
		unlabelled: map[copies.Slot]string{}, sought: map[copies.Slot]bool{},
		spreads: map[copies.Slot]*spread{}, bodies: map[copies.Slot]readVersion{},
		departed: map[string]types.UID{},
		removals: newRemovals(), railWaits: map[string]*railWait{}, troubles: newTroubles(), repairs: copies.NewRepairs(),
		drift: map[copies.Slot]DriftSource{}, notices: newNotices(), measured: newMeasured(),
	}
	for _, kind := range settings.Kinds {
		k := newWatchedKind(kind)
		s.kinds[kind.GroupKind()] = k
		if kind.IsNarrow() {
			s.world.Sights.SetNarrow(kind.GroupKind())
		}
	}
	return s
}

// Read calls look with the World, which look must not change.
func (s *State) Read(look func(*copies.World)) { look(s.world) }

// Settings are what the configuration says about copies.
type Settings struct {
	Kinds []Kind
	Rules copies.Rules
	// RetryMin and RetryMax bound the back-off of copies that the API server refuses.
	RetryMin, RetryMax time.Duration
	// DegradedAfter is how long readiness and rights wait for a kind that was not listed completely yet.
	DegradedAfter time.Duration
	Timing        Timing
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

// The scopes of a kind. Auto is the whole cluster while the operator's RBAC allows that, else the namespaces of the forest.
const (
	Cluster    Scope = "Cluster"
	Namespaces Scope = "Namespaces"
	Auto       Scope = "Auto"
)

// IsNarrow reports whether the kind is watched only where the operator's own RBAC allows: namespace by namespace or, in scope Auto, in
// the whole cluster while that is allowed.
func (k Kind) IsNarrow() bool { return k.Scope == Namespaces || k.Scope == Auto }

// Timing holds the engine's time constants, so that tests can shrink them.
type Timing struct {
	// ConflictMax bounds the back-off of slots where another object, or one that is being deleted, is in the way. It also bounds the
	// back-off after a 409 to a write, and while a RoleBinding waits for the copy of its Role.
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

// Forest returns the snapshot by which the State plans.
func (s *State) Forest() *forest.Snapshot { return s.world.Forest }
