package budget

import (
	"fmt"

	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// state is whether shares can be written, and why not.
type state struct {
	kind stateKind
	why  string // a sentence about a watch that shows nothing, where kind is blind
}

type stateKind int

const (
	unknown   stateKind = iota // the watches have shown nothing yet
	missing                    // component budgets is not installed
	forbidden                  // the operator lacks the rights that component budgets has
	blind                      // a watch shows nothing, and somebody must help
	installed                  // the ResourceQuotas and HierarchicalResourceQuotas that exist are known
)

// isOff reports whether a cluster admin has left out component budgets, or its rights: then no namespace waits for its share.
func (s state) isOff() bool { return s.kind == missing || s.kind == forbidden }

// The indexes of known.watches. From watchOfEvents on, there is one for each of refusalReasons.
const (
	watchOfShares = iota
	watchOfLimits
	watchOfEvents
)

// followed are the kinds of the watches, by their indexes.
var followed = [...]string{"ResourceQuotas", "HierarchicalResourceQuotas", "Events"}

func (k *known) readState() state {
	k.mu.Lock()
	defer k.mu.Unlock()
	result := state{kind: installed}
	for i := range k.watches {
		switch one := k.stateOf(i); {
		case one.isOff():
			return one
		case one.kind == blind, one.kind == unknown && result.kind == installed:
			result = one
		}
	}
	return result
}

// stateOf returns the state of one watch. The caller holds the lock.
func (k *known) stateOf(watch int) state {
	status, knowledge := k.watches[watch], mirror.Complete
	switch watch {
	case watchOfShares:
		knowledge, _ = k.shares.Knowledge(mirror.Everywhere)
	case watchOfLimits:
		knowledge, _ = k.limits.Knowledge(mirror.Everywhere)
	}
	switch {
	case status.State == watchset.NotServed:
		return state{kind: missing}
	case status.State == watchset.Forbidden:
		return state{kind: forbidden}
	case status.State == watchset.Pending && status.Err != nil, status.State == watchset.Degraded && knowledge != mirror.Complete:
		return state{blind, fmt.Sprintf("the operator can't see %s: %v", followed[min(watch, watchOfEvents)], status.Err)}
	case knowledge == mirror.Complete && (status.State == watchset.Synced || status.State == watchset.Degraded):
		return state{kind: installed}
	}
	return state{kind: unknown}
}

// setWatch records the status of a watch, and reports whether that changes what readState returns.
func (k *known) setWatch(watch int, now watchset.Status) bool {
	before := k.readState()
	k.mu.Lock()
	k.watches[watch] = now
	if now.State == watchset.Pending || now.State == watchset.Forbidden || now.State == watchset.NotServed {
		switch watch {
		case watchOfShares:
			k.shares.SetBlind(mirror.Everywhere, string(now.State))
		case watchOfLimits:
			k.limits.SetBlind(mirror.Everywhere, string(now.State))
		}
	}
	k.mu.Unlock()
	return before != k.readState()
}
