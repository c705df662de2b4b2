package propagation

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copying"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/text"
)

var (
	// errObstacle says that somebody else's object stands where a copy should go.
	errObstacle = errors.New("an object of that name exists")
	// errBeingDeleted says that the object that stands there is being deleted.
	errBeingDeleted = errors.New("the object is being deleted")
)

// handleFailure sorts out why a write or a look did not succeed, reports what a person must know, and tries again later.
func (c *copies) handleFailure(slot propagate.Slot, action propagate.Action, err error) {
	var otherRole otherRoleError
	var unkept unkeptBindingError
	switch {
	case errors.As(err, &otherRole):
		c.handleOtherRole(slot, action, err)
	case copying.IsNamespaceGone(slot, err):
		c.measure.endSlot(slot)
		c.troubles.clear(slot)
	case errors.Is(err, errBeingDeleted), apierrors.IsConflict(err):
		noted, _ := c.troubles.note(slot, trouble{text: err.Error()})
		c.queue.AddAfter(slotKey(slot), copying.Backoff(time.Second, c.timing.ConflictMax, noted.tries)) // a watch event may queue it sooner
	case errors.Is(err, errObstacle):
		c.measure.endSlot(slot)
		c.noteConflict(slot, action, true)
	case apianswer.IsRefusal(err), errors.As(err, &unkept):
		c.measure.endSlot(slot)
		c.noteRejection(slot, action, err)
	default:
		c.troubles.retryLater(slotKey(slot), err)
	}
}

// noteConflict notes that an unrelated object is in the way. Where the watch doesn't show that object (unseen), the slot is tried again with
// a back-off. In mode create, any object of that name will do, so no Event is sent and nothing is reported.
func (c *copies) noteConflict(slot propagate.Slot, action propagate.Action, unseen bool) {
	source := c.facts.source(action.Source)
	silent := source != nil && source.Mode == v1alpha1.ModeCreate
	noted, _ := c.troubles.note(slot, trouble{reason: v1alpha1.ReasonConflict, from: action.Source.Namespace, text: errObstacle.Error(), silent: silent})
	if source != nil && !silent && c.troubles.announce(slot) {
		if lower := c.facts.source(slot); lower != nil && lower.Mode != v1alpha1.ModeNone {
			c.notices.tellSource(slot, lower.UID, corev1.EventTypeWarning, v1alpha1.ReasonShadowed,
				fmt.Sprintf("%s/%s has the same name and is nearer to the root, so the namespaces below get copies of it, not of this object", action.Source.Namespace, action.Source.Name))
		}
		c.notices.tellSource(action.Source, source.UID, corev1.EventTypeWarning, v1alpha1.ReasonConflict,
			fmt.Sprintf("%s %q can't be copied to %s: an object of that name exists", slot.Kind.Kind, slot.Name, slot.Namespace))
	}
	if unseen {
		c.queue.AddAfter(slotKey(slot), copying.Backoff(c.settings.RetryMin, min(c.settings.RetryMax, c.timing.ConflictMax), noted.tries))
	}
}

// noteRejection notes that the API server refuses a copy.
func (c *copies) noteRejection(slot propagate.Slot, action propagate.Action, err error) {
	said := text.Cut(err.Error(), 512)
	noted, _ := c.troubles.note(slot, trouble{reason: v1alpha1.ReasonRejected, from: action.Source.Namespace, text: said})
	if source := c.facts.source(action.Source); source != nil && !passesSoon(err, noted.tries) && c.troubles.announce(slot) {
		c.notices.tellSource(action.Source, source.UID, corev1.EventTypeWarning, v1alpha1.ReasonCopyRejected,
			fmt.Sprintf("%s %q was refused in %s: %s", slot.Kind.Kind, slot.Name, slot.Namespace, text.Cut(said, 256)))
	}
	c.queue.AddAfter(slotKey(slot), copying.Backoff(c.settings.RetryMin, c.settings.RetryMax, noted.tries))
}

// passesSoon reports whether a refusal is the first by the cage, which judges by the namespaces that the API server knows: those that have just
// joined a tree it learns of a moment after the operator.
func passesSoon(err error, tries int) bool {
	return tries == 1 && strings.Contains(err.Error(), "'warren-operator-cage-")
}

// clearTrouble forgets the trouble of a slot that is right now, and says so where a conflict had been reported.
func (c *copies) clearTrouble(slot propagate.Slot, action propagate.Action) {
	was := c.troubles.clear(slot)
	if !was.obstructed() || !was.announced || action.Verb == propagate.Nothing {
		return
	}
	if source := c.facts.source(action.Source); source != nil {
		c.notices.tellSource(action.Source, source.UID, corev1.EventTypeNormal, v1alpha1.ReasonConflictResolved,
			fmt.Sprintf("%s %q was copied to %s", slot.Kind.Kind, slot.Name, slot.Namespace))
	}
}

// isImmutable says whether a PUT was refused because of a field that can't change, and the copy may be deleted and made anew for the sake of
// this field: the role of a RoleBinding, type and content of a Secret or ConfigMap.
func isImmutable(slot propagate.Slot, err error) bool {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // straight from the client
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
