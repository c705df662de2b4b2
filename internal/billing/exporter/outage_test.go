package exporter

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
	ledgertest "github.com/warren-tenancy/warren/test/ledger"
)

// For an hour the warehouse is away, and each of a hundred namespaces changes ten times. The exporter may be killed after that.
func TestOutageOfAnHour(t *testing.T) {
	const namespaces, changes = 100, 10
	for engine, open := range engines(t) {
		for name, killed := range map[string]bool{
			"BILL-11 for an hour the warehouse answers 503, and 100 namespaces change ten times: afterwards the ledger has all changes":    false,
			"BILL-13 after an outage of an hour the exporter is killed: the next one appends the present state, from its recorded time on": true,
		} {
			t.Run(name+" on "+engine, func(t *testing.T) {
				store, db := open(t)
				now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
				var fault error
				way := &link{ledger: store, after: func(string) error { return nil }, before: func(statement string) error {
					if statement == "latest" {
						return nil // what is asked before each write is answered: the exporter plans its events, and then can't write them
					}
					return fault
				}}
				start := func(facts ...any) *broken {
					track := newTracker("c", forest.Rules{}, nil, now.Now)
					for _, f := range facts {
						track.takeChange(f, false)
					}
					track.beginTracking()
					return &broken{clock: now, keeper: &keeper{store: way, tracker: track, clock: now, timeout: time.Minute, compareEvery: 9 * time.Hour,
						events: record.NewFakeRecorder(100), run: billing.Run{ID: now.Now().String(), StartedAt: now.Now()}}}
				}
				began := now.Now()
				pay := &tenantFacts{name: "pay", uid: "t1", generation: 1, since: began, costCenter: "0"}
				facts := []any{pay}
				for i := range namespaces {
					facts = append(facts, root(fmt.Sprintf("pay-%d", i), fmt.Sprint("n", i), "pay", began))
				}
				x := start(facts...)
				x.runDue(t.Context())
				fault = errors.New("503 Service Unavailable")
				for i := 1; i <= changes; i++ {
					now.SetTime(began.Add(time.Duration(i) * 6 * time.Minute))
					pay = &tenantFacts{name: "pay", uid: "t1", generation: int64(i), since: now.Now(), costCenter: fmt.Sprint(i)}
					x.tracker.takeChange(pay, false)
					x.see()
					x.runDue(t.Context())
					if until, err := store.CompleteUntil(t.Context()); err != nil || until.After(began) {
						t.Fatalf("complete until %s, %v", until, err)
					}
				}
				want := changes + 1
				if killed { // the next exporter knows the present state, and when it began
					facts[0] = pay
					x, want = start(facts...), 2
				}
				fault = nil
				now.SetTime(now.Now().Add(time.Hour))
				x.see()
				x.runDue(t.Context())
				all, err := ledgertest.Periods(t.Context(), db, "ledger", "")
				if err != nil || len(all) != want*namespaces || ledgertest.Overlap(all) != "" {
					t.Fatalf("%d periods, wanted %d; %s %v", len(all), want*namespaces, ledgertest.Overlap(all), err)
				}
				for period := range slices.Chunk(all, want) {
					last := period[want-1]
					if !last.ValidTo.IsZero() || last.CostCenter != fmt.Sprint(changes) || !last.ValidFrom.Equal(began.Add(time.Hour)) {
						t.Fatalf("the last period is %+v", last)
					}
				}
			})
		}
	}
}

func TestClockSetBack(t *testing.T) {
	x := exporterOver(t, t.TempDir()+"/ledger.db")
	t.Run("BILL-52 an exporter that waits after an error tries again at once if its clock is set back by an hour", func(t *testing.T) {
		x.recordOutcome(t.Context(), &billing.SchemaError{}, 0)
		if !x.isResting() {
			t.Error("it doesn't pause")
		}
		x.clock.SetTime(x.clock.Now().Add(-time.Hour))
		if x.isResting() {
			t.Error("it pauses an hour longer")
		}
	})
	t.Run("BILL-52 the watermark is set back with the exporter's clock", func(t *testing.T) {
		x.see()
		x.runDue(t.Context())
		before := x.watermark(t)
		x.clock.SetTime(x.clock.Now().Add(-time.Hour))
		x.see()
		x.runDue(t.Context())
		if after := x.watermark(t); !after.Equal(before.Add(-time.Hour)) {
			t.Errorf("complete until %s, then until %s", before, after)
		}
	})
}

func TestEventOfAnExporterThatHasReadNothing(t *testing.T) {
	if got := describeComplete(time.Time{}); got == "" || got == describeComplete(time.Unix(0, 0)) {
		t.Errorf("%q", got)
	}
}
