package budget

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/pause"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// state is whether shares can be written.
type state int

const (
	unknown   state = iota // the watches have shown nothing yet
	missing                // component budgets is not installed
	forbidden              // the operator lacks the rights that component budgets has
	installed              // the ResourceQuotas and HierarchicalResourceQuotas that exist are known
)

// known is what the watches and the answers to writes have shown.
type known struct {
	mu sync.Mutex // guards the fields below; nothing that blocks is called while it is held
	// quotas are the shares, by namespace.
	quotas map[string]*quota
	// limits are the HierarchicalResourceQuotas, by namespace and name.
	limits   map[string]map[string]*v1alpha1.HierarchicalResourceQuota
	refusals map[string]budget.Refusal // by namespace
	// watches are the states of the watches of ResourceQuotas, of HierarchicalResourceQuotas and of Events.
	watches [3]watchset.State
}

// quota is a share as it is in the cluster.
type quota struct {
	uid     types.UID // "" where there is none: its creation failed, or it was deleted
	version string    // of the share; where it was deleted, that of the deletion
	// spec, counted and used are spec.hard, status.hard and status.used.
	spec, counted, used budget.Amounts
	// since is when the ResourceQuota was found to be uncounted.
	since time.Time
	// lost is a write without an answer, which may be carried out yet; nil if there is none. It counts as carried out, and is repeated
	// until an answer comes: then the version guards against both being carried out.
	lost *budget.Share
	// failure is why the last write failed; "" if it didn't.
	failure string
}

func newKnown() known {
	return known{quotas: map[string]*quota{}, limits: map[string]map[string]*v1alpha1.HierarchicalResourceQuota{},
		refusals: map[string]budget.Refusal{}}
}

func (k *known) readState() state {
	k.mu.Lock()
	defer k.mu.Unlock()
	result := installed
	for _, one := range k.watches {
		switch one {
		case watchset.NotServed:
			return missing
		case watchset.Forbidden:
			return forbidden
		case watchset.Synced, watchset.Degraded:
		default:
			result = unknown
		}
	}
	return result
}

// isOff reports whether nothing can be written.
func (s state) isOff() bool { return s == missing || s == forbidden }

// isOff waits until it is known whether component budgets is installed, and reports whether nothing can be written.
func (k *known) isOff(ctx context.Context) bool {
	for k.readWatch(watchOfLimits) == "" && pause.For(ctx, pace) == nil {
	}
	return k.readState().isOff()
}

func (k *known) readWatch(i int) watchset.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.watches[i]
}

// setWatch records the state of a watch, and reports whether that changes what readState returns.
func (k *known) setWatch(i int, now watchset.State) bool {
	before := k.readState()
	k.mu.Lock()
	k.watches[i] = now
	k.mu.Unlock()
	return before != k.readState()
}

// replaceQuotas takes in a list of all shares. A share that was written since stays. exists reports whether a namespace exists.
func (k *known) replaceQuotas(version string, all []*corev1.ResourceQuota, exists func(string) bool) {
	listed := map[string]bool{}
	for _, one := range all {
		listed[one.Namespace] = true
		k.takeQuota(one)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for namespace, q := range k.quotas {
		if !listed[namespace] && q.lost == nil && !forest.IsNewer(q.version, version) {
			k.dropShare(namespace, version, exists(namespace))
		}
	}
}

// takeQuota takes in a share that a watch or an answer has shown, unless a newer one is known.
func (k *known) takeQuota(q *corev1.ResourceQuota) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.quotas[q.Namespace]
	// The version decides, also between two shares: an old answer about one that is gone says nothing about what came after it.
	if was != nil && was.version != "" && !forest.IsNewer(q.ResourceVersion, was.version) {
		return
	}
	now := &quota{uid: q.UID, version: q.ResourceVersion, spec: budget.AmountsOf(q.Spec.Hard), counted: budget.AmountsOf(q.Status.Hard),
		used: budget.AmountsOf(q.Status.Used)}
	if row := now.row(); !row.IsCounted() {
		now.since = time.Now()
		if was != nil && !was.since.IsZero() {
			now.since = was.since
		}
	}
	k.quotas[q.Namespace] = now
}

// takeAnswer takes in a share that an answer has shown. It is decided whether the last write was carried out, even if the share isn't newer
// than what is known: the watch may have been faster, and a repeated write that changes nothing makes no new version.
func (k *known) takeAnswer(q *corev1.ResourceQuota) {
	k.takeQuota(q)
	k.mu.Lock()
	defer k.mu.Unlock()
	if is := k.quotas[q.Namespace]; is != nil {
		is.lost, is.failure = nil, ""
	}
}

// dropQuota takes in that a share was deleted; exists reports whether its namespace exists.
func (k *known) dropQuota(q *corev1.ResourceQuota, exists bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was := k.quotas[q.Namespace]; was != nil && was.uid == q.UID {
		k.dropShare(q.Namespace, q.ResourceVersion, exists)
	}
}

// dropShare is called when a share is gone. What the namespace uses counts until the namespace is gone, or has a share again: in a
// namespace that is being deleted, the share goes before the rest, and perhaps before a watch shows that the namespace is terminating.
// version is when it was gone: no older answer brings it back. The caller holds the lock.
func (k *known) dropShare(namespace, version string, exists bool) {
	was := k.quotas[namespace]
	if delete(k.quotas, namespace); exists {
		k.quotas[namespace] = &quota{version: version, used: was.used}
	}
}

// takeAbsence takes in that a read has found no share in a namespace.
func (k *known) takeAbsence(namespace string, exists bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was := k.quotas[namespace]; was != nil {
		k.dropShare(namespace, was.version, exists)
	}
}

// forgetNamespace is called when a namespace is gone.
func (k *known) forgetNamespace(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.quotas, namespace)
	delete(k.refusals, namespace)
}

// forgetQuota records that the operator has deleted the share of a namespace, which needs none.
func (k *known) forgetQuota(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.quotas, namespace)
}

func (q *quota) row() budget.Row {
	row := budget.Row{Spec: q.spec, Counted: q.counted, Used: q.used}
	if q.lost != nil {
		row.Fixed, row.Spec = true, maps.Clone(q.spec)
		for key, amount := range q.lost.Hard {
			if row.Spec == nil {
				row.Spec = budget.Amounts{}
			}
			row.Spec[key] = max(row.Spec[key], amount)
		}
	}
	return row
}

// read returns a copy of what is known of a share; nil if there is none.
func (k *known) read(namespace string) *quota {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.quotas[namespace]
	if q == nil {
		return nil
	}
	return new(*q)
}

// recordFailure records why a write of a share failed. lost is the write if it may be carried out yet; nil if it was refused, which says
// nothing about one before it.
func (k *known) recordFailure(namespace string, lost *budget.Share, failure error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.quotas[namespace] == nil {
		k.quotas[namespace] = &quota{}
	}
	q := k.quotas[namespace]
	q.lost, q.failure = cmp.Or(lost, q.lost), failure.Error()
}

func (k *known) isCounted(namespace string) bool {
	q := k.read(namespace)
	if q == nil {
		return false
	}
	row := budget.Row{Spec: q.spec, Counted: q.counted}
	return row.IsCounted()
}

func (k *known) takeLimit(one *v1alpha1.HierarchicalResourceQuota) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addLimit(one)
}

// addLimit adds a HierarchicalResourceQuota, unless a newer version of it is known. The caller holds the lock.
func (k *known) addLimit(one *v1alpha1.HierarchicalResourceQuota) {
	if k.limits[one.Namespace] == nil {
		k.limits[one.Namespace] = map[string]*v1alpha1.HierarchicalResourceQuota{}
	}
	was := k.limits[one.Namespace][one.Name]
	if was == nil || was.UID != one.UID || !forest.IsNewer(was.ResourceVersion, one.ResourceVersion) {
		k.limits[one.Namespace][one.Name] = one
	}
}

// takeReport takes in the answer to a report on a HierarchicalResourceQuota, unless a watch has shown meanwhile that it is gone.
func (k *known) takeReport(one *v1alpha1.HierarchicalResourceQuota) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was := k.limits[one.Namespace][one.Name]; was != nil && was.UID == one.UID {
		k.addLimit(one)
	}
}

func (k *known) dropLimit(one *v1alpha1.HierarchicalResourceQuota) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if was := k.limits[one.Namespace][one.Name]; was != nil && was.UID == one.UID {
		delete(k.limits[one.Namespace], one.Name)
	}
	if len(k.limits[one.Namespace]) == 0 {
		delete(k.limits, one.Namespace)
	}
}

// replaceLimits takes in a list of all HierarchicalResourceQuotas, at once: a plan that sees only some of them deletes shares.
func (k *known) replaceLimits(all []*v1alpha1.HierarchicalResourceQuota) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.limits)
	for _, one := range all {
		k.addLimit(one)
	}
}

// knowsLimits reports whether the watch has shown all HierarchicalResourceQuotas.
func (k *known) knowsLimits() bool {
	is := k.readWatch(watchOfLimits)
	return is == watchset.Synced || is == watchset.Degraded
}

// listLimits returns the HierarchicalResourceQuotas of a namespace by name: the first mostLimits of them count. The caller holds the lock.
func (k *known) listLimits(namespace string) (all []*v1alpha1.HierarchicalResourceQuota) {
	for _, name := range slices.Sorted(maps.Keys(k.limits[namespace])) {
		all = append(all, k.limits[namespace][name])
	}
	return all
}

// hasLimit reports whether a HierarchicalResourceQuota of a namespace limits anything.
func (k *known) hasLimit(namespace string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.listLimits(namespace)
	for _, limit := range all[:min(len(all), mostLimits)] {
		if len(limit.Spec.Hard) > 0 && limit.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// longestMessage bounds the messages that are read.
const longestMessage = 4096

// servePause is the least time between two plans for the refusals of one namespace.
const servePause = 200 * time.Millisecond

// takeRefusal records that a namespace was refused something, and returns when to plan its tree. A namespace that is refused more often
// than each servePause is planned for once.
func (k *known) takeRefusal(namespace, message string, now time.Time) (wait time.Duration, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.quotas[namespace]
	if q == nil {
		return 0, false
	}
	if len(message) > longestMessage {
		return 0, false // no message of the API server is so long
	}
	parsed := budget.ParseRefusal(message, q.spec)
	if parsed == nil {
		return 0, false
	}
	requested := budget.Amounts{} // no more than there are resources, whatever the message has
	for key := range q.spec {
		if amount, refused := parsed[key]; refused {
			requested[key] = amount
		}
	}
	was, before := k.refusals[namespace]
	if left := servePause - now.Sub(was.At); before && left > 0 {
		was.Requested = requested // the newest one: a larger one before may never fit
		k.refusals[namespace] = was
		return left, true
	}
	k.refusals[namespace] = budget.Refusal{At: now, Requested: requested, Share: q.spec,
		Again: before && now.Sub(was.At) < budget.RefusedBefore}
	return 0, true
}
