package forest

import (
	"fmt"
	"strconv"
	"strings"
)

// These labels of a Namespace determine which pods the API server admits there (Pod Security Standards). The Pod
// Security labels for warnings and audits only inform, so they are inherited like any other label.
const (
	enforceLevel   = "pod-security.kubernetes.io/enforce"
	enforceVersion = "pod-security.kubernetes.io/enforce-version"

	privileged = "privileged"
	latest     = "latest"
)

// ranks orders the levels that restrict pods. Privileged, and a missing level, have rank 0.
var ranks = map[string]int{"baseline": 1, "restricted": 2}

// latestMinor stands for the version latest, which is also meant where no version is given.
const latestMinor = 9999

// podLevel is the Pod Security level that a namespace enforces. The zero value is privileged, or no level.
type podLevel struct {
	rank  int // the value in ranks, or 0
	minor int // N of version v1.N
}

func levelOf(labels map[string]string) podLevel {
	l := podLevel{rank: ranks[labels[enforceLevel]], minor: latestMinor}
	// A version without a level that restricts anything means nothing.
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

// atLeast reports whether l is as strict as other, in level and in version.
func (l podLevel) atLeast(other podLevel) bool { return l.rank >= other.rank && l.minor >= other.minor }

// stricter returns the stricter level and the later version of the two.
func (l podLevel) stricter(other podLevel) podLevel {
	return podLevel{max(l.rank, other.rank), max(l.minor, other.minor)}
}

func (l podLevel) version() string {
	if l.minor == latestMinor {
		return latest
	}
	return fmt.Sprintf("v1.%d", l.minor)
}

// holdLevel keeps the Pod Security level of n from falling below the inherited level and below the level that n has
// now. Only a cluster admin may lower a level, and the ValidatingAdmissionPolicies that confine the operator (its
// "cage") would refuse such a write. If the keys in e ask for a lower level, the key of the level is added to the
// refused keys.
func (e *effective) holdLevel(d side, n *Namespace, above map[string]string) {
	labels, ours := e.findStanding(n), n.operatorKeys()
	asked, own, fromAbove := levelOf(labels), levelOf(n.Labels), levelOf(above)
	held := asked.stricter(own).stricter(fromAbove)
	if !asked.atLeast(fromAbove) || ours[enforceLevel] && !asked.atLeast(own) {
		e.refused = append(e.refused, enforceLevel)
	}
	if held.rank != asked.rank {
		for name, rank := range ranks {
			if rank == held.rank {
				e.takeKey(d, enforceLevel, name)
			}
		}
	}
	_, had := n.Labels[enforceVersion]
	_, has := labels[enforceVersion]
	if held.rank > 0 && (held.minor != asked.minor && (has || held.minor != latestMinor) || own.rank > 0 && had && !has) {
		e.takeKey(d, enforceVersion, held.version())
	}
}

// findStanding returns the Pod Security labels that n would have after e is written.
func (e *effective) findStanding(n *Namespace) map[string]string {
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

// keepLevel gives n, which leaves the forest, the Pod Security labels that it had: a namespace must not become more
// open because the operator released it.
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
