package fairqueue

import (
	"slices"
	"time"
)

const (
	// workersPerTenant is how many workers a tenant may occupy under contention. With two, an API server with two cores
	// takes 1.5 times as long as usual to answer the other tenants; with sixteen it took six times as long. The heavy
	// keys of all tenants together occupy no more than two workers, either.
	workersPerTenant = 2
	// maxBytes is how many bytes heavy work may send at once, for example two bodies of 1.5 MiB. With sixteen bodies of
	// 1 MiB under way, an API server with two cores took more than a minute to bring any write to its watches.
	maxBytes = 3 << 20
	// maxBytesContended is maxBytes under contention. A larger body begins only while no other heavy work is under way
	// (see hasRoom).
	maxBytesContended = 1 << 20
	// restFactor is how long heavy work, and a worker whose request has failed, rests under contention: this many times
	// as long as the work has taken. So the API server has most of its time for the other tenants.
	restFactor = 2
	// maxRest is the longest rest after heavy work: a request that hangs must not hold up the heavy work of all
	// tenants.
	maxRest = 5 * time.Second
	// maxRestFailed is the longest rest after a request that failed. A slow failure, such as that of a webhook that
	// hangs, costs the API server nothing, and the tenant's other copies must not wait for it.
	maxRestFailed = 500 * time.Millisecond
	// busyFor is how long a tenant counts as having work after one of its keys was added or handed out.
	busyFor = 5 * time.Second
)

// usage counts what the keys that are worked on occupy.
type usage struct {
	busy    busyTenants
	workers map[string]int // by tenant
	bodies  int            // how many heavy keys
	bytes   int            // the weight of the heavy keys
	resting []rest         // what stays occupied for a while after its work
}

// rest is what a key occupies after its work has ended.
type rest struct {
	until time.Time
	work  Attributes
}

// hasRoom reports whether work may begin. If no heavy work is under way, there is room for any weight.
func (u *usage) hasRoom(a Attributes, now time.Time) bool {
	contended := u.busy.isContended(a.Tenant, now)
	switch {
	case a.limit() == unlimited:
		return true
	case a.limit() == limitedByWork:
		return !contended || u.workers[a.Tenant] < workersPerTenant
	// Otherwise a body of more than maxBytes would wait for ever.
	case u.bodies == 0:
		return true
	case contended:
		return u.bodies < workersPerTenant && u.bytes+a.Weight <= maxBytesContended
	}
	return u.bytes+a.Weight <= maxBytes
}

// beginWork is called when work begins.
func (u *usage) beginWork(a Attributes) { u.countWork(a, 1) }

// endWork is called when work has ended; lasted is how long it took.
func (u *usage) endWork(a Attributes, lasted time.Duration, failed bool, now time.Time) {
	if d := u.restOf(a, lasted, failed, now); d > 0 {
		u.resting = append(u.resting, rest{until: now.Add(d), work: a})
		return
	}
	u.countWork(a, -1)
}

func (u *usage) countWork(a Attributes, sign int) {
	switch a.limit() {
	case limitedByWork:
		if u.workers == nil {
			u.workers = map[string]int{}
		}
		if u.workers[a.Tenant] += sign; u.workers[a.Tenant] == 0 {
			delete(u.workers, a.Tenant)
		}
	case limitedBySize:
		u.bodies += sign
		u.bytes += sign * a.Weight
	}
}

// restOf returns how long work that has ended still occupies its room.
func (u *usage) restOf(a Attributes, lasted time.Duration, failed bool, now time.Time) time.Duration {
	switch {
	// While no other tenant has work, a rest would help nobody.
	case !u.busy.isContended(a.Tenant, now):
		return 0
	case a.limit() == limitedBySize:
		return min(restFactor*lasted, maxRest)
	case a.limit() == limitedByWork && failed:
		return min(restFactor*lasted, maxRestFailed)
	}
	return 0
}

// endRests releases what has rested long enough.
func (u *usage) endRests(now time.Time) {
	u.resting = slices.DeleteFunc(u.resting, func(r rest) bool {
		over := !now.Before(r.until)
		if over {
			u.countWork(r.work, -1)
		}
		return over
	})
}

// nextChange returns when time alone makes room: when a rest is over, or a tenant has no work any longer. It is zero if
// that never happens.
func (u *usage) nextChange(now time.Time) (next time.Time) {
	times := u.busy.findEnds(now)
	for _, r := range u.resting {
		times = append(times, r.until)
	}
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// busyTenants are the two tenants that had work last, the later one first. Two are enough to know whether any tenant
// but a given one is busy.
type busyTenants [2]struct {
	name string
	last time.Time
}

// recordWork records that work of a tenant, unless it is urgent, was added or handed out.
func (b *busyTenants) recordWork(a Attributes, now time.Time) {
	if a.Tenant == "" || a.Urgent {
		return
	}
	if b[0].name != a.Tenant {
		b[1] = b[0]
		b[0].name = a.Tenant
	}
	b[0].last = now
}

// isContended reports whether a tenant other than the one called tenant is busy.
func (b *busyTenants) isContended(tenant string, now time.Time) bool {
	for _, other := range b {
		if other.name != tenant && now.Sub(other.last) < busyFor {
			return true
		}
	}
	return false
}

// findEnds returns when the tenants that are busy now will have had no work for long enough.
func (b *busyTenants) findEnds(now time.Time) (times []time.Time) {
	for _, tenant := range b {
		if end := tenant.last.Add(busyFor); end.After(now) {
			times = append(times, end)
		}
	}
	return times
}
