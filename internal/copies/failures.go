package copies

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/text"
)

// Errors that the requests for a slot end with, beside the API server's own.
var (
	// ErrObstacle reports that another object is where a copy should be.
	ErrObstacle = errors.New("an object of that name exists: rename or delete it")
	// ErrBeingDeleted reports that the object that is there is being deleted.
	ErrBeingDeleted = errors.New("the object is being deleted")
	// ErrBehind reports that the forest, as the watch has shown it, is older than the cluster.
	ErrBehind = errors.New("the watch of Namespaces is behind")
)

// OtherRoleError reports that the Role that a RoleBinding names is missing in the copy's namespace, or is not the same Role there as in the
// source's namespace.
type OtherRoleError struct{ Namespace, Role, Source string }

func (e OtherRoleError) Error() string {
	return fmt.Sprintf("Role %q of %s is not a copy of the Role of %s: propagate that Role in mode update, or bind a ClusterRole; "+
		"kubectl warren trace role/%s -n %s names what keeps its copy away", e.Role, e.Namespace, e.Source, e.Role, e.Namespace)
}

// UnkeptBindingError reports that a RoleBinding in mode create names this Role. Its copy would be written only once, and no later write
// would check the Role again.
type UnkeptBindingError string

func (e UnkeptBindingError) Error() string {
	return fmt.Sprintf("the RoleBinding names Role %q, so it can be copied only in mode update: label it %s=%s, or bind a ClusterRole",
		string(e), v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
}

// behindRetry is the pause after ErrBehind before a deletion is planned again, unless a change of the forest queues it sooner.
const behindRetry = time.Second

// recordFailure finds out why the requests for a slot failed, records what a person must know, and queues the slot again.
func (s *State) recordFailure(slot Slot, action Action, err error) {
	var otherRole OtherRoleError
	var unkept UnkeptBindingError
	switch {
	case errors.As(err, &otherRole):
		s.recordOtherRole(slot, action, err)
	case IsNamespaceGone(slot, err): // such a write is neither reported nor tried again
		s.endMeasured(slot)
		s.endTrouble(slot)
	case errors.Is(err, ErrBeingDeleted), apierrors.IsConflict(err):
		recorded := s.recordTrouble(slot, slotTrouble{text: err.Error()})
		recorded.seen = false
		s.queueAfter(slotKey(slot), Backoff(time.Second, s.settings.Timing.ConflictMax, recorded.tries, slot)) // a watch may queue it sooner
	case errors.Is(err, ErrObstacle):
		s.endMeasured(slot)
		s.recordConflict(slot, action, true)
	case apianswer.IsRefusal(err), errors.As(err, &unkept):
		s.endMeasured(slot)
		s.recordRejection(slot, action, err)
	default:
		s.retryLater(slotKey(slot), err)
	}
}

// failureInterval is the least time between two log lines about requests that failed for a passing reason.
const failureInterval = 10 * time.Second

// FailedRequests decides which of the requests that failed for a passing reason are logged: in an outage, very many fail at once.
type FailedRequests struct {
	logged time.Time
	others int // since then
}

// Add counts a request. It returns the line about it, or false if there is to be none.
func (f *FailedRequests) Add(now time.Time, slot Slot, err error) (Log, bool) {
	if now.Before(f.logged.Add(failureInterval)) {
		f.others++
		return Log{}, false
	}
	message := "a request failed; it is tried again"
	if f.others > 0 {
		message += fmt.Sprintf(" (since the last such line, %d others failed)", f.others)
	}
	f.logged, f.others = now, 0
	return Log{Message: message, Slot: slot, Err: err}, true
}

// retryLater queues a key again, with a back-off, after its request has failed without being refused: no connection, 429, 5xx.
func (s *State) retryLater(key Key, err error) {
	recorded := s.recordTrouble(key.Slot, slotTrouble{reading: key.Task == LookAtSource})
	if line, ok := s.failed.Add(s.now, key.Slot, err); ok {
		s.emitOutput(line)
	}
	s.queueAfter(key, TransientBackoff(s.settings.Timing.TransientMin, s.settings.Timing.TransientMax, recorded.tries, key.Slot, err))
}

// recordConflict records that another object is in the way. Where no watch shows that object (unseen), the slot is tried again with a
// back-off. In mode create, any object of that name will do, so no Event is sent and nothing is reported.
func (s *State) recordConflict(slot Slot, action Action, unseen bool) {
	source := s.world.Sources.At(action.Source)
	silent := source != nil && source.Mode == v1alpha1.ModeCreate
	recorded := s.recordTrouble(slot, slotTrouble{reason: v1alpha1.ReasonConflict, from: action.Source.Namespace,
		text: ErrObstacle.Error(), silent: silent})
	recorded.seen = !unseen
	if source != nil && !silent && recorded.announceOnce() {
		if lower := s.world.Sources.At(slot); lower != nil && lower.Mode != v1alpha1.ModeNone {
			s.announceSource(slot, lower.UID, true, v1alpha1.ReasonShadowed,
				fmt.Sprintf("%s/%s has the same name and is nearer to the root, so the namespaces below get copies of it, not of this object",
					action.Source.Namespace, action.Source.Name))
		}
		s.announceSource(action.Source, source.UID, true, v1alpha1.ReasonConflict,
			fmt.Sprintf("%s %q can't be copied to %s: an object of that name exists; rename or delete one of them", slot.Kind.Kind, slot.Name,
				slot.Namespace))
	}
	if unseen {
		s.queueAfter(slotKey(slot), Backoff(s.settings.RetryMin, min(s.settings.RetryMax, s.settings.Timing.ConflictMax), recorded.tries, slot))
	}
}

// recordRejection records that a copy is refused, by the API server or by the operator itself.
func (s *State) recordRejection(slot Slot, action Action, err error) {
	said := text.Cut(err.Error(), 512)
	recorded := s.recordTrouble(slot, slotTrouble{reason: v1alpha1.ReasonRejected, from: action.Source.Namespace, text: said})
	if source := s.world.Sources.At(action.Source); source != nil && !passesSoon(err, recorded.tries) && recorded.announceOnce() {
		s.announceSource(action.Source, source.UID, true, v1alpha1.ReasonCopyRejected,
			fmt.Sprintf("%s %q was refused in %s: %s", slot.Kind.Kind, slot.Name, slot.Namespace, text.Cut(said, 256)))
	}
	s.queueAfter(slotKey(slot), Backoff(s.settings.RetryMin, s.settings.RetryMax, recorded.tries, slot))
}

// recordOtherRole queues a slot again soon, because the copy of the Role may be on its way. After a few such tries the copy is reported as
// rejected.
func (s *State) recordOtherRole(slot Slot, action Action, err error) {
	const soon = 3
	if known := s.troubleOf(slot); known.reason == "" && known.tries < soon {
		recorded := s.recordTrouble(slot, slotTrouble{text: err.Error()})
		s.queueAfter(slotKey(slot), Backoff(time.Second/4, s.settings.Timing.ConflictMax, recorded.tries, slot))
		return
	}
	s.endMeasured(slot)
	s.recordRejection(slot, action, err)
}

// passesSoon reports whether the first try was refused by the cage. The cage decides by what the API server knows of namespaces. When a
// namespace has joined a tree, the API server knows that a moment later than the operator.
func passesSoon(err error, tries int) bool {
	return tries == 1 && strings.Contains(err.Error(), "'warren-operator-cage-")
}

// announceOnce reports whether no Event was sent yet about a trouble, and records that one is sent now.
func (t *slotTrouble) announceOnce() bool {
	first := !t.announced
	t.announced = true
	return first
}

// Backoff returns how long a slot waits after this number of tries: lowest at first and twice as long each time, up to highest, less a
// part of up to a fifth. That part is not random, but computed from the slot and the tries, so that a State decides by its Inputs alone.
func Backoff(lowest, highest time.Duration, tries int, slot Slot) time.Duration {
	d := lowest << min(tries-1, 20)
	if d > highest || d <= 0 {
		d = highest
	}
	chance := fnv.New32a()
	_, _ = fmt.Fprint(chance, slot, tries)
	return d*4/5 + d/5*time.Duration(chance.Sum32()%1000)/1000
}

// TransientBackoff is Backoff after a request that failed without being refused. If the API server asks to wait, the back-off begins at
// twice that time or more, and is never shorter than that time, even if highest is.
func TransientBackoff(lowest, highest time.Duration, tries int, slot Slot, err error) time.Duration {
	asked := apianswer.AskedDelay(err)
	return max(asked, Backoff(max(lowest, asked*5/2), highest, tries, slot))
}

// IsNamespaceGone reports whether a write failed because the namespace of slot is terminating or gone.
func IsNamespaceGone(slot Slot, err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	status, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces" && status.Status().Details.Name == slot.Namespace
}

// IsImmutable reports whether a PUT was refused because of an immutable field for which the copy may be deleted and made anew: the role of
// a RoleBinding, type and content of a Secret or ConfigMap.
func IsImmutable(slot Slot, err error) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	fields := map[string][]string{
		"RoleBinding": {"roleRef"},
		"Secret":      {"type", "data", "stringData", "immutable"},
		"ConfigMap":   {"data", "binaryData", "immutable"},
	}[slot.Kind.Kind]
	for _, cause := range status.Status().Details.Causes {
		for _, field := range fields {
			if cause.Field == field || strings.HasPrefix(cause.Field, field+".") {
				return true
			}
		}
	}
	return false
}

// notices are the Events that sources have got lately.
type notices struct {
	sent   map[notice]time.Time
	pruned time.Time // when old entries of sent were last dropped: once in Timing.EventQuiet, as there may be very many
}

// notice is an Event that a source has got.
type notice struct {
	slot   Slot
	reason v1alpha1.Reason
}

func newNotices() notices { return notices{sent: map[notice]time.Time{}} }

// isDue reports whether no such Event was sent for the time quiet, and if so records that one is sent now.
func (n *notices) isDue(one notice, now time.Time, quiet time.Duration) bool {
	if last, ok := n.sent[one]; ok && now.Sub(last) < quiet {
		return false
	}
	if now.Sub(n.pruned) >= quiet {
		maps.DeleteFunc(n.sent, func(_ notice, when time.Time) bool { return now.Sub(when) >= quiet })
		n.pruned = now
	}
	n.sent[one] = now
	return true
}

// announceSource sends an Event on a source, at most once for each reason in Timing.EventQuiet. ConflictResolved is always sent.
func (s *State) announceSource(slot Slot, uid string, warning bool, reason v1alpha1.Reason, message string) {
	if s.notices.isDue(notice{slot, reason}, s.now, s.settings.Timing.EventQuiet) || reason == v1alpha1.ReasonConflictResolved {
		s.announceTrouble(slot, uid, warning, reason, message)
	}
}

// announceTrouble sends an Event on a source or a copy.
func (s *State) announceTrouble(slot Slot, uid string, warning bool, reason v1alpha1.Reason, message string) {
	if k := s.kinds[slot.Kind]; k != nil && k.served.Kind != "" {
		s.emitOutput(Event{Slot: slot, Kind: k.served, UID: uid, Warning: warning, Reason: reason, Message: message})
	}
}
