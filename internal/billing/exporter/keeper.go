package exporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/internal/billing"
)

// Reasons of the Events on the exporter's Deployment.
const (
	eventDown      = "BillingWarehouseDown"
	eventRecovered = "BillingRecovered"
	eventHeld      = "BillingMassEndHeld"
	eventBlind     = "BillingClusterUnseen"
	eventSeeing    = "BillingClusterSeen"
)

// keeper sends the outbox's events to the warehouse, makes the tracker compare cluster and ledger, and moves the watermark. It runs
// on standbys too, so that events that a former leader has left in its outbox are sent. Only the leader's tracker is ready, so only
// the leader compares.
type keeper struct {
	store   *billing.Store
	outbox  *billing.Outbox
	flusher *billing.Flusher
	tracker *tracker
	clock   clock.PassiveClock
	events  record.EventRecorder
	self    *corev1.ObjectReference
	run     billing.Run
	// manage reports that the exporter creates the table and the view; otherwise it only verifies them.
	manage bool
	// flushEvery and compareEvery are the configured intervals. watermarkEvery is the engine's least time between two watermarks.
	flushEvery, compareEvery, watermarkEvery time.Duration
	// timeout limits one exchange with the warehouse.
	timeout time.Duration
	// askedToEnd reports whether this process was asked to end. If it ends otherwise, another exporter may lead by now.
	askedToEnd func() bool

	ensured    bool
	rest       billing.Rest
	comparedAt time.Time
	running    bool
	markedAt   time.Time

	// mu guards the fields below; the reporter reads them.
	mu       sync.Mutex
	blind    error
	err      error
	trouble  billing.Trouble
	compared bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *keeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k *keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, k.keep, k.flushEvery)
	if k.askedToEnd() {
		k.finish(context.WithoutCancel(ctx))
	}
	return nil
}

// lastFlush limits the time of the last flush, when the exporter ends: its pod is killed 15 s after the exporter was asked to end.
const lastFlush = 10 * time.Second

// finish puts the changes seen so far into the outbox and sends them, when the exporter ends: the outbox may be deleted with its pod.
func (k *keeper) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastFlush)
	defer cancel()
	if k.tracker.isReady() {
		k.tracker.advance(ctx)
	}
	if k.rest.Lasts(k.clock.Now()) {
		return
	}
	if err := k.flush(ctx); err != nil {
		ctrllog.FromContext(ctx).WithName("billing").Error(err,
			"the exporter was asked to end and could not send its last changes to the ledger; they stay in the outbox")
	}
}

// keep performs the steps that are due. The first error ends them until the next call.
func (k *keeper) keep(ctx context.Context) {
	began := time.Now()
	err := k.store.Explain(k.steps(ctx))
	if ctx.Err() != nil {
		return
	}
	k.recordOutcome(ctx, err, time.Since(began))
	if waiting, since, err := k.outbox.Waiting(ctx); err == nil {
		measureOutbox(waiting, since, k.clock.Now())
	}
}

func (k *keeper) steps(ctx context.Context) error {
	if k.rest.Lasts(k.clock.Now()) {
		return k.lastError()
	}
	settled, blind := k.tracker.sight()
	k.reportSight(settled, blind)
	if now := k.clock.Now(); settled.After(now) {
		settled = now
	}
	if !k.tracker.isIdle() {
		settled = time.Time{}
	}
	if err := k.ensure(ctx); err != nil {
		return err
	}
	if err := k.flush(ctx); err != nil {
		return err
	}
	if !k.tracker.isReady() {
		return nil
	}
	if k.comparisonDue() {
		if err := k.compare(ctx); err != nil {
			return err
		}
		return k.flush(ctx)
	}
	settled, err := k.beforeHeld(ctx, settled)
	if err != nil {
		return err
	}
	return k.mark(ctx, settled)
}

// beforeHeld returns the time until which the ledger is complete. That time is settled, unless an END is held back or waits for the next
// comparison. The time of such an END is when the exporter first saw that the namespace had left its tenant. The ledger doesn't hold the
// END yet, so it is complete until that time at most.
func (k *keeper) beforeHeld(ctx context.Context, settled time.Time) (time.Time, error) {
	settled = k.tracker.beforeLeft(settled)
	held, err := k.outbox.Held(ctx)
	for _, end := range held {
		if end.EffectiveAt.Before(settled) {
			settled = end.EffectiveAt
		}
	}
	return settled, err
}

// ensure creates or verifies the table and the view: once per process, and again after an error that they may have caused.
func (k *keeper) ensure(ctx context.Context) error {
	if k.ensured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	look := k.store.Schema().Verify
	if k.manage {
		look = k.store.Schema().Ensure
	}
	if err := look(ctx); err != nil {
		return err
	}
	k.ensured = true
	return nil
}

func (k *keeper) flush(ctx context.Context) error {
	done, err := k.flusher.Flush(ctx)
	flushedRows.Add(float64(done.Added))
	for _, parked := range done.Parked {
		parkedRows.Inc()
		ctrllog.FromContext(ctx).WithName("billing").Info("the ledger refused the data of a change; the exporter sets it aside",
			"tenant", parked.Event.Tenant,
			"namespace", parked.Event.Namespace, "reason", parked.Reason)
	}
	return err
}

func (k *keeper) comparisonDue() bool {
	now := k.clock.Now()
	return k.comparedAt.IsZero() || now.Sub(k.comparedAt) >= k.compareEvery || now.Before(k.comparedAt)
}

// compare reads the open periods, and makes the tracker queue the events that the ledger lacks. Parked events are queued again first.
func (k *keeper) compare(ctx context.Context) error {
	first := k.comparedAt.IsZero()
	if err := k.outbox.Unpark(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	open, err := k.store.OpenPeriods(ctx)
	if err != nil {
		return err
	}
	k.tracker.share(open)
	completeUntil, err := k.store.CompleteUntil(ctx)
	if err != nil {
		return err
	}
	seen := k.clock.Now()
	plan, err := k.tracker.compare(ctx, k.store, open, completeUntil, seen, k.compareEvery/2)
	if err != nil {
		return err
	}
	k.comparedAt = seen
	if !first {
		driftRows.Add(float64(len(plan.Events())))
	}
	comparedMetric.Set(float64(seen.Unix()))
	heldRows.Set(float64(len(plan.Held)))
	if len(plan.Held) > 0 {
		k.events.Event(k.self, corev1.EventTypeWarning, eventHeld,
			fmt.Sprintf("%d of %d namespaces with open periods belong to no tenant now. The exporter ends these periods only after a "+
				"second comparison, at least %s later. To keep them open, restore the labels or LNamespaces before that", len(plan.Held),
				len(open), k.compareEvery/2))
	}
	k.mu.Lock()
	k.compared = true
	k.mu.Unlock()
	return nil
}

// mark moves the watermark to settled. At that time all changes were in the outbox, and the outbox has been emptied since. The watermark
// stays if settled is the zero time, or is less than watermarkEvery after the watermark. If the clock was set back, the watermark moves
// back too.
func (k *keeper) mark(ctx context.Context, settled time.Time) error {
	if moved := settled.Sub(k.markedAt); settled.IsZero() || moved >= 0 && moved < k.watermarkEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	if !k.running {
		k.run.CompleteUntil = settled
		if err := k.store.StartRun(ctx, k.run); err != nil {
			return err
		}
		k.running = true
	} else if err := k.store.MoveWatermark(ctx, k.run.ID, settled); err != nil {
		return err
	}
	k.markedAt = settled
	watermark.Set(float64(settled.Unix()))
	return nil
}

// blindAfter is how long a watch may fail before the failure is reported. A watch that ends without an error is opened again in less time.
const blindAfter = time.Minute

// silentAfter is how long a watch may receive nothing before that is reported: without changes, the API server sends a bookmark about
// once a minute.
const silentAfter = 10 * time.Minute

// reportSight stores for the reporter why the exporter doesn't see changes in the cluster, and sends an Event when that begins and when
// it ends. until is the time until which the exporter has seen all changes.
func (k *keeper) reportSight(until time.Time, trouble error) {
	since := until
	if since.Before(k.run.StartedAt) {
		since = k.run.StartedAt
	}
	switch unseen := k.clock.Now().Sub(since); {
	case trouble != nil && unseen < blindAfter:
		trouble = nil
	case trouble == nil && unseen >= silentAfter:
		trouble = fmt.Errorf("a watch is open, and the API server has sent nothing on it since %s", since.UTC().Format(time.RFC3339))
	}
	k.mu.Lock()
	was := k.blind
	k.blind = trouble
	k.mu.Unlock()
	switch {
	case trouble != nil && was == nil:
		k.events.Event(k.self, corev1.EventTypeWarning, eventBlind,
			fmt.Sprintf("the exporter can't watch the cluster: %v. %s; later changes get the time at which the exporter sees them",
				trouble, describeComplete(until)))
	case trouble == nil && was != nil:
		k.events.Event(k.self, corev1.EventTypeNormal, eventSeeing, "the exporter watches the cluster again")
	}
}

// describeComplete returns the sentence about the time until which the exporter has seen all changes; the zero time means that it has not
// read the whole cluster since its start.
func describeComplete(until time.Time) string {
	if until.IsZero() {
		return "It has not read the whole cluster since its start, and kubectl warren billing status shows until when the ledger is complete"
	}
	return "The ledger is complete until " + until.UTC().Format(time.RFC3339)
}

// recordOutcome stores the outcome for the reporter, and writes Events and logs when the trouble changes.
func (k *keeper) recordOutcome(ctx context.Context, err error, took time.Duration) {
	log := ctrllog.FromContext(ctx).WithName("billing")
	trouble := billing.Trouble("")
	if err != nil {
		trouble = k.troubleOf(err)
	}
	k.mu.Lock()
	was := k.trouble
	k.err, k.trouble = err, trouble
	k.mu.Unlock()
	flushes.WithLabelValues(resultLabel(trouble)).Inc()
	flushSeconds.Observe(took.Seconds())
	switch {
	case err == nil && was != "":
		k.events.Event(k.self, corev1.EventTypeNormal, eventRecovered, "the ledger takes changes again; the exporter sends those that waited")
		log.Info("the ledger takes changes again")
	case err != nil && was != trouble:
		k.events.Event(k.self, corev1.EventTypeWarning, eventDown, fmt.Sprintf("%s: %v; changes wait in the outbox, "+
			"and tenants can work meanwhile", trouble, err))
		log.Error(err, "the ledger can't be written; changes wait in the outbox", "trouble", trouble)
	}
	if err == nil {
		lastSuccess.Set(float64(k.clock.Now().Unix()))
		return
	}
	if trouble == billing.Mismatch || trouble == billing.Denied {
		k.ensured = false
	}
	if now, pause := k.clock.Now(), trouble.Pause(); pause > 0 && !k.rest.Lasts(now) {
		k.rest = billing.RestFor(pause, now)
	}
}

func (k *keeper) troubleOf(err error) billing.Trouble {
	if flush, ok := errors.AsType[*billing.FlushError](err); ok {
		return flush.Trouble
	}
	return k.store.Trouble(err)
}

func (k *keeper) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// state returns what the reporter reads: the last outcome, whether a comparison has succeeded yet, and why the exporter doesn't see the
// cluster, which is nil if it does.
func (k *keeper) state() (trouble billing.Trouble, compared bool, lastError, blind error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble, k.compared, k.err, k.blind
}
