package copies

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
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

// OtherRoleError reports that the Role that a RoleBinding names is missing in the copy's namespace, or is not the same
// Role there as in the source's namespace.
type OtherRoleError struct{ Namespace, Role, Source string }

func (e OtherRoleError) Error() string {
	return fmt.Sprintf("Role %q of %s is not a copy of the Role of %s: propagate that Role in mode update, or bind a ClusterRole; "+
		"kubectl warren trace role/%s -n %s names what keeps its copy away", e.Role, e.Namespace, e.Source, e.Role, e.Namespace)
}

// UnkeptBindingError reports that a RoleBinding in mode create names this Role. Its copy would be written only once,
// and no later write would check the Role again.
type UnkeptBindingError string

func (e UnkeptBindingError) Error() string {
	return fmt.Sprintf("the RoleBinding names Role %q, so it can be copied only in mode update: label it %s=%s, or bind a ClusterRole",
		string(e), v1alpha1.LabelPropagate, v1alpha1.ModeUpdate)
}

// failureInterval is the least time between two log lines about requests that failed for a passing reason.
const failureInterval = 10 * time.Second

// FailedRequests decides which of the requests that failed for a passing reason are logged: in an outage, very many
// fail at once.
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

// Backoff returns how long a slot waits after this number of tries: lowest at first and twice as long each time, up to
// highest, less a part of up to a fifth. That part is not random, but computed from the slot and the tries, so that a
// State decides by its Inputs alone.
func Backoff(lowest, highest time.Duration, tries int, slot Slot) time.Duration {
	d := lowest << min(tries-1, 20)
	if d > highest || d <= 0 {
		d = highest
	}
	// Slots that failed together must not be tried again together.
	chance := fnv.New32a()
	_, _ = fmt.Fprint(chance, slot, tries)
	return d*4/5 + d/5*time.Duration(chance.Sum32()%1000)/1000
}

// TransientBackoff is Backoff after a request that failed without being refused. If the API server asks to wait, the
// back-off begins at twice that time or more, and is never shorter than that time, even if highest is.
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

// IsImmutable reports whether a PUT was refused because of an immutable field for which the copy may be deleted and
// made anew: the role of a RoleBinding, type and content of a Secret or ConfigMap.
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
