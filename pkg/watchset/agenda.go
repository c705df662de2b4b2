package watchset

import "time"

// pokeSpacing is the least time between two reviews of a part that events ask for, and pokeRepeat when a review is repeated once
// because its verdict was the old one: the authorizer's cache may lag behind the watch.
const (
	pokeSpacing = time.Second
	pokeRepeat  = 2 * time.Second
)

// agenda is what a part is to do, and when; a zero time is never. One timer serves all of it.
type agenda struct {
	retry    time.Time // look whether a part that is Forbidden or NotServed may go on
	verify   time.Time // ask for the rights of a part that is Synced
	poked    time.Time // look because something hints at a change
	repeat   time.Time // once more then, for the same reason
	hinted   time.Time // when something hinted last
	began    bool      // the part began because of the last hint: only if that came to nothing is it looked at once more
	reviewed time.Time // when it was looked at last
	degrade  time.Time // without a working watch until then, it is Degraded
	expire   time.Time // nobody leases it

	asking asking
	timer  *time.Timer
}

// asking is what a part waits for that others do: its turn in a queue of reviews, and the review itself.
type asking int8

const (
	nothing asking = iota
	check          // of its rights, regularly or after a back-off
	hint           // the same because something hints at a change; it overtakes checks
)

// armTimer sets the timer to the next thing to do.
func (a *agenda) armTimer(p *part) {
	next := a.next()
	if p.gone || next.IsZero() {
		a.stop()
		return
	}
	wait := max(time.Until(next), 0)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, p.doWhatIsDue)
		return
	}
	a.timer.Reset(wait)
}

func (a *agenda) next() time.Time {
	all := []time.Time{a.degrade, a.expire}
	if a.asking == nothing {
		all = append(all, a.retry, a.verify)
	}
	if a.asking != hint {
		all = append(all, a.poked)
	}
	var next time.Time
	for _, at := range all {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

func (a *agenda) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// doWhatIsDue does what is due. Reviews make requests, so others do them.
func (p *part) doWhatIsDue() {
	s := p.set
	s.mu.Lock()
	defer s.unlock()
	if p.gone || s.stopped {
		return
	}
	a, now := &p.agenda, time.Now()
	if due(a.expire, now) && p.idle() {
		p.closePart()
		return
	}
	a.expire = clearIf(due(a.expire, now), a.expire)
	if due(a.degrade, now) {
		a.degrade = time.Time{}
		p.degradePart()
	}
	if due(a.poked, now) && a.began && p.run != nil {
		a.poked = time.Time{}
	}
	switch {
	case a.asking != hint && due(a.poked, now):
		a.asking = hint
		s.hints.Add(p.reviewKey())
	case a.asking == nothing && (due(a.retry, now) || due(a.verify, now)):
		a.asking = check
		s.checks.Add(p.reviewKey())
	}
	a.armTimer(p)
}

func clearIf(cond bool, at time.Time) time.Time {
	if cond {
		return time.Time{}
	}
	return at
}

// pokeReview has the rights, or for a resource that isn't served discovery, looked at after debounce. Many pokes are one look.
func (p *part) pokeReview(debounce time.Duration) {
	if p.state == Pending || p.gone {
		return
	}
	a, now := &p.agenda, time.Now()
	at := now.Add(debounce)
	if earliest := a.reviewed.Add(pokeSpacing); at.Before(earliest) {
		at = earliest
	}
	a.repeat, a.hinted, a.began = at.Add(pokeRepeat), now, false
	if a.poked.IsZero() || at.Before(a.poked) {
		a.poked = at
	}
	a.armTimer(p)
}

// noteReview notes that a review is done, and plans the next one. changed says whether its verdict was a new one.
func (a *agenda) noteReview(p *part, started time.Time, changed bool) {
	now := time.Now()
	a.asking, a.reviewed = nothing, now
	if due(a.verify, started) {
		a.verify = p.set.nextCheck()
	}
	if due(a.retry, started) {
		a.retry = now.Add(p.set.options.Backoff.delayAfter(p.attempts))
		p.attempts++
	}
	switch {
	case !due(a.poked, started):
	case a.hinted.After(started): // the answer may be older than the hint
		a.poked = now.Add(pokeSpacing)
	case !a.poked.Before(a.repeat), changed && p.run == nil:
		a.poked = time.Time{}
	default:
		a.poked, a.began = a.repeat, changed
	}
	a.armTimer(p)
}
