package exporter

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
)

// eventNotMeasured and eventMeasured are reasons of Events on the exporter's Deployment.
const (
	eventNotMeasured = "BillingHoursNotMeasured"
	eventMeasured    = "BillingHoursMeasured"
)

// measurer follows Pods and PersistentVolumeClaims and adds up what each namespace has reserved. Only the leader measures.
type measurer struct {
	api    apiserver.Reader
	outbox *billing.Outbox
	clock  clock.PassiveClock
	events record.EventRecorder
	self   *corev1.ObjectReference
	// tick is how often the meter advances without a change. saveEvery is how often the current piece of an hour (see
	// billing.Meter) is stored in the outbox, and so the most time that a crash loses.
	tick, saveEvery time.Duration

	// mu guards the fields below.
	mu      sync.Mutex
	meter   *billing.Meter
	sources []*source
	// frozenAt is when a watch failed, and so the meter's time until all watches work again; zero while they do.
	frozenAt time.Time

	savedAt time.Time
	told    bool
}

// Start implements manager.Runnable.
func (m *measurer) Start(ctx context.Context) error {
	var following sync.WaitGroup
	for _, s := range m.sources {
		following.Go(func() { s.follow(ctx, m.api) })
	}
	defer following.Wait()
	ticker := time.NewTicker(m.tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			m.save(last)
			return nil
		case <-ticker.C:
			m.advance(ctx)
		}
	}
}

// hold takes mu for a source, and returns what frees it.
func (m *measurer) hold() (free func()) {
	m.mu.Lock()
	return m.mu.Unlock
}

// now returns the time for the meter's next call. While a watch fails, now returns the time at which the failure began, because
// changes are missed meanwhile; if that lasts, the meter covers none of that time. The caller holds mu.
func (m *measurer) now() time.Time {
	for _, s := range m.sources {
		if s.failure != nil {
			if m.frozenAt.IsZero() {
				m.frozenAt = m.clock.Now()
			}
			return m.frozenAt
		}
	}
	m.frozenAt = time.Time{}
	return m.clock.Now()
}

func (m *measurer) advance(ctx context.Context) {
	m.mu.Lock()
	now, synced := m.now(), true
	var failure error
	for _, s := range m.sources {
		synced = synced && s.synced
		if failure == nil {
			failure = s.failure
		}
	}
	switch {
	case m.meter.Measuring():
		m.meter.Advance(now)
	case synced && failure == nil:
		m.meter.Begin(now)
	}
	m.mu.Unlock()
	m.tell(ctx, failure)
	if passed := now.Sub(m.savedAt); failure == nil && (passed >= m.saveEvery || passed < 0) {
		m.savedAt = now
		m.save(ctx)
	}
}

// save puts the finished pieces and the current one, as it is now, into the outbox.
func (m *measurer) save(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.meter.Measuring() {
		return
	}
	m.meter.Advance(m.now())
	givenUp, err := m.outbox.PutUsage(ctx, m.meter.Finished(), m.meter.Piece())
	log := ctrllog.FromContext(ctx).WithName("billing")
	if err != nil {
		outboxFailures.Inc()
		log.Error(err, "hours wait in memory until the outbox takes them", "rows", len(m.meter.Finished()))
		return
	}
	m.meter.Forget()
	measured.Set(float64(m.clock.Now().Unix()))
	if givenUp > 0 {
		givenUpHours.Add(float64(givenUp))
		log.Info("the outbox was full: the oldest hours are given up and are missing in the ledger; raise billing.outbox.maxRows or mend the warehouse", "rows", givenUp)
	}
}

// tell writes one Event and one log line when a watch begins to fail, and when all work again.
func (m *measurer) tell(ctx context.Context, failure error) {
	log := ctrllog.FromContext(ctx).WithName("billing")
	switch {
	case failure != nil && !m.told:
		m.events.Event(m.self, corev1.EventTypeWarning, eventNotMeasured, fmt.Sprintf("what namespaces have reserved is not measured: %v; "+
			"apply component billing-usage, which brings the right, or set billing.usage.enabled to false", failure))
		log.Error(failure, "what namespaces have reserved is not measured; apply component billing-usage, or set billing.usage.enabled to false")
	case failure == nil && m.told:
		m.events.Event(m.self, corev1.EventTypeNormal, eventMeasured, "what namespaces have reserved is measured again; the time between is missing")
		log.Info("what namespaces have reserved is measured again")
	}
	m.told = failure != nil
}
