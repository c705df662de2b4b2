package distribute

import "time"

// troubles are what keeps targets of one ResourceDistribution from being written.
type troubles struct {
	byNamespace map[string]trouble
	vanished    map[string]bool // namespaces whose copy was deleted, until it is created again
}

// trouble explains why the last write of a target failed, and when the next one may be tried.
type trouble struct {
	failure *Failure // nil for an error that may pass without a change, such as a 503
	tries   int
	until   time.Time // nothing is tried before
}

func newTroubles() *troubles {
	return &troubles{byNamespace: map[string]trouble{}, vanished: map[string]bool{}}
}

// clearAll clears all troubles, because the API server may accept the new template.
func (t *troubles) clearAll() { t.byNamespace = map[string]trouble{} }

func (t *troubles) clearTrouble(namespace string) { delete(t.byNamespace, namespace) }

// untilNext returns how long the next try in a namespace must wait; 0 if it is due.
func (t *troubles) untilNext(namespace string, now time.Time) time.Duration {
	return max(0, t.byNamespace[namespace].until.Sub(now))
}

// holdUntil puts off the next try in a namespace, in which nothing has failed.
func (t *troubles) holdUntil(namespace string, until time.Time) {
	known := t.byNamespace[namespace]
	known.until = until
	t.byNamespace[namespace] = known
}

// failureAt returns why the API server refuses the write in a namespace; nil if it does not.
func (t *troubles) failureAt(namespace string) *Failure { return t.byNamespace[namespace].failure }

// isUntried reports whether no write in a namespace has failed.
func (t *troubles) isUntried(namespace string) bool { return t.byNamespace[namespace].tries == 0 }

// putOff counts one more failed try, and returns the delay of the next one, which backoff finds by the number of tries.
// A nil failure leaves an earlier one in place.
func (t *troubles) putOff(namespace string, failure *Failure, now time.Time, backoff func(tries int) time.Duration) time.Duration {
	known := t.byNamespace[namespace]
	known.tries++
	if failure != nil {
		known.failure = failure
	}
	delay := backoff(known.tries)
	known.until = now.Add(delay)
	t.byNamespace[namespace] = known
	return delay
}

// forgetNamespace is called when a namespace is gone.
func (t *troubles) forgetNamespace(namespace string) {
	delete(t.byNamespace, namespace)
	delete(t.vanished, namespace)
}

// recordVanished records that the copy in a namespace was deleted, and recordCreated that there is one again.
func (t *troubles) recordVanished(namespace string)   { t.vanished[namespace] = true }
func (t *troubles) recordCreated(namespace string)    { delete(t.vanished, namespace) }
func (t *troubles) hasVanished(namespace string) bool { return t.vanished[namespace] }
