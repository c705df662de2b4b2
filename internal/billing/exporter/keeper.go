package exporter

import (
	"context"
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

// keeper brings the ledger to what the cluster shows. Every flushEvery it writes what the ledger lacks, and moves the
// watermark. First, and then every compareEvery, it reads the open periods and compares. Only the leader does this.
type keeper struct {
	store   ledger
	tracker *tracker
	clock   clock.PassiveClock
	events  record.EventRecorder
	self    *corev1.ObjectReference
	run     billing.Run
	// flushEvery and compareEvery are the configured intervals. watermarkEvery is the engine's least time between two
	// watermarks.
	flushEvery, compareEvery, watermarkEvery time.Duration
	// timeout limits one exchange with the warehouse.
	timeout time.Duration
	// askedToEnd reports whether this process was asked to end. If it ends otherwise, another exporter may lead by now.
	askedToEnd func() bool

	ensured bool
	// restFrom is when an error began after which nothing is sent for the time rest.
	restFrom   time.Time
	rest       time.Duration
	comparedAt time.Time
	running    bool
	// completeUntil is the watermark; before this process has moved it, the one that the first comparison has read.
	completeUntil time.Time

	// mu guards the fields below; the reporter reads them.
	mu       sync.Mutex
	blind    error
	err      error
	trouble  billing.Trouble
	compared bool
}

// ledger is the part of billing.Store that the keeper uses.
type ledger interface {
	Ready(ctx context.Context) error
	OpenPeriods(ctx context.Context) ([]billing.Open, error)
	Latest(ctx context.Context, namespaces []string) (map[string]time.Time, error)
	Sift(ctx context.Context, events []billing.Event) (added int64, refused []billing.Refused, err error)
	CompleteUntil(ctx context.Context) (time.Time, error)
	StartRun(ctx context.Context, run billing.Run) error
	MoveWatermark(ctx context.Context, id string, until time.Time) error
	Trouble(err error) billing.Trouble
	Explain(err error) error
}

// Start implements manager.Runnable.
func (k *keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, k.runDue, k.flushEvery)
	if k.askedToEnd() {
		k.writeLast(context.WithoutCancel(ctx))
	}
	return nil
}

// lastFlush limits the time of the last flush, when the exporter ends: its pod is killed 15 s after the exporter was
// asked to end.
const lastFlush = 10 * time.Second

// writeLast writes the changes seen so far, when the exporter ends. It saves the next exporter a comparison's coarser
// times.
func (k *keeper) writeLast(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastFlush)
	defer cancel()
	if k.isResting() {
		return
	}
	if err := k.writeEvents(ctx); err != nil {
		ctrllog.FromContext(ctx).WithName("billing").Error(err,
			"the exporter was asked to end and could not send its last changes to the ledger; the next exporter finds them")
	}
}

// runDue performs the steps that are due. The first error ends them until the next call.
func (k *keeper) runDue(ctx context.Context) {
	began := time.Now()
	err := k.store.Explain(k.runSteps(ctx))
	if ctx.Err() != nil {
		return
	}
	k.recordOutcome(ctx, err, time.Since(began))
	if b := k.tracker.readBacklog(); b != nil {
		measureBacklog(b, k.clock.Now())
	}
}

func (k *keeper) runSteps(ctx context.Context) error {
	if k.isResting() {
		return k.lastError()
	}
	seen, blind := k.tracker.findConfirmed()
	k.reportSight(seen, blind)
	// A watermark in the future would claim changes that the exporter has not seen yet.
	if now := k.clock.Now(); seen.After(now) {
		seen = now
	}
	if !k.tracker.isReady() {
		return nil
	}
	if err := k.ensureTable(ctx); err != nil {
		return err
	}
	if k.comparisonDue() {
		if err := k.comparePeriods(ctx); err != nil {
			return err
		}
	}
	if err := k.writeEvents(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	k.compared = true
	k.mu.Unlock()
	return k.moveWatermark(ctx, k.tracker.findCompleteness(seen.Add(-sightMargin).Truncate(time.Second)))
}

// sightMargin is how far the watermark stays behind the last message of the watches. A message takes time to arrive,
// the clock may differ by tolerance, and the API server cuts its times to seconds.
const sightMargin = tolerance + 2*time.Second

// isResting reports whether nothing may be sent yet after an error. A clock that was set back ends the rest.
func (k *keeper) isResting() bool {
	passed := k.clock.Now().Sub(k.restFrom)
	return passed >= 0 && passed < k.rest
}

// ensureTable creates or verifies the table and the view: once per process, and again after an error that they may have
// caused.
func (k *keeper) ensureTable(ctx context.Context) error {
	if k.ensured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	err := k.store.Ready(ctx)
	k.ensured = err == nil
	return err
}

func (k *keeper) comparisonDue() bool {
	now := k.clock.Now()
	return k.comparedAt.IsZero() || now.Sub(k.comparedAt) >= k.compareEvery || now.Before(k.comparedAt)
}

// comparePeriods reads the open periods, and makes the tracker record where the cluster differs. Events of an earlier
// try are sent first, so that the periods have them.
func (k *keeper) comparePeriods(ctx context.Context) error {
	if err := k.writeEvents(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	first := k.comparedAt.IsZero()
	if first {
		until, err := k.store.CompleteUntil(ctx)
		if err != nil {
			return err
		}
		k.completeUntil = until
	}
	seen := k.clock.Now()
	open, err := k.store.OpenPeriods(ctx)
	if err != nil {
		return err
	}
	found := k.tracker.takePeriods(open)
	if k.comparedAt = seen; !first {
		driftRows.Add(float64(found))
	}
	comparedMetric.Set(float64(seen.Unix()))
	return nil
}

// writeEvents brings the ledger to the recorded states. Before the first comparison there is nothing to write.
func (k *keeper) writeEvents(ctx context.Context) error {
	for {
		if wrote, err := k.writePlanned(ctx); err != nil || !wrote {
			return err
		}
	}
}

// writePlanned plans once, writes the events of the plan, and reports whether there were any.
func (k *keeper) writePlanned(ctx context.Context) (wrote bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	asked := k.tracker.findBeginning()
	latest, err := k.store.Latest(ctx, asked)
	if err != nil {
		return false, err
	}
	events, held := k.tracker.planEvents(asked, latest, k.completeUntil, k.compareEvery/2)
	if held > 0 {
		k.events.Event(k.self, corev1.EventTypeWarning, eventHeld,
			fmt.Sprintf("%d namespaces with open periods belong to no tenant now, too many at once. The exporter ends these periods only "+
				"%s later. To keep them open, restore the labels or LNamespaces before that", held, k.compareEvery/2))
	}
	if len(events) == 0 {
		k.tracker.recordSent(nil)
		return false, nil
	}
	added, refused, err := k.store.Sift(ctx, events)
	writtenRows.Add(float64(added))
	if err != nil {
		return false, err
	}
	k.tracker.recordSent(refused)
	for _, r := range refused {
		refusedRows.Inc()
		ctrllog.FromContext(ctx).WithName("billing").Info("the ledger refused the data of a change; the next comparison tries it again",
			"tenant", r.Event.Tenant, "namespace", r.Event.Namespace, "reason", r.Reason.Error())
	}
	return true, nil
}

// moveWatermark moves the watermark to settled: the ledger has all changes before that time. The watermark stays if
// settled is the zero time, or is less than watermarkEvery after the watermark. If the clock was set back, the
// watermark moves back too.
func (k *keeper) moveWatermark(ctx context.Context, settled time.Time) error {
	moved := settled.Sub(k.completeUntil)
	if settled.IsZero() || k.running && moved >= 0 && moved < max(k.watermarkEvery, 1) {
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
	k.completeUntil = settled
	watermark.Set(float64(settled.Unix()))
	return nil
}

// recordOutcome stores the outcome for the reporter, and writes Events and logs when the trouble changes.
func (k *keeper) recordOutcome(ctx context.Context, err error, took time.Duration) {
	log := ctrllog.FromContext(ctx).WithName("billing")
	trouble := billing.Trouble("")
	if err != nil {
		trouble = k.store.Trouble(err)
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
		k.events.Event(k.self, corev1.EventTypeWarning, eventDown, fmt.Sprintf("%s: %v; the exporter writes the difference later, "+
			"and tenants can work meanwhile", trouble, err))
		log.Error(err, "the ledger can't be written; the exporter writes the difference later", "trouble", trouble)
	}
	if err == nil {
		lastSuccess.Set(float64(k.clock.Now().Unix()))
		return
	}
	if trouble == billing.Mismatch || trouble == billing.Denied { // the ledger may be another one afterwards
		k.ensured, k.comparedAt = false, time.Time{}
	}
	if pause := trouble.Pause(); pause > 0 && !k.isResting() {
		k.restFrom, k.rest = k.clock.Now(), pause
	}
}

func (k *keeper) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// readState returns what the reporter reads: the last outcome, whether a comparison has succeeded yet, and why the
// exporter doesn't see the cluster, which is nil if it does.
func (k *keeper) readState() (trouble billing.Trouble, compared bool, lastError, blind error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trouble, k.compared, k.err, k.blind
}
