package budget

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Doubts are what plans have seen of the namespaces that were refused something, by namespace. An Event that reports a refusal may be
// forged, or nobody may try again. So a namespace that has had room for what it asked for, and used none of it for RefusalHolds, no
// longer waits. If another namespace takes the room, the refusals of the first count for nothing for a while, and each time for twice
// as long: a controller that does try again waits twice as long after each try, too.
type Doubts map[string]doubt

// doubt is what is known of one namespace since it used more than before.
type doubt struct {
	refused time.Time // when it was refused last
	// asked is the least that it asked for of each resource, and since is when it has had room for that.
	asked Amounts
	since map[corev1.ResourceName]time.Time
	used  Amounts
	// Its refusals count for nothing until then; pause is how long that was the last time.
	until time.Time
	pause time.Duration
}

const (
	firstPause   = 2 * RefusalHolds
	longestPause = 16 * time.Minute // the longest time that Kubernetes' controllers wait between two tries
)

// Judge removes the refusals of namespaces that no longer wait, and has the others begin when the namespace got room. It returns the
// doubts of the next plan, and forgets namespaces that are not among rows.
func (was Doubts) Judge(rows []Row, refusals map[string]Refusal, now time.Time) Doubts {
	is := Doubts{}
	for i := range rows {
		row := &rows[i]
		refusal, refused := refusals[row.Namespace]
		before, known := was[row.Namespace]
		if !refused && (!known || now.After(before.until) && now.Sub(before.refused) > RefusedBefore) {
			continue
		}
		d := before.follow(row, refusal, now)
		is[row.Namespace] = d
		switch since := d.hadRoom(refusal.Requested); {
		case !refused:
		case now.Before(d.until) || !since.IsZero() && now.Sub(since) >= RefusalHolds:
			delete(refusals, row.Namespace)
		case !since.IsZero() && since.Before(refusal.At):
			refusal.At = since
			refusals[row.Namespace] = refusal
		}
	}
	return is
}

// follow returns the doubt after a look at the share of its namespace, and at what it was refused, if anything.
func (d doubt) follow(row *Row, refusal Refusal, now time.Time) doubt {
	for key := range d.asked {
		if row.Used[key] > d.used[key] {
			d = doubt{refused: d.refused} // it uses what it gets
			break
		}
	}
	is := doubt{refused: d.refused, asked: Amounts{}, since: map[corev1.ResourceName]time.Time{}, used: row.Used, until: d.until,
		pause: d.pause}
	maps.Copy(is.asked, d.asked)
	if refusal.At.After(is.refused) {
		is.refused = refusal.At
	}
	for key, amount := range refusal.Requested {
		if before, ok := is.asked[key]; !ok || amount < before {
			is.asked[key] = amount
		}
	}
	lost := false
	for key, amount := range is.asked {
		since, had := d.since[key]
		switch room := min(row.Spec[key], row.Counted[key]) - row.Used[key]; {
		case room < amount:
			lost = lost || had
		case had:
			is.since[key] = since
		default:
			is.since[key] = now
		}
	}
	if lost {
		is.pause = min(max(2*is.pause, firstPause), longestPause)
		is.until = now.Add(is.pause)
	}
	return is
}

// hadRoom returns since when the namespace has had room for all of an object; zero if it has none.
func (d doubt) hadRoom(requested Amounts) (latest time.Time) {
	for key := range requested {
		since, has := d.since[key]
		if !has {
			return time.Time{}
		}
		if since.After(latest) {
			latest = since
		}
	}
	return latest
}
