package watchset

import "time"

// pokeSpacing is the least time between two reviews of one part that hints ask for. Such a review is repeated once,
// pokeRepeat later, unless it changed the part's state: the authorizer's cache may lag behind the watch that brought
// the hint.
const (
	pokeSpacing = time.Second
	pokeRepeat  = 2 * time.Second
)

// agenda holds the times at which a part's next actions are due; the zero time means never. One timer serves all of
// them. A hint is an event of RBAC or of a CRD, or a call of Set.Poke, after which the part's rights may have changed.
type agenda struct {
	retry    time.Time // when to review whether a part that is Forbidden or NotServed may begin again
	verify   time.Time // when to review the rights of a part that is Synced
	poked    time.Time // when to review because of a hint
	repeat   time.Time // when to review once more because of the same hint
	hinted   time.Time // when the last hint came
	began    bool      // the last hint's review changed the part's state; its repetition is dropped if the part has a run by then
	reviewed time.Time // when the last review ended
	degrade  time.Time // when the part becomes Degraded unless its watch works by then
	expire   time.Time // when the part is closed unless a lease needs it by then

	asking asking
	timer  *time.Timer
}

// asking is the queue of reviews in which a part waits. It stays set until the review is done.
type asking int8

const (
	nothing asking = iota
	check          // a review that is due regularly or after a back-off
	hint           // a review because of a hint; hints have a queue of their own, so that they never wait behind checks
)

// armTimer sets the timer to the next thing to do.
func (a *agenda) armTimer(p *part) {
	next := a.nextDueTime()
	if p.gone || next.IsZero() {
		a.stopTimer()
		return
	}
	wait := max(time.Until(next), 0)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, func() { p.set.lock.changeUnderLock(p.performDueActions) })
		return
	}
	a.timer.Reset(wait)
}

func (a *agenda) nextDueTime() time.Time {
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

func (a *agenda) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// performDueActions performs the part's actions that are due. It only queues reviews, because their requests must not
// be made under the Set's lock, which the caller holds.
func (p *part) performDueActions() {
	s := p.set
	if p.gone || s.stopped {
		return
	}
	a, now := &p.agenda, time.Now()
	if isTimeDue(a.expire, now) && p.demand.hasNoLeases() {
		p.closeUnneededPart()
		return
	}
	a.expire = zeroTimeIf(isTimeDue(a.expire, now), a.expire)
	if isTimeDue(a.degrade, now) {
		a.degrade = time.Time{}
		p.becomeDegraded()
	}
	// The hint has let the part begin already; its own requests show whether the right lasts.
	if isTimeDue(a.poked, now) && a.began && p.run != nil {
		a.poked = time.Time{}
	}
	switch {
	case a.asking != hint && isTimeDue(a.poked, now):
		a.asking = hint
		s.reviews.hints.Add(reviewKeyOf(p))
	case a.asking == nothing && (isTimeDue(a.retry, now) || isTimeDue(a.verify, now)):
		a.asking = check
		s.reviews.checks.Add(reviewKeyOf(p))
	}
	a.armTimer(p)
}

func zeroTimeIf(cond bool, at time.Time) time.Time {
	if cond {
		return time.Time{}
	}
	return at
}

// scheduleReview plans a review of the part's rights, or of discovery if the part is NotServed, after debounce, but no
// sooner than pokeSpacing after the last review. Further calls before that review cause no additional one.
func (p *part) scheduleReview(debounce time.Duration) {
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

// closeUnneededAfter closes a part that nothing needs, after grace; if grace is 0, at once. A part that has leases
// stays.
func (p *part) closeUnneededAfter(grace time.Duration) {
	if !p.demand.hasNoLeases() {
		return
	}
	if grace == 0 {
		p.closeUnneededPart()
		return
	}
	p.agenda.expire = time.Now().Add(grace)
	p.agenda.armTimer(p)
}

// recordReview records that a review, which began at started, is done, and plans the next one. changed reports whether
// the review changed the part's state.
func (a *agenda) recordReview(p *part, started time.Time, changed bool) {
	now := time.Now()
	a.asking, a.reviewed = nothing, now
	if isTimeDue(a.verify, started) {
		a.verify = p.set.options.nextRegularCheck()
	}
	if isTimeDue(a.retry, started) {
		a.retry = now.Add(p.set.options.Backoff.delayAfterAttempts(p.attempts))
		p.attempts++
	}
	switch {
	case !isTimeDue(a.poked, started):
	case a.hinted.After(started): // the answer may be older than the hint
		a.poked = now.Add(pokeSpacing)
	// The repetition is done, or the review has found the loss of a right that the hint was about.
	case !a.poked.Before(a.repeat), changed && p.run == nil:
		a.poked = time.Time{}
	default:
		a.poked, a.began = a.repeat, changed
	}
	a.armTimer(p)
}
