package exporter

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/warren-tenancy/warren/internal/billing"
)

// kept returns a keeper with a ledger in SQLite, and its clock.
func kept(t *testing.T) (*keeper, *clocktesting.FakePassiveClock) {
	t.Helper()
	db, err := billing.OpenSQLite(filepath.Join(t.TempDir(), "billing.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := billing.NewStore(db, billing.SQLite, billing.Options{Table: "ledger", Cluster: "c", MaxRows: 1, MaxBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Schema().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	return &keeper{store: store, clock: now, events: record.NewFakeRecorder(10), timeout: time.Minute, watermarkEvery: 15 * time.Minute,
		run: billing.Run{ID: "r", Exporter: "pod", StartedAt: now.Now()}}, now
}

func TestWatermark(t *testing.T) {
	t.Run("BILL-52 the watermark follows a clock that is set back: it claims no time that has not been", func(t *testing.T) {
		k, now := kept(t)
		nine := now.Now()
		for _, step := range []struct{ settled, want time.Time }{
			{nine, nine},
			{nine.Add(time.Minute), nine}, // less than watermarkEvery after the last move
			{nine.Add(2 * time.Hour), nine.Add(2 * time.Hour)},
			{nine.Add(time.Hour), nine.Add(time.Hour)},
		} {
			if err := k.mark(t.Context(), step.settled); err != nil {
				t.Fatal(err)
			}
			runs, err := k.store.Runs(t.Context())
			if err != nil || len(runs) != 1 || !runs[0].CompleteUntil.Equal(step.want) {
				t.Errorf("settled at %s: %+v, %v; wanted %s", step.settled, runs, err, step.want)
			}
		}
	})
}

func TestPause(t *testing.T) {
	t.Run("BILL-52 a clock that is set back lengthens no pause of the exporter", func(t *testing.T) {
		k, now := kept(t)
		k.tracker = &tracker{}
		k.recordOutcome(t.Context(), &billing.FlushError{Trouble: billing.Denied, Err: errors.New("denied")}, 0)
		if !k.rest.Lasts(k.clock.Now()) {
			t.Error("it doesn't pause")
		}
		now.SetTime(now.Now().Add(-time.Hour))
		if k.rest.Lasts(k.clock.Now()) {
			t.Error("it pauses an hour longer")
		}
	})
}
