package forest

import (
	"fmt"
	"strconv"
	"strings"
)

// Labels of a Namespace that say what its pods may do. Levels to warn of and to audit are labels like any other.
const (
	enforceLevel   = "pod-security.kubernetes.io/enforce"
	enforceVersion = "pod-security.kubernetes.io/enforce-version"

	privileged = "privileged"
	latest     = "latest"
)

// ranks are the levels that take something away from pods. Privileged, and no level at all, have rank 0.
var ranks = map[string]int{"baseline": 1, "restricted": 2}

// latestMinor stands for the version latest, which is also meant where no version is given.
const latestMinor = 9999

// podLevel is what a namespace enforces. The zero value is privileged, or no level.
type podLevel struct {
	rank  int // in ranks
	minor int // N of version v1.N
}

func levelOf(labels map[string]string) podLevel {
	l := podLevel{rank: ranks[labels[enforceLevel]], minor: latestMinor}
	if l.rank == 0 {
		return podLevel{}
	}
	if number, ok := strings.CutPrefix(labels[enforceVersion], "v1."); ok {
		if minor, err := strconv.Atoi(number); err == nil {
			l.minor = minor
		}
	}
	return l
}

// atLeast says whether l is as strict as other, in level and in version.
func (l podLevel) atLeast(other podLevel) bool { return l.rank >= other.rank && l.minor >= other.minor }

// stricter has the stricter level and the later version of both.
func (l podLevel) stricter(other podLevel) podLevel {
	return podLevel{max(l.rank, other.rank), max(l.minor, other.minor)}
}

func (l podLevel) version() string {
	if l.minor == latestMinor {
		return latest
	}
	return fmt.Sprintf("v1.%d", l.minor)
}

// hold keeps the level of pod security of n from falling below what flows in from above, and below what n has now: only a cluster
// admin lowers a level, and the operator's cage says so too. What asked for less is named among the refused keys.
func (e *effective) hold(d side, n *Namespace, above map[string]string) {
	labels, ours := e.standing(n), n.operatorKeys()
	asked, own, fromAbove := levelOf(labels), levelOf(n.Labels), levelOf(above)
	held := asked.stricter(own).stricter(fromAbove)
	if !asked.atLeast(fromAbove) || ours[enforceLevel] && !asked.atLeast(own) {
		e.refused = append(e.refused, enforceLevel)
	}
	if held.rank != asked.rank {
		for name, rank := range ranks {
			if rank == held.rank {
				e.take(d, enforceLevel, name)
			}
		}
	}
	_, had := n.Labels[enforceVersion]
	_, has := labels[enforceVersion]
	if held.rank > 0 && (held.minor != asked.minor && (has || held.minor != latestMinor) || own.rank > 0 && had && !has) {
		e.take(d, enforceVersion, held.version())
	}
}

// standing are the labels of pod security that n would have.
func (e *effective) standing(n *Namespace) map[string]string {
	labels, ours := map[string]string{}, n.operatorKeys()
	for _, key := range []string{enforceLevel, enforceVersion} {
		value, had := n.Labels[key]
		written, writes := e.written[key]
		switch {
		case writes:
			labels[key] = written
		case had && (!ours[key] || e.left[key]):
			labels[key] = value
		}
	}
	return labels
}

// keepLevel gives n, which leaves the forest, the labels of pod security that it had: what the operator lets go is no more open
// than before.
func (n *Namespace) keepLevel(old *Namespace) {
	if levelOf(old.Labels) == (podLevel{}) {
		return
	}
	for _, key := range []string{enforceLevel, enforceVersion} {
		if value, had := old.Labels[key]; had {
			n.Labels[key] = value
		}
	}
}
