package budget

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/internal/pause"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// known is what exists, as watches and answers have shown, and beside it what this replica has done.
type known struct {
	mu     sync.Mutex // guards the fields below; nothing that blocks is called while it is held
	shares shares
	limits limits
	writes map[string]*writing // by namespace
	// refusals are what namespaces were refused, by namespace.
	refusals map[string]budget.Refusal
	doors    map[string]*door // by namespace
	// watches are the statuses of the watches of ResourceQuotas, of HierarchicalResourceQuotas and of Events.
	watches [watchOfEvents + len(refusalReasons)]watchset.Status
}

// shares and limits are the tables of all shares and HierarchicalResourceQuotas.
type (
	shares      = *mirror.Table[*corev1.ResourceQuota, share]
	limits      = *mirror.Table[*v1alpha1.HierarchicalResourceQuota, limit]
	shareChange = mirror.Change[share]
)

// share is what is kept of the ResourceQuota of a namespace: spec.hard, status.hard, status.used and AnnotationLacking.
type share struct {
	spec, counted, used budget.Amounts
	lacking             string
}

// writing is what was done about the share of a namespace, and what came of it.
type writing struct {
	// since is when the share was found to be uncounted.
	since time.Time
	// lost is the write without an answer. It counts as carried out as long as the mirror says that it is open, and the share is written
	// again.
	lost *budget.Share
	// failure is why the last write failed; "" if it didn't.
	failure string
	// left is what a namespace uses whose share is gone. It counts until the namespace is gone, or has a share again: in a namespace that is
	// being deleted, the share goes before the rest, and perhaps before a watch shows that the namespace is terminating.
	left budget.Amounts
}

func newKnown() known {
	return known{shares: mirror.New(keepShare), limits: mirror.New(keepLimit), writes: map[string]*writing{},
		refusals: map[string]budget.Refusal{}, doors: map[string]*door{}}
}

func keepShare(q *corev1.ResourceQuota) share {
	return share{budget.AmountsOf(q.Spec.Hard), budget.AmountsOf(q.Status.Hard), budget.AmountsOf(q.Status.Used),
		q.Annotations[v1alpha1.AnnotationLacking]}
}

func placeOfShare(namespace string) mirror.Place {
	return mirror.Place{Namespace: namespace, Name: budget.QuotaName}
}

// trimShare removes from a ResourceQuota what keepShare doesn't read, as soon as it arrives.
func trimShare(q *corev1.ResourceQuota) *corev1.ResourceQuota {
	maps.DeleteFunc(q.Annotations, func(key, _ string) bool { return key != v1alpha1.AnnotationLacking })
	q.Labels, q.ManagedFields, q.OwnerReferences = nil, nil, nil
	return q
}

// changeShares calls take, which takes something into the table of shares, and records what has changed. exists reports whether a
// namespace exists.
func (k *known) changeShares(exists func(string) bool, take func(shares) []shareChange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range take(k.shares) {
		k.recordChange(c, exists)
	}
}

// listed returns a change as a list.
func listed(c shareChange, changed bool) []shareChange {
	if !changed {
		return nil
	}
	return []shareChange{c}
}

func (k *known) changeLimits(take func(limits)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	take(k.limits)
}

// recordChange is called when a share was made, has changed or is gone. The caller holds the lock.
func (k *known) recordChange(c shareChange, exists func(string) bool) {
	namespace := c.Place.Namespace
	if d := k.doors[namespace]; d != nil {
		k.takeAtDoor(d, c, time.Now())
	}
	if c.Is == nil {
		if delete(k.writes, namespace); exists(namespace) {
			k.writes[namespace] = &writing{left: c.Was.used}
		}
		return
	}
	w := k.writingOf(namespace)
	if w.left = nil; !k.shares.IsOpen(c.Place) {
		w.lost, w.failure = nil, "" // a newer version decides what was lost, and what was refused is planned anew
	}
	if row := c.Is.row(); row.IsCounted() {
		w.since = time.Time{}
	} else if w.since.IsZero() {
		w.since = time.Now()
	}
	k.dropIdle(namespace)
}

func (s *share) row() budget.Row { return budget.Row{Spec: s.spec, Counted: s.counted, Used: s.used} }

// writingOf returns what was done about the share of a namespace. The caller holds the lock.
func (k *known) writingOf(namespace string) *writing {
	if k.writes[namespace] == nil {
		k.writes[namespace] = &writing{}
	}
	return k.writes[namespace]
}

// dropIdle drops what says nothing. The caller holds the lock.
func (k *known) dropIdle(namespace string) {
	if w := k.writes[namespace]; w != nil && w.lost == nil && w.failure == "" && w.left == nil && w.since.IsZero() {
		delete(k.writes, namespace)
	}
}

// forgetNamespace is called when a namespace is gone, or was made anew (see mirror.Table.ForgetNamespace).
func (k *known) forgetNamespace(namespace, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shares.ForgetNamespace(namespace, version)
	k.limits.ForgetNamespace(namespace, version)
	delete(k.writes, namespace)
	delete(k.refusals, namespace)
	delete(k.doors, namespace)
}

// begin begins a write or a read of a share, and returns spec.hard as it is known.
func (k *known) begin(namespace string) (f *mirror.Flight, hard budget.Amounts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is := k.shares.At(placeOfShare(namespace)); is != nil {
		hard = is.spec
	}
	return k.shares.Begin(placeOfShare(namespace)), hard
}

// endWrite records that a request about a share was answered: nothing that was lost or failed before counts any more. isUnneeded
// reports that the namespace needs no share.
func (k *known) endWrite(namespace string, isUnneeded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.writes[namespace]; w != nil {
		if w.lost, w.failure = nil, ""; isUnneeded {
			w.left = nil
		}
		k.dropIdle(namespace)
	}
}

// recordRefusal records that a write of a share was not carried out, and why; nil says nothing. It says nothing either about a write
// before it whose answer was lost.
func (k *known) recordRefusal(f *mirror.Flight, namespace string, failure error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shares.Refused(f) && failure != nil {
		k.writingOf(namespace).failure = failure.Error()
	}
}

// recordLost records that a write of a share has no answer.
func (k *known) recordLost(f *mirror.Flight, lost *budget.Share, failure error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shares.Lost(f) {
		w := k.writingOf(lost.Namespace)
		w.lost, w.failure = lost, failure.Error()
	}
}

// quota is a share as it is in the cluster, with what was done about it.
type quota struct {
	share
	writing
}

// quotaOf returns what is known of the share of a namespace; nil if nothing is. The caller holds the lock.
func (k *known) quotaOf(namespace string) *quota {
	s, w := k.shares.At(placeOfShare(namespace)), k.writes[namespace]
	if s == nil && w == nil {
		return nil
	}
	q := &quota{}
	if w != nil {
		if q.writing, q.used = *w, w.left; !k.shares.IsOpen(placeOfShare(namespace)) {
			q.lost = nil
		}
	}
	if s != nil {
		q.share = *s
	}
	return q
}

// row returns the row of a plan. A write that is lost counts as carried out.
func (q *quota) row() budget.Row {
	row := q.share.row()
	if q.lost == nil {
		return row
	}
	row.Open, row.Spec = true, maps.Clone(q.spec)
	for key, amount := range q.lost.Hard {
		if row.Spec == nil {
			row.Spec = budget.Amounts{}
		}
		row.Spec[key] = max(row.Spec[key], amount)
	}
	return row
}

// isCounted reports whether Kubernetes limits a namespace by its share.
func (k *known) isCounted(namespace string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.shares.At(placeOfShare(namespace))
	if s == nil {
		return false
	}
	row := s.row()
	return row.IsCounted()
}

// hasLimit reports whether a HierarchicalResourceQuota of a namespace limits anything, or may do so unseen.
func (k *known) hasLimit(namespace string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if knowledge, _ := k.limits.Knowledge(mirror.Everywhere); knowledge != mirror.Complete {
		return true
	}
	return slices.ContainsFunc(k.listLimits(namespace), func(l *limit) bool { return len(l.hard) > 0 && !l.isEnding })
}

// listLimits returns the HierarchicalResourceQuotas of a namespace that count: the first mostLimits, by name. The caller holds the lock.
func (k *known) listLimits(namespace string) (all []*limit) {
	for _, one := range k.limits.In(namespace) {
		if all = append(all, one); len(all) == mostLimits {
			break
		}
	}
	return all
}

// waitForState waits until it is known whether component budgets is installed, and reports whether shares can be written.
func (k *known) waitForState(ctx context.Context) bool {
	for k.readState().kind == unknown && pause.For(ctx, pace) == nil {
	}
	return !k.readState().isOff()
}

// longestMessage bounds the messages that are read.
const longestMessage = 4096

// servePause is the least time between two plans for the refusals of one namespace, unless its share has changed since.
const servePause = 200 * time.Millisecond

// takeRefusal records that a namespace was refused something, by the message of the API server, and returns when to plan its tree.
func (k *known) takeRefusal(namespace, message string, now time.Time) (wait time.Duration, refused bool) {
	if len(message) > longestMessage {
		return 0, false // no message of the API server is so long
	}
	return k.takeRequest(namespace, budget.ParseRefusal(message, k.specOf(namespace)), now)
}

// specOf returns spec.hard of the share of a namespace.
func (k *known) specOf(namespace string) budget.Amounts {
	k.mu.Lock()
	defer k.mu.Unlock()
	if is := k.shares.At(placeOfShare(namespace)); is != nil {
		return is.spec
	}
	return nil
}

// takeRequest records what an object needs for which the share of its namespace is too small, and returns when to plan its tree.
func (k *known) takeRequest(namespace string, needed budget.Amounts, now time.Time) (wait time.Duration, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	q := k.quotaOf(namespace)
	if q == nil || needed == nil {
		return 0, false
	}
	requested := budget.Amounts{} // no more than there are resources, whatever was asked for
	for key := range q.spec {
		if amount, refused := needed[key]; refused {
			requested[key] = amount
		}
	}
	if len(requested) == 0 {
		return 0, false // the share limits nothing of it
	}
	was, before := k.refusals[namespace]
	if left := servePause - now.Sub(was.At); before && left > 0 && maps.Equal(was.Share, q.spec) {
		was.Requested = requested // the newest one: a larger one before may never fit
		k.refusals[namespace] = was
		return left, true
	}
	k.refusals[namespace] = budget.Refusal{At: now, Requested: requested, Share: q.spec,
		Again: before && now.Sub(was.At) < budget.RefusedBefore}
	return 0, true
}
