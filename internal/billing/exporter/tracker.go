package exporter

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
)

// tracker turns each change of the cluster into events for the ledger, and puts these into the outbox at once. Each change is
// recorded, even if several follow within a second.
type tracker struct {
	clusterID string
	rules     forest.Rules
	api       client.WithWatch
	outbox    *billing.Outbox
	queue     *queue
	// interval is how often events that the outbox didn't take are put again.
	interval time.Duration
	// mostUnsaved limits the length of unsaved. Beyond it all are dropped, and the next comparison finds them again.
	mostUnsaved int

	// feeds are the watches, once Start has begun.
	feeds atomic.Pointer[[]*feed]

	// mu guards the fields below. It is held during a comparison, which queries the warehouse; the watches fill the queue
	// meanwhile, so they never wait.
	mu sync.Mutex
	// cluster is nil until everything that exists has been read.
	cluster *cluster
	// open holds, by namespace, the periods that will be open in the ledger once the outbox is empty.
	open map[string]billing.Open
	// ended is when each namespace's last period ended. left counts the ENDs, since the last comparison, of namespaces that still exist.
	ended map[string]time.Time
	left  int
	// leftAt holds the namespaces whose END the next comparison decides about. The value is when the exporter saw that the namespace
	// had left its tenant.
	leftAt map[string]time.Time
	// assumed holds, by namespace, the values from which the method begin filled the field open. Namespaces that have changed since are left
	// out. It is nil once a comparison has replaced open.
	assumed map[string]billing.Desired
	// unsaved are events that the outbox didn't take, and problem is why; nil once it has taken all.
	unsaved []billing.Event
	problem error
	// lost reports that more events than mostUnsaved were unsaved and have been dropped. Until the next comparison it isn't known
	// which tenants they concerned.
	lost bool
}

// Start implements manager.Runnable. Only the leader tracks.
func (t *tracker) Start(ctx context.Context) error {
	var following sync.WaitGroup
	defer following.Wait()
	feeds := newFeeds(t.queue)
	t.feeds.Store(&feeds)
	for _, f := range feeds { // LNamespaces are followed once all Namespaces are known
		following.Go(func() { f.followLNamespaces(ctx, t.api) })
		select {
		case <-ctx.Done():
			return nil
		case <-f.synced:
		}
	}
	t.begin()
	ticker := time.NewTicker(t.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.queue.signal:
		case <-ticker.C:
		}
		t.advance(ctx)
	}
}

// begin takes what the watches have read first into the cluster's state, and assumes that the ledger agrees with it. The first comparison
// replaces that assumption by what the ledger has.
func (t *tracker) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, began := newCluster(t.rules), t.queue.now()
	for _, change := range t.queue.take() {
		c.apply(change)
	}
	t.open, t.ended, t.leftAt = map[string]billing.Open{}, map[string]time.Time{}, map[string]time.Time{}
	t.assumed, _ = c.all()
	for name, d := range t.assumed {
		d.Since = began
		t.assumed[name], t.open[name] = d, d.Opened(t.clusterID, name)
	}
	t.cluster = c
}

// advance applies the queued changes, and puts their events into the outbox.
func (t *tracker) advance(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applyQueued()
	t.save(ctx)
}

func (t *tracker) applyQueued() {
	for _, change := range t.queue.take() {
		names, made := t.cluster.apply(change)
		for _, name := range names {
			if event, ok := t.event(name, change.seen, made); ok {
				t.recordAssumed(name)
				t.remember(event)
				t.unsaved = append(t.unsaved, event)
			}
		}
	}
}

// recordAssumed queues the SET of the values that a namespace had at begin, ahead of its first change. The ledger may have older values,
// and a comparison after the change would not find the values in between. The view ignores a SET of values that the ledger has already.
func (t *tracker) recordAssumed(name string) {
	if d, ok := t.assumed[name]; ok {
		t.unsaved = append(t.unsaved, d.Begin(t.clusterID, name, time.Time{}))
		delete(t.assumed, name)
	}
}

// event returns the event that makes the ledger agree with the cluster about a namespace, and false if they agree. made is when the changed
// object was made if it is new, else zero. If made is zero, or the namespace is older than that object, the namespace came to its tenant by
// this change. Its first SET is then dated seen.
func (t *tracker) event(name string, seen, made time.Time) (billing.Event, bool) {
	open, was := t.open[name]
	desired, holding := t.cluster.desired(name)
	if holding != unheld {
		delete(t.leftAt, name)
	}
	switch {
	case holding == held && !was:
		if made.IsZero() || desired.Made.Before(made) {
			desired.Since = seen
		}
		return desired.Begin(t.clusterID, name, t.ended[name]), true
	case holding == held:
		return open.Change(t.clusterID, desired, seen)
	case holding == unheld && was:
		if t.leftAt[name].IsZero() {
			t.leftAt[name] = seen
		}
		if t.mayEnd(name) {
			end := open.End(t.clusterID, t.leftAt[name])
			delete(t.leftAt, name)
			return end, true
		}
	}
	return billing.Event{}, false
}

// mayEnd reports whether the namespace's period may end now. It may if the namespace is gone. If namespaces exist but belong to no tenant
// any more, only a few of their periods may end between two comparisons. Beyond that the next comparison decides, because a tree that lost
// a label must not end the periods of half a cluster.
func (t *tracker) mayEnd(name string) bool {
	if t.cluster.forest.Namespace(name) == nil {
		return true
	}
	if t.left++; t.left > max(1, len(t.open)/5) {
		return false // the next comparison decides
	}
	return true
}

// keepEnds is how long the end of a period is remembered. The next SET of that namespace must be dated after it, even if the namespace's
// creationTimestamp, which is cut to seconds, is earlier.
const keepEnds = time.Hour

func (t *tracker) remember(event billing.Event) {
	if event.Op == billing.End {
		delete(t.open, event.Namespace)
		t.ended[event.Namespace] = event.EffectiveAt
		return
	}
	delete(t.ended, event.Namespace)
	t.open[event.Namespace] = event.Opened()
}

// save puts the unsaved events into the outbox. Events that the outbox doesn't take stay unsaved, up to mostUnsaved.
func (t *tracker) save(ctx context.Context) {
	if len(t.unsaved) == 0 {
		return
	}
	err := t.outbox.Put(ctx, t.unsaved...)
	t.problem = err
	if err == nil {
		t.unsaved = nil
		return
	}
	outboxFailures.Inc()
	message, changes := "changes wait in memory until the outbox takes them", len(t.unsaved)
	if changes > t.mostUnsaved {
		message, t.unsaved, t.lost = "too many changes wait for the outbox; the next comparison finds them again", nil, true
	}
	ctrllog.FromContext(ctx).WithName("billing").Error(err, message, "changes", changes)
}

// sight returns the time until which all changes have been seen: the earliest of the times at which the watches were last confirmed.
// trouble is the error of a watch that fails; nil if none does.
func (t *tracker) sight() (until time.Time, trouble error) {
	feeds := t.feeds.Load()
	if feeds == nil {
		return t.queue.now(), nil
	}
	for i, f := range *feeds {
		confirmed, failed := f.sight()
		if i == 0 || confirmed.Before(until) {
			until = confirmed
		}
		if failed != nil && trouble == nil {
			trouble = failed
		}
	}
	return until, trouble
}

// beforeLeft returns settled, or the earliest time in leftAt if that is earlier than settled.
func (t *tracker) beforeLeft(settled time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.leftAt {
		if at.Before(settled) {
			settled = at
		}
	}
	return settled
}

// isIdle reports whether the events of every change seen so far are in the outbox.
func (t *tracker) isIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cluster != nil && t.queue.isEmpty() && len(t.unsaved) == 0 && !t.lost
}

// tenants returns all tenants; the UIDs of those with changes that the outbox hasn't taken, which are all if lost is set; and why
// the outbox hasn't taken them. It returns nil until everything was read once.
func (t *tracker) tenants() (all []*tenantFacts, unsaved map[string]bool, problem error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cluster == nil {
		return nil, nil, nil
	}
	unsaved = map[string]bool{}
	for _, event := range t.unsaved {
		unsaved[event.TenantUID] = true
	}
	if t.lost {
		for _, tenant := range t.cluster.payers {
			unsaved[string(tenant.uid)] = true
		}
	}
	return slices.AppendSeq(make([]*tenantFacts, 0, len(t.cluster.payers)), maps.Values(t.cluster.payers)), unsaved, t.problem
}

// share replaces strings of the periods by equal strings that are in memory already, to save memory.
func (t *tracker) share(periods []billing.Open) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, period := range periods {
		periods[i] = sharing(period, t.open[period.Namespace])
	}
}

// isReady reports whether all Namespaces and LNamespaces were read once. It stays false on a standby.
func (t *tracker) isReady() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cluster != nil
}

// ledger is the part of billing.Store that a comparison queries.
type ledger interface {
	Latest(ctx context.Context, namespaces []string) (billing.Latest, error)
}

// compare plans the events that the ledger lacks, from the cluster, the open periods and the events that wait, and puts them into
// the outbox. The caller has read the open periods and the watermark just before, and flushes nothing until compare returns.
func (t *tracker) compare(ctx context.Context, store ledger, open []billing.Open, completeUntil, seen time.Time,
	holdFor time.Duration) (billing.Plan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applyQueued()
	t.save(ctx)
	waiting, err := t.outbox.All(ctx)
	if err != nil {
		return billing.Plan{}, err
	}
	waiting = append(waiting, t.unsaved...)
	heldBack, err := t.outbox.Held(ctx)
	if err != nil {
		return billing.Plan{}, err
	}
	open = billing.Overlaid(open, waiting)
	desired, unknown := t.cluster.all()
	plan := billing.Diff(billing.Comparison{Cluster: t.clusterID, Desired: desired, Unknown: unknown, Complete: true, Seen: seen,
		CompleteUntil: completeUntil, Open: open, LeftAt: t.leftAt, Held: heldBack, HoldFor: holdFor})
	latest, err := store.Latest(ctx, plan.Namespaces())
	if err != nil {
		return billing.Plan{}, err
	}
	plan = plan.After(latest.With(waiting))
	if err := t.outbox.Hold(ctx, plan.Held); err != nil {
		return billing.Plan{}, err
	}
	t.adopt(open, plan, seen)
	t.save(ctx)
	return plan, nil
}

// adopt replaces what is known of the ledger by what a comparison has read and planned.
func (t *tracker) adopt(open []billing.Open, plan billing.Plan, seen time.Time) {
	t.open, t.assumed, t.lost = make(map[string]billing.Open, len(open)), nil, false
	for _, period := range open {
		t.open[period.Namespace] = period
	}
	for _, event := range plan.Events() {
		t.remember(event)
	}
	t.unsaved = append(t.unsaved, plan.Events()...)
	maps.DeleteFunc(t.ended, func(_ string, end time.Time) bool { return seen.Sub(end) > keepEnds })
	t.left = 0
	clear(t.leftAt)
}
