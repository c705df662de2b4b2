package exporter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
)

// eventNotWritten and eventWritten are reasons of Events on the exporter's Deployment.
const (
	eventNotWritten = "BillingHoursNotWritten"
	eventWritten    = "BillingHoursWritten"
)

// usageSender sends the rows of hours from the outbox to the warehouse. Its pauses after errors are its own, so that an error of
// the table of hours delays no event. It runs on standbys too, as the keeper does.
type usageSender struct {
	store  *billing.Store
	outbox *billing.Outbox
	clock  clock.PassiveClock
	events record.EventRecorder
	self   *corev1.ObjectReference
	// manage says that the exporter creates the table and the view; otherwise it only verifies them.
	manage bool
	batch  int
	// every is the time between two sendings, timeout limits one exchange with the warehouse.
	every, timeout time.Duration

	ensured bool
	rest    billing.Rest
	trouble billing.Trouble
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (u *usageSender) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (u *usageSender) Start(ctx context.Context) error {
	ticker := time.NewTicker(u.every)
	defer ticker.Stop()
	for {
		u.send(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// send sends all final rows, and writes Events and logs when the trouble changes.
func (u *usageSender) send(ctx context.Context) {
	if u.rest.Lasts(u.clock.Now()) {
		return
	}
	err := u.store.Explain(u.steps(ctx))
	if ctx.Err() != nil {
		return
	}
	if waiting, err := u.outbox.WaitingUsage(ctx); err == nil {
		waitingHours.Set(float64(waiting))
	}
	log, before := ctrllog.FromContext(ctx).WithName("billing"), u.trouble
	if err == nil {
		u.trouble = ""
		if before != "" {
			u.events.Event(u.self, corev1.EventTypeNormal, eventWritten, "the ledger takes hours again; all that waited is on its way")
			log.Info("the ledger takes hours again")
		}
		return
	}
	u.ensured = false
	u.trouble = u.store.Trouble(err)
	u.rest = billing.RestFor(u.trouble.Pause(), u.clock.Now())
	if u.trouble != before {
		u.events.Eventf(u.self, corev1.EventTypeWarning, eventNotWritten, "%s: %v; hours wait in the outbox, tenants don't", u.trouble, err)
		log.Error(err, "hours can't be written to the ledger; they wait in the outbox", "trouble", u.trouble)
	}
}

func (u *usageSender) steps(ctx context.Context) error {
	if err := u.ensure(ctx); err != nil {
		return err
	}
	for {
		rows, err := u.outbox.NextUsage(ctx, u.batch)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := u.append(ctx, rows); err != nil {
			return err
		}
		if err := u.outbox.DeleteUsage(ctx, rows); err != nil {
			return err
		}
	}
}

func (u *usageSender) append(ctx context.Context, rows []billing.Usage) error {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	_, err := u.store.AppendUsage(ctx, rows)
	return err
}

// ensure creates or verifies the table and the view of hours, once and again after each error. The view of hours reads the view of
// periods, so ensure creates that first.
func (u *usageSender) ensure(ctx context.Context) error {
	if u.ensured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	steps := []func(context.Context) error{u.store.Schema().VerifyUsage}
	if u.manage {
		steps = []func(context.Context) error{u.store.Schema().Ensure, u.store.Schema().EnsureUsage}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	u.ensured = true
	return nil
}

// measureHours adds the measurer and the usageSender to the loops. The piece that a former process measured last becomes final.
func (p *program) measureHours(ctx context.Context, api apiserver.Reader, c *config.Billing, keep *keeper) error {
	if err := p.outbox.FinishUsage(ctx); err != nil {
		return err
	}
	registerHours()
	measure := &measurer{api: api, outbox: p.outbox, clock: keep.clock, events: keep.events, self: keep.self,
		tick: min(5*time.Second, keep.flushEvery), saveEvery: min(keep.flushEvery, time.Minute), meter: billing.NewMeter(clusterID(c))}
	measure.sources = measure.newSources(c.Usage.GPUs)
	send := &usageSender{store: keep.store, outbox: p.outbox, clock: keep.clock, events: keep.events, self: keep.self, manage: keep.manage,
		batch: c.Batch.MaxRows, every: keep.flushEvery, timeout: keep.timeout}
	p.loops = append(p.loops, measure, send)
	return nil
}
