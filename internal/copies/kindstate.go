package copies

import (
	"errors"
	"strings"

	"github.com/warren-tenancy/warren/internal/text"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// noRoom describes a watch that waits for room.
const noRoom = "not watched, because informers.maxInformers or informers.maxNamespaces is reached: " +
	"in the configuration, raise the one that is reached"

// DescribeStatus returns why a watch shows nothing, in a few words.
func DescribeStatus(now watchset.Status) string {
	switch {
	case now.State == watchset.Forbidden:
		return "forbidden, missing " + strings.Join(now.Missing, ", ")
	case errors.Is(now.Err, watchset.ErrLimit):
		return noRoom
	case now.Err != nil:
		return text.Cut(now.Err.Error(), longestFailure)
	}
	return strings.ToLower(string(now.State))
}

// KindState is what the watches of a kind show together.
type KindState string

// The states of a kind.
const (
	KindSyncing   KindState = "syncing"
	KindActive    KindState = "active"
	KindPending   KindState = "pending"   // the API server does not serve the kind
	KindForbidden KindState = "forbidden" // the kind has scope Cluster, and the operator may not list or watch it cluster-wide
	KindDegraded  KindState = "degraded"  // the API server has not listed the kind for informers.degradedAfter, for another reason
)

// KindStates are all states.
var KindStates = []KindState{KindSyncing, KindActive, KindPending, KindForbidden, KindDegraded}

// IsBlind reports whether the operator sees no object of the kind anywhere although the API server serves the kind.
func (s KindState) IsBlind() bool { return s == KindForbidden || s == KindDegraded }

// longestFailure bounds how many bytes of the API server's error a message repeats.
const longestFailure = 256

// After returns the state of a kind that is watched in the whole cluster, after the watch has got this status. A new
// try to list changes nothing before it has ended, except for a kind that was not served. A watch that breaks after its
// list was complete is tried again: what it has shown still counts. A watch for which there is no room makes the kind
// degraded.
func (s KindState) After(now watchset.Status) KindState {
	switch now.State {
	case watchset.Synced:
		return KindActive
	case watchset.NotServed:
		return KindPending
	case watchset.Forbidden:
		return KindForbidden
	case watchset.Degraded:
		// What a complete list has shown still holds while its watch is tried again.
		if s != KindActive {
			return KindDegraded
		}
	case watchset.Pending:
		if now.Err != nil { // informers.maxInformers leaves no room
			return KindDegraded
		}
	case watchset.Syncing:
		if s == KindPending {
			return KindSyncing
		}
	}
	return s
}
