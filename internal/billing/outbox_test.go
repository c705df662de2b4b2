package billing_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/warren-tenancy/warren/internal/billing"
)

func outboxAt(t *testing.T, path string, maxRows int, clock *clocktesting.FakePassiveClock) *billing.Outbox {
	t.Helper()
	outbox, err := billing.OpenOutbox(t.Context(), path, maxRows, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outbox.Close() })
	return outbox
}

func newOutbox(t *testing.T, maxRows int) *billing.Outbox {
	return outboxAt(t, filepath.Join(tempDir(t), "outbox 1%?.db"), maxRows, clocktesting.NewFakePassiveClock(nine))
}

func put(t *testing.T, outbox *billing.Outbox, events ...billing.Event) {
	t.Helper()
	if err := outbox.Put(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
}

// waiting returns the cost centers of the events in the outbox, the oldest first.
func waiting(t *testing.T, outbox *billing.Outbox) (costCenters []string) {
	t.Helper()
	queued, err := outbox.Next(t.Context(), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queued {
		costCenters = append(costCenters, q.Event.CostCenter)
	}
	return costCenters
}

func TestOutbox(t *testing.T) {
	t.Run("events come out as they went in, in order, after a restart too", func(t *testing.T) {
		path := filepath.Join(tempDir(t), "outbox.db")
		clock := clocktesting.NewFakePassiveClock(nine)
		outbox := outboxAt(t, path, 100, clock)
		put(t, outbox, set(2, "b", at(1)), set(1, "a", at(0)))
		clock.SetTime(at(3))
		put(t, outbox, set(2, "b", at(1)), end(3, "t1", at(2)))
		if err := outbox.Close(); err != nil {
			t.Fatal(err)
		}
		outbox = outboxAt(t, path, 100, clock)
		queued, err := outbox.Next(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []billing.Event
		for _, q := range queued {
			got = append(got, q.Event)
		}
		if diff := cmp.Diff([]billing.Event{set(2, "b", at(1)).Sealed(), set(1, "a", at(0)).Sealed(), end(3, "t1", at(2)).Sealed()}, got); diff !=
			"" {
			t.Error(diff)
		}
		events, since, err := outbox.Waiting(t.Context())
		if err != nil || events != 3 || !since.Equal(nine) {
			t.Errorf("%d events since %s, error %v", events, since, err)
		}
		if err := outbox.Delete(t.Context(), queued[:2]); err != nil {
			t.Fatal(err)
		}
		if _, since, _ = outbox.Waiting(t.Context()); !since.Equal(at(3)) {
			t.Errorf("the oldest waits since %s", since)
		}
	})
	t.Run("an empty one waits for nothing", func(t *testing.T) {
		events, since, err := newOutbox(t, 1).Waiting(t.Context())
		if err != nil || events != 0 || !since.IsZero() {
			t.Errorf("%d events since %s, error %v", events, since, err)
		}
	})
	t.Run("a full one takes all of a Put or nothing", func(t *testing.T) {
		outbox := newOutbox(t, 3)
		put(t, outbox, set(1, "a", at(0)), set(2, "b", at(0)))
		if err := outbox.Put(t.Context(), set(3, "c", at(0)), set(4, "d", at(0))); !errors.Is(err, billing.ErrOutboxFull) {
			t.Errorf("error %v", err)
		}
		// An event that is already in the outbox needs no room when it comes again.
		for range 20 {
			put(t, outbox, set(1, "a", at(0)), set(2, "b", at(0)))
		}
		put(t, outbox, set(3, "c", at(0)))
		if diff := cmp.Diff([]string{"a", "b", "c"}, waiting(t, outbox)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("there is room again after a delete", func(t *testing.T) {
		outbox := newOutbox(t, 2)
		for i := range 10 {
			put(t, outbox, set(int64(i), fmt.Sprint(i), at(0)), set(int64(i), fmt.Sprint(i), at(1)))
			queued, err := outbox.Next(t.Context(), 2)
			if err != nil || len(queued) != 2 {
				t.Fatalf("%d events, error %v", len(queued), err)
			}
			if err := outbox.Delete(t.Context(), queued); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("what was parked and comes again is tried again", func(t *testing.T) {
		outbox := newOutbox(t, 10)
		for range 2 {
			put(t, outbox, set(1, "a", at(0)))
			queued, err := outbox.Next(t.Context(), 1)
			if err != nil || len(queued) != 1 {
				t.Fatalf("%d events, error %v", len(queued), err)
			}
			if err := outbox.Park(t.Context(), queued[0], errors.New("no")); err != nil {
				t.Fatal(err)
			}
			parked, err := outbox.Parked(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]billing.Parked{{Event: set(1, "a", at(0)).Sealed(), Reason: "no", ParkedAt: nine}}, parked); diff != "" {
				t.Error(diff)
			}
		}
		put(t, outbox, set(1, "a", at(0)))
		queued, _ := outbox.Next(t.Context(), 1)
		if err := outbox.Delete(t.Context(), queued); err != nil {
			t.Fatal(err)
		}
		if parked, err := outbox.Parked(t.Context(), 10); err != nil || len(parked) != 0 {
			t.Errorf("%d parked, error %v", len(parked), err)
		}
	})
	t.Run("a file that is no outbox is named", func(t *testing.T) {
		path := filepath.Join(tempDir(t), "outbox.db")
		if err := os.WriteFile(path, []byte("this is no database, and it is long enough to be told from an empty one"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := billing.OpenOutbox(t.Context(), path, 1, clocktesting.NewFakePassiveClock(time.Time{})); err == nil {
			t.Error("it was opened")
		}
	})
}
