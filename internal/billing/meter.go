package billing

import (
	"time"
)

// Reserved is what something holds of the cluster, whether it uses it or not.
type Reserved struct {
	// MilliCPU are thousandths of a core; MemoryKiB and StorageKiB are rounded up to whole KiB; GPUs are whole devices.
	MilliCPU, MemoryKiB, StorageKiB, GPUs int64
}

func (r Reserved) times(factor int64) Reserved {
	return Reserved{r.MilliCPU * factor, r.MemoryKiB * factor, r.StorageKiB * factor, r.GPUs * factor}
}

func (r Reserved) plus(other Reserved) Reserved {
	return Reserved{r.MilliCPU + other.MilliCPU, r.MemoryKiB + other.MemoryKiB, r.StorageKiB + other.StorageKiB, r.GPUs + other.GPUs}
}

// Reservation is one holder's, such as a Pod's.
type Reservation struct {
	Namespace string
	Reserved
}

// mostUnseen is the longest time between two signs of life that counts as watched. A process that was suspended for longer has
// seen nothing, and says so: the time between is covered by no piece.
const mostUnseen = 2 * time.Minute

// Meter adds up what each namespace had reserved. It measures pieces of hours: a piece begins with the measuring, with an hour,
// or behind a time that nobody watched, and ends with the hour at the latest. All times are cut to whole seconds, so that sums
// are exact. A time that lies before another that the meter has seen counts as that one: nothing is measured twice when a clock
// is set back. A Meter is not safe for concurrent use.
type Meter struct {
	cluster string
	// holders are the reservations that last, by the holder's unique ID.
	holders map[string]Reservation
	// namespaces are those that hold something or held something in this piece.
	namespaces map[string]*account
	// from is when the piece began, last the latest time that was seen; zero before the measuring begins.
	from, last time.Time
	finished   []Usage
}

// account is what a namespace holds now, and what it has used in this piece until then.
type account struct {
	holds   Reserved
	until   time.Time
	used    Reserved // times seconds
	holders int
}

// NewMeter measures nothing before Begin.
func NewMeter(cluster string) *Meter {
	return &Meter{cluster: cluster, holders: map[string]Reservation{}, namespaces: map[string]*account{}}
}

// Begin starts the measuring: all that lasts is known by now.
func (m *Meter) Begin(now time.Time) {
	now = now.UTC().Truncate(time.Second)
	m.from, m.last = now, now
	for _, a := range m.namespaces {
		a.until, a.used = now, Reserved{}
	}
}

// Measuring says whether it has begun.
func (m *Meter) Measuring() bool { return !m.last.IsZero() }

// Set says what a holder has reserved from now on; nothing, where it holds nothing any more.
func (m *Meter) Set(id string, r Reservation, now time.Time) {
	m.Advance(now)
	before, was := m.holders[id]
	if was && before == r {
		return
	}
	if was {
		m.change(before.Namespace, before.times(-1), -1)
		delete(m.holders, id)
	}
	if r.Reserved != (Reserved{}) {
		m.holders[id] = r
		m.change(r.Namespace, r.Reserved, 1)
	}
}

// Holders are the IDs of those who hold something.
func (m *Meter) Holders(yield func(id string) bool) {
	for id := range m.holders {
		if !yield(id) {
			return
		}
	}
}

func (m *Meter) change(namespace string, by Reserved, holders int) {
	a := m.namespaces[namespace]
	if a == nil {
		a = &account{until: m.last}
		m.namespaces[namespace] = a
	}
	a.settle(m.last)
	a.holds = a.holds.plus(by)
	a.holders += holders
}

func (a *account) settle(until time.Time) {
	a.used = a.used.plus(a.holds.times(int64(until.Sub(a.until) / time.Second)))
	a.until = until
}

// Advance says that the watches live and have brought all until now.
func (m *Meter) Advance(now time.Time) {
	now = now.UTC().Truncate(time.Second)
	if !m.Measuring() || !now.After(m.last) {
		return
	}
	if now.Sub(m.last) > mostUnseen {
		m.finish(m.last)
		m.begin(now)
		return
	}
	for end := m.hour().Add(time.Hour); !now.Before(end); end = end.Add(time.Hour) {
		m.finish(end)
		m.begin(end)
	}
	m.last = now
}

// hour is the one of the piece.
func (m *Meter) hour() time.Time { return m.from.Truncate(time.Hour) }

// finish ends the piece.
func (m *Meter) finish(until time.Time) {
	m.last = until
	m.finished = append(m.finished, m.Piece()...)
}

// begin begins another piece. What held nothing any more is forgotten.
func (m *Meter) begin(now time.Time) {
	m.from, m.last = now, now
	for name, a := range m.namespaces {
		if a.holders == 0 {
			delete(m.namespaces, name)
			continue
		}
		a.until, a.used = now, Reserved{}
	}
}

// Piece are the rows of the piece so far: one for each namespace that had something reserved, and the cluster's own, which has no
// namespace and says what was covered. Without time there is none.
func (m *Meter) Piece() []Usage {
	seconds := int64(m.last.Sub(m.from) / time.Second)
	if !m.Measuring() || seconds == 0 {
		return nil
	}
	row := Usage{Cluster: m.cluster, Hour: m.hour(), CoveredFrom: m.from, CoveredUntil: m.last, CoveredSeconds: seconds}
	rows := make([]Usage, 0, len(m.namespaces)+1)
	for name, a := range m.namespaces {
		a.settle(m.last)
		if a.used == (Reserved{}) {
			continue
		}
		row.Namespace = name
		row.MilliCPUSeconds, row.GPUSeconds = a.used.MilliCPU, a.used.GPUs
		row.MemoryMiBSeconds, row.StorageMiBSeconds = mebi(a.used.MemoryKiB), mebi(a.used.StorageKiB)
		rows = append(rows, row)
	}
	return append(rows, Usage{Cluster: m.cluster, Hour: row.Hour, CoveredFrom: row.CoveredFrom, CoveredUntil: row.CoveredUntil, CoveredSeconds: seconds})
}

// mebi rounds KiB to the nearest MiB.
func mebi(kibi int64) int64 { return (kibi + 512) / 1024 }

// Finished are the rows of all pieces that have ended since Forget was called.
func (m *Meter) Finished() []Usage { return m.finished }

// Forget is called once the finished rows are kept elsewhere.
func (m *Meter) Forget() { m.finished = nil }
