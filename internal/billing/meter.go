package billing

import (
	"time"
)

// Reserved is the resources that a Pod or PersistentVolumeClaim reserves, whether it uses them or not.
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

// Reservation is what one holder, a Pod or a PersistentVolumeClaim, reserves in its namespace.
type Reservation struct {
	Namespace string
	Reserved
}

// mostUnseen is the longest time between two calls of Advance that counts as watched. A process that was suspended for longer has
// missed changes, so no piece covers that time.
const mostUnseen = 2 * time.Minute

// Meter adds up what each namespace had reserved. It measures in pieces: a piece is the part of one hour that was watched without a
// gap. A piece begins with the measuring, with an hour, or after a gap, and ends at the end of its hour at the latest. All times
// are cut to whole seconds, so that sums are exact. A time before the latest that the meter was given counts as the latest, so that
// nothing is measured twice when a clock is set back. A Meter is not safe for concurrent use.
type Meter struct {
	cluster string
	// holders are the current reservations, by the holder's unique ID.
	holders map[string]Reservation
	// namespaces are the accounts of namespaces that have, or had in this piece, a reservation.
	namespaces map[string]*account
	// from is when the piece began, last the latest time that the meter was given; both are zero before Begin.
	from, last time.Time
	finished   []Usage
}

// account is what a namespace has reserved now, and the sum of what it had reserved in this piece before until.
type account struct {
	holds   Reserved
	until   time.Time
	used    Reserved // multiplied by seconds
	holders int
}

// NewMeter returns a meter that measures nothing before Begin.
func NewMeter(cluster string) *Meter {
	return &Meter{cluster: cluster, holders: map[string]Reservation{}, namespaces: map[string]*account{}}
}

// Begin starts the measuring. The caller has passed all current reservations to Set before.
func (m *Meter) Begin(now time.Time) {
	now = now.UTC().Truncate(time.Second)
	m.from, m.last = now, now
	for _, a := range m.namespaces {
		a.until, a.used = now, Reserved{}
	}
}

// Measuring says whether it has begun.
func (m *Meter) Measuring() bool { return !m.last.IsZero() }

// Set says what a holder has reserved from now on. A reservation of nothing removes the holder.
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

// Holders yields the IDs of all holders that have a reservation.
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

// Advance says that the watches work and that all changes until now have been passed to Set.
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

// hour returns the beginning of the piece's hour.
func (m *Meter) hour() time.Time { return m.from.Truncate(time.Hour) }

// finish ends the piece.
func (m *Meter) finish(until time.Time) {
	m.last = until
	m.finished = append(m.finished, m.Piece()...)
}

// begin begins another piece, and drops the accounts of namespaces without a reservation.
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

// Piece returns the rows of the piece so far: one for each namespace that had something reserved, and last the cluster's own row,
// which has no namespace and says which time is covered. It returns nil if no whole second has passed.
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

// Finished returns the rows of all pieces that have ended since Forget was called last.
func (m *Meter) Finished() []Usage { return m.finished }

// Forget drops the finished rows. The caller has stored them before.
func (m *Meter) Forget() { m.finished = nil }
