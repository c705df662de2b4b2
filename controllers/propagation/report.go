package propagation

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// Known says whether everything was looked at since this replica leads, or since the configuration changed. Before that,
// what is not in Troubles may be in trouble all the same.
func (e *Engine) Known() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known
}

// getKnown looks, until ctx is done, whether the work that was there at the start is done.
func (e *Engine) getKnown(ctx context.Context) {
	for ctx.Err() == nil {
		if e.Ready(nil) == nil && e.working.Load() == 0 && e.queue.Len() == 0 {
			e.mu.Lock()
			if !e.known && !e.troubles.retried() {
				e.known = true
				e.tellAll()
			}
			e.mu.Unlock()
		}
		e.tellOfStuck()
		select {
		case <-ctx.Done():
		case <-time.After(e.Timing.ScrubTick):
		}
	}
}

// Troubles are what keeps copies in these namespaces from being what they should be, in alphabetical order. What waits
// for the removal of others is told when nothing has moved for a while.
func (e *Engine) Troubles(namespaces iter.Seq[string]) []propagate.Trouble {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.troubles) == 0 && len(e.waiting) == 0 {
		return nil
	}
	var all []propagate.Trouble
	for namespace := range namespaces {
		told := map[propagate.Slot]bool{}
		if w := e.waiting[namespace]; w != nil && w.told {
			for _, t := range e.inTheWay(namespace) {
				told[t.Slot] = true
				all = append(all, t)
			}
		}
		for slot, t := range e.troubles[namespace] {
			if t.reason != "" && !t.silent && !told[slot] {
				all = append(all, propagate.Trouble{Slot: slot, Reason: t.reason, From: t.from, Text: t.text})
			}
		}
	}
	slices.SortFunc(all, propagate.Trouble.Compare)
	return all
}

// inTheWay are the copies in namespace that others wait for. The caller holds the lock.
func (e *Engine) inTheWay(namespace string) []propagate.Trouble {
	var all []propagate.Trouble
	for _, slot := range e.world.SlotsIn(namespace) {
		c := e.world.Copy(slot)
		if c == nil || !c.Ours || !c.Terminating && e.world.Plan(slot).Verb != propagate.Delete {
			continue
		}
		text := "it is yet to be removed before others come"
		if c.Kept != nil && len(c.Kept.Finalizers) > 0 {
			text = fmt.Sprintf("it is yet to be removed before others come, and has the finalizer %s", c.Kept.Finalizers[0])
		} else if t := e.troubles.of(slot); t != nil && t.reason == v1alpha1.ReasonRejected {
			text = "it is yet to be removed before others come, and that is refused: " + t.text
		}
		all = append(all, propagate.Trouble{Slot: slot, Reason: v1alpha1.ReasonWaitingForRemoval, From: c.From, Text: text})
	}
	return all
}

// pause is what a namespace makes in which copies must go before others come.
type pause struct {
	since time.Time
	told  bool // for it has lasted
}

// hold notes that something in namespace waits for removals. The caller holds the lock.
func (e *Engine) hold(namespace string) {
	if e.waiting[namespace] == nil {
		e.waiting[namespace] = &pause{since: time.Now()}
	}
}

// waitsNoLonger ends the pause of a namespace. It says whether there was one. The caller holds the lock.
func (e *Engine) waitsNoLonger(namespace string) bool {
	w := e.waiting[namespace]
	if w == nil {
		return false
	}
	delete(e.waiting, namespace)
	if w.told {
		e.tell(namespace)
	}
	return true
}

// tellOfStuck tells of namespaces in which nothing has moved for a while.
func (e *Engine) tellOfStuck() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for namespace, w := range e.waiting {
		if !w.told && time.Since(w.since) >= e.Timing.Stuck {
			w.told = true
			e.tell(namespace)
		}
	}
}

// tell says that these namespaces, and those above them, have something new to report. The caller holds the lock.
func (e *Engine) tell(namespaces ...string) {
	for _, name := range namespaces {
		if name != "" {
			e.tellAbove(e.world.Forest, name)
		}
	}
}

// tellAbove says so of a namespace and of those above it in that forest. The caller holds the lock.
func (e *Engine) tellAbove(s *forest.Snapshot, name string) {
	if e.Troubled != nil && e.known {
		e.Troubled(name)
		e.Troubled(s.Place(name).Path...)
	}
}

// tellAll tells of all troubles, and those who may have told of some before the start. The caller holds the lock.
func (e *Engine) tellAll() {
	e.tell(slices.Collect(maps.Keys(e.troubles))...)
	e.tell(slices.Collect(maps.Keys(e.waiting))...)
	for name := range e.world.Forest.All() {
		if e.Troubled != nil && e.world.Forest.Hierarchy(name) != nil {
			e.Troubled(name)
		}
	}
}

// moved tells those above namespaces with troubles, before and after a change, and forgets what was wrong in one that is
// gone. The caller holds the lock.
func (e *Engine) moved(c index.Change) {
	if len(e.troubles) == 0 {
		return
	}
	for _, namespace := range c.Namespaces {
		if e.troubles[namespace] == nil {
			continue
		}
		if c.New.Namespace(namespace) == nil {
			for _, t := range e.troubles[namespace] {
				e.tell(t.from)
			}
			delete(e.troubles, namespace)
		}
		for _, s := range []*forest.Snapshot{c.Old, c.New} {
			e.tellAbove(s, namespace)
		}
	}
}
