package distribution

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// review looks at all targets of a distribution together: may copies be made, which may be updated now, what is to be
// written, and what is to be reported.
func (c *Controller) review(ctx context.Context, name string) {
	c.mu.Lock()
	r := c.runs[name]
	if r == nil {
		keys := c.farewells(name)
		c.mu.Unlock()
		c.enqueue(keys...)
		return
	}
	if r.Deleting {
		c.mu.Unlock()
		return
	}
	r.dueAt = time.Time{}
	d, found := r.Distribution, distribute.Review{Admitted: r.admitted}
	k, ready := c.observed(r, &found)
	if !ready {
		c.mu.Unlock()
		return
	}
	if r.Problem != "" || found.Unobserved != "" {
		c.mu.Unlock()
		c.report(ctx, r, d, found, false)
		return
	}
	f := c.Index.Snapshot()
	results, known := c.planTargets(ctx, r, f, k)
	if !known {
		c.mu.Unlock()
		return
	}
	fresh := c.admit(r, results)
	fresh = c.gateUpdates(r, f, results, &found) || fresh
	r.judged, r.unreported = r.Distribution, r.unreported || fresh
	urgent := r.unreported
	results = c.results(r, f)
	c.followObstacles(r, results, k)
	found.Results, found.NotFound, found.Admitted = results, r.Targets.NotFound(f), r.admitted
	found.Checked = true
	c.mu.Unlock()

	if urgent {
		if !c.report(ctx, r, d, found, true) {
			return // what a restart must know comes before the first write
		}
		c.mu.Lock()
		r.unreported = false
		c.mu.Unlock()
	}
	c.enqueueWrites(r, results)
	if !urgent {
		c.report(ctx, r, d, found, false)
	}
}

// planTargets plans all targets, after a look for obstacles where one is due. known is false where that failed, or the distribution
// has changed meanwhile: then its next review is queued. The caller holds the lock, which is released while the look lasts.
func (c *Controller) planTargets(ctx context.Context, r *run, f *forest.Snapshot, k *kind) (results []distribute.Result, known bool) {
	d, results := r.Distribution, c.results(r, f)
	if !c.mustList(r, results) {
		return results, true
	}
	c.mu.Unlock()
	found := c.check(ctx, r, k)
	c.mu.Lock()
	if !found || r.Distribution != d {
		return nil, false
	}
	return c.results(r, f), true
}

// observed says whether anything can be said of r: its kind is known, or known not to be.
func (c *Controller) observed(r *run, found *distribute.Review) (k *kind, ready bool) {
	if !c.synced || !c.Index.Synced() {
		return nil, false
	}
	if r.Problem != "" {
		return nil, true
	}
	gk := r.Template.Kind.GroupKind()
	k = c.kinds[gk]
	switch {
	case k == nil || k.state == kindSyncing:
		return k, false
	case k.state == kindForbidden:
		found.Unobserved = "the operator may not list or watch " + k.Kind + "s: give its ClusterRole get, list and watch on them"
	case k.state == kindDegraded:
		found.Unobserved = fmt.Sprintf("the API server has not listed the copies of %s for %s, and nothing is distributed until it does: mend what serves the kind, "+
			"such as the conversion webhook of its CRD", gk, c.Timing.Degraded)
	case k.state == kindPending:
		found.Unobserved = "the API server does not serve " + gk.String()
	}
	return k, true
}

// results plans every target, and every copy that stands elsewhere. The caller holds the lock.
func (c *Controller) results(r *run, f *forest.Snapshot) []distribute.Result {
	var all []distribute.Result
	now := time.Now()
	for namespace := range f.All() {
		t := c.target(r, f, namespace)
		if t.Choice != distribute.Chosen && t.Copy == nil {
			continue
		}
		one := distribute.Result{Namespace: namespace, Action: r.Plan(t, r.gate)}
		if one.State == distribute.None && one.Verb == distribute.Nothing {
			continue
		}
		one.Unmarked = t.Choice == distribute.Chosen && r.Unmarked(t.Copy)
		if trouble := r.troubles[namespace]; trouble != nil && one.Verb != distribute.Nothing {
			one.Failure = trouble.failure
			trouble.due = now.After(trouble.until)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b distribute.Result) int {
		if a.Namespace < b.Namespace {
			return -1
		}
		return 1
	})
	return all
}

// mustList says whether somebody must look for obstacles now: before the first copies, and after a start where some are
// missing. What comes one by one later is told by the answer to its POST. The caller holds the lock.
func (c *Controller) mustList(r *run, results []distribute.Result) bool {
	if r.watch != nil && r.watch.synced {
		return false
	}
	missing := slices.ContainsFunc(results, func(one distribute.Result) bool { return one.State == distribute.Missing })
	return missing && (!r.looked || r.Suspend || r.AllOrNothing() && r.admitted != r.Check)
}

// check looks for obstacles. It returns false if that failed: then it is tried again.
func (c *Controller) check(ctx context.Context, r *run, k *kind) bool {
	found, err := c.listObstacles(ctx, r.Distribution, k.resource)
	if err != nil {
		ctrl.Log.WithName("distribution").Error(err, "looking for conflicts; it is tried again", "distribution", r.Name)
		c.queue.AddAfter(key{distribution: r.Name}, c.Timing.Pace)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.looked, r.obstacles = true, found
	return true
}

// admit lets copies be made where the check for conflicts passes. It says whether a restart must know that before the first write,
// because objects are to be made or taken up. The caller holds the lock.
func (c *Controller) admit(r *run, results []distribute.Result) (fresh bool) {
	r.gate.Create = true
	if !r.AllOrNothing() || r.admitted == r.Check {
		return false
	}
	for _, one := range results {
		known := c.copies.At(r.Template.Slot(one.Namespace))
		if blocks, unknown := r.Blocks(one.Action, known != nil && known.Ours && known.By == r.Name); blocks || unknown {
			r.gate.Create = false
		}
	}
	if !r.gate.Create || r.Suspend {
		return false
	}
	r.admitted = r.Check
	return slices.ContainsFunc(results, func(one distribute.Result) bool {
		return one.State == distribute.Missing || one.State == distribute.InConflict
	})
}

// gateUpdates decides which copies may be updated now. It says whether a batch begins that a restart must know of. The
// caller holds the lock.
func (c *Controller) gateUpdates(r *run, f *forest.Snapshot, results []distribute.Result, found *distribute.Review) (fresh bool) {
	count := 0
	var outdated []string
	for _, one := range results {
		known := c.copies.At(r.Template.Slot(one.Namespace))
		if one.State == distribute.None || known == nil || !known.Ours || known.By != r.Name || known.Terminating {
			continue
		}
		count++
		if known.Content != r.Template.Content {
			outdated = append(outdated, one.Namespace)
		}
	}
	r.gate.Held, r.gate.Updates = nil, nil
	if len(outdated) == 0 {
		r.batch = nil
		return false
	}
	r.Rollout.Order(f, outdated)
	open := r.Rollout.Open(outdated, count)
	if found.Held = len(outdated) - len(open); found.Held > 0 {
		r.gate.Held = map[string]bool{}
		for _, namespace := range outdated[len(open):] {
			r.gate.Held[namespace] = true
		}
	}
	if !r.Rollout.Batched() || r.Suspend || len(open) == 0 {
		return false
	}
	return c.nextBatch(r, open, count, found)
}

// nextBatch goes on with a batch that is under way, or begins the next when its time has come: the pause counts from the end of a
// batch, but after a restart, when nobody knows what was under way, from its beginning. The caller holds the lock.
func (c *Controller) nextBatch(r *run, open []string, count int, found *distribute.Review) (fresh bool) {
	underWay := slices.ContainsFunc(open, func(namespace string) bool {
		return r.batch[namespace] && r.troubles[namespace] == nil
	})
	if !underWay {
		pause := time.Now().Add(r.Rollout.Interval()).Truncate(time.Second).Add(time.Second) // a status holds whole seconds
		if len(r.batch) > 0 {
			r.next = pause
		}
		r.batch = map[string]bool{}
		if wait := time.Until(r.next); wait > 0 {
			c.queue.AddAfter(key{distribution: r.Name}, wait)
		} else {
			for _, namespace := range open[:min(len(open), r.Rollout.Batch(count))] {
				r.batch[namespace] = true
			}
			r.next, fresh = pause, true
		}
	}
	r.gate.Updates, found.NextBatch = maps.Clone(r.batch), r.next
	return fresh
}

// followObstacles watches what stands in the way as long as anything does. The caller holds the lock.
func (c *Controller) followObstacles(r *run, results []distribute.Result, k *kind) {
	inTheWay := slices.ContainsFunc(results, func(one distribute.Result) bool {
		return one.State == distribute.InConflict && c.copies.At(r.Template.Slot(one.Namespace)) == nil
	})
	switch {
	case inTheWay:
		c.watchObstacles(r, k.resource)
	default:
		r.stopWatch()
		r.obstacles = map[string]*distribute.Obstacle{}
	}
}

// enqueueWrites has everything written that the plan says, in the order of a roll-out.
func (c *Controller) enqueueWrites(r *run, results []distribute.Result) {
	if !r.Distributes() {
		return
	}
	c.mu.Lock()
	var keys []key
	for _, one := range results {
		if t := r.troubles[one.Namespace]; one.Verb != distribute.Nothing && (t == nil || t.due) && !r.open[one.Namespace] {
			keys = append(keys, key{r.Name, one.Namespace})
		}
	}
	c.mu.Unlock()
	c.enqueue(keys...)
}

// farewells are the keys of copies whose distribution is gone. The caller holds the lock.
func (c *Controller) farewells(name string) []key {
	if !c.synced {
		return nil
	}
	var keys []key
	for slot, one := range c.copies.All() {
		if one.By == name && distribute.Farewell(one) != distribute.Nothing {
			keys = append(keys, key{name, slot.Namespace})
		}
	}
	return keys
}

// reviewSoon has a distribution reviewed when nothing is left to be written, or after a while.
func (c *Controller) reviewSoon(r *run) {
	c.mu.Lock()
	now := time.Now()
	idle, late := len(r.open) == 0, r.dueAt.IsZero() || now.After(r.dueAt)
	if !idle && late {
		r.dueAt = now.Add(c.Timing.Pace)
	}
	c.mu.Unlock()
	switch k := (key{distribution: r.Name}); {
	case idle:
		c.queue.Add(k)
	case late:
		c.queue.AddAfter(k, c.Timing.Pace)
	}
}
