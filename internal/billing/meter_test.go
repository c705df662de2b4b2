package billing_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/warren-tenancy/warren/internal/billing"
)

// history is the true course of reservations, each change with its time, against which the meter's rows are checked.
type history struct {
	at      []time.Time
	id      []string
	changed []billing.Reservation
}

// reserved is the independent integral: it looks at each second of the piece by itself.
func (h *history) reserved(from, until time.Time) map[string]billing.Reserved {
	sums := map[string]billing.Reserved{}
	holding := map[string]billing.Reservation{}
	next := 0
	for second := from; second.Before(until); second = second.Add(time.Second) {
		for ; next < len(h.at) && !h.at[next].Truncate(time.Second).After(second); next++ {
			holding[h.id[next]] = h.changed[next]
		}
		for _, r := range holding {
			sum := sums[r.Namespace]
			sums[r.Namespace] = billing.Reserved{MilliCPU: sum.MilliCPU + r.MilliCPU, MemoryKiB: sum.MemoryKiB + r.MemoryKiB,
				StorageKiB: sum.StorageKiB + r.StorageKiB, GPUs: sum.GPUs + r.GPUs}
		}
	}
	maps.DeleteFunc(sums, func(_ string, r billing.Reserved) bool { return r == billing.Reserved{} })
	return sums
}

// lives is a cluster with random Pods, and an exporter that measures them and sometimes crashes or is suspended.
type lives struct {
	*rand.Rand
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	truth   history
	now     map[string]billing.Reservation
	outbox  *billing.Outbox
	meter   *billing.Meter
	savedAt time.Time
}

// change creates, resizes, finishes or deletes one, which the watch brings at once.
func (l *lives) change() {
	id := fmt.Sprint("pod-", l.IntN(30))
	r := billing.Reservation{Namespace: fmt.Sprint("ns-", l.IntN(4))}
	if before, there := l.now[id]; there {
		r.Namespace = before.Namespace
	}
	if l.IntN(3) > 0 {
		r.Reserved = billing.Reserved{MilliCPU: l.Int64N(4000), MemoryKiB: l.Int64N(8) << 20, StorageKiB: l.Int64N(2) << 24, GPUs: l.Int64N(3)}
	}
	l.truth.at, l.truth.id, l.truth.changed = append(l.truth.at, l.clock.Now()), append(l.truth.id, id), append(l.truth.changed, r)
	l.now[id] = r
	if r.Reserved == (billing.Reserved{}) {
		delete(l.now, id)
	}
	if l.meter != nil {
		l.meter.Set(id, r, l.clock.Now())
	}
}

func (l *lives) save() {
	l.t.Helper()
	l.meter.Advance(l.clock.Now())
	if _, err := l.outbox.PutUsage(l.t.Context(), l.meter.Finished(), l.meter.Piece()); err != nil {
		l.t.Fatal(err)
	}
	l.meter.Forget()
	l.savedAt = l.clock.Now()
}

// start is that of a new process.
func (l *lives) start() {
	l.t.Helper()
	if err := l.outbox.FinishUsage(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	l.meter = billing.NewMeter(cluster)
	for id, r := range l.now {
		l.meter.Set(id, r, l.clock.Now())
	}
	l.meter.Begin(l.clock.Now())
	l.savedAt = l.clock.Now()
}

func (l *lives) pass(d time.Duration) { l.clock.SetTime(l.clock.Now().Add(d)) }

// live lets so much time pass.
func (l *lives) live(whole time.Duration) {
	for until := l.clock.Now().Add(whole); l.clock.Now().Before(until); {
		l.pass(time.Duration(l.IntN(5000)) * time.Millisecond)
		if l.IntN(4) == 0 {
			l.change()
		}
		switch {
		case l.meter == nil:
			if l.IntN(60) == 0 {
				l.start()
			}
		case l.IntN(800) == 0: // killed
			l.meter = nil
		case l.IntN(800) == 0: // suspended; what happened meanwhile comes afterwards
			measured := l.meter
			l.meter = nil
			for range 10 {
				l.pass(time.Minute)
				l.change()
			}
			l.meter = measured
			for i := range 30 {
				id := fmt.Sprint("pod-", i)
				l.meter.Set(id, l.now[id], l.clock.Now())
			}
		case l.clock.Now().Sub(l.savedAt) >= time.Minute:
			l.save()
		default:
			l.meter.Advance(l.clock.Now())
		}
	}
}

func TestMeter(t *testing.T) {
	t.Run("BILL-59 sums are what a second-by-second replay gives, whatever came between", func(t *testing.T) {
		for seed := range uint64(5) {
			clock := clocktesting.NewFakePassiveClock(nine.Add(17 * time.Minute))
			outbox, err := billing.OpenOutbox(t.Context(), tempDir(t)+"/outbox.db", 1_000_000, clock)
			if err != nil {
				t.Fatal(err)
			}
			l := &lives{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, clock: clock, now: map[string]billing.Reservation{}, outbox: outbox}
			l.start()
			l.live(5 * time.Hour)
			if l.meter == nil {
				l.start()
			}
			l.live(time.Minute)
			if l.meter != nil {
				l.save()
			}
			if err := outbox.FinishUsage(t.Context()); err != nil {
				t.Fatal(err)
			}
			rows, err := outbox.NextUsage(t.Context(), 1_000_000)
			if err != nil {
				t.Fatal(err)
			}
			l.judge(seed, rows)
			if err := outbox.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("BILL-65 a clock that is set back measures nothing twice, one that leaps leaves out what nobody saw", func(t *testing.T) {
		m := billing.NewMeter(cluster)
		m.Set("pod", billing.Reservation{Namespace: "ns", Reserved: billing.Reserved{MilliCPU: 1000}}, at(0))
		m.Begin(at(0))
		for _, minute := range []float64{1, 2, 3, -57, -56, 3.5, 4, 34, 35} {
			m.Advance(at(minute))
		}
		got := append(m.Finished(), m.Piece()...)
		var pieces []string
		for _, u := range got {
			if u.Namespace == "ns" {
				pieces = append(pieces, fmt.Sprintf("%s-%s %d", u.CoveredFrom.Format("15:04"), u.CoveredUntil.Format("15:04"), u.MilliCPUSeconds/1000))
			}
		}
		if diff := cmp.Diff([]string{"09:00-09:04 240", "09:34-09:35 60"}, pieces); diff != "" {
			t.Error(diff)
		}
	})
}

// judge compares each row with the replay of its piece.
func (l *lives) judge(seed uint64, rows []billing.Usage) {
	l.t.Helper()
	wanted := map[time.Time]map[string]billing.Reserved{}
	var covered int64
	last := time.Time{}
	for _, u := range rows {
		if u.CoveredUntil.Sub(u.Hour) > time.Hour || u.CoveredFrom.Before(u.Hour) || int64(u.CoveredUntil.Sub(u.CoveredFrom)/time.Second) != u.CoveredSeconds {
			l.t.Errorf("seed %d: a piece that is none: %+v", seed, u)
		}
		want := wanted[u.CoveredFrom]
		if want == nil {
			want = l.truth.reserved(u.CoveredFrom, u.CoveredUntil)
			wanted[u.CoveredFrom] = want
		}
		if u.Namespace == "" { // the last of its piece
			if len(want) > 0 {
				l.t.Errorf("seed %d: %s has no row for %v", seed, u.CoveredFrom, slices.Collect(maps.Keys(want)))
			}
			if u.CoveredFrom.Before(last) {
				l.t.Errorf("seed %d: %s is covered twice", seed, u.CoveredFrom)
			}
			last = u.CoveredUntil
			covered += u.CoveredSeconds
			continue
		}
		w := want[u.Namespace]
		got := []int64{u.MilliCPUSeconds, u.MemoryMiBSeconds, u.StorageMiBSeconds, u.GPUSeconds}
		if diff := cmp.Diff([]int64{w.MilliCPU, w.MemoryKiB / 1024, w.StorageKiB / 1024, w.GPUs}, got); diff != "" {
			l.t.Errorf("seed %d: %s in the piece from %s: %s", seed, u.Namespace, u.CoveredFrom, diff)
		}
		delete(want, u.Namespace)
	}
	if len(wanted) < 6 || covered < 2*3600 {
		l.t.Errorf("seed %d: %d pieces cover %d s: this proves little", seed, len(wanted), covered)
	}
}
