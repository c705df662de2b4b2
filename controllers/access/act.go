package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// outcome is the result of carrying out a plan.
type outcome struct {
	changes   []change
	conflicts []grants.Key // keys under which objects exist that the operator didn't write
	forbidden []string     // the API server's messages about requests that it refused (403 or 422)
	contended []grants.Key // objects that another client changed during every try of this pass
	busy      []grants.Key // shared objects that another worker is writing for another tenant
	rootless  bool         // the root Namespace is missing or terminating, and so takes no new objects
	errs      []error
}

// change is one write. before is nil for an object that was created, after for one that was deleted.
type change struct {
	key           grants.Key
	before, after grants.Object
}

// conflictError reports that an object that the operator didn't write has the name of an access object.
type conflictError struct{ key grants.Key }

func (e conflictError) Error() string {
	return fmt.Sprintf("%s already exists, and the operator did not create it", e.key)
}

// errContended reports that another client changed the object during every try of one step.
var errContended = errors.New("another client changed the object during every try")

// errBusy reports that another worker is writing the shared object for another tenant. Waiting for that worker would
// delay the revocations of this tenant; competing with it would cost both of them refused writes.
var errBusy = errors.New("the object is being written for another tenant")

// tries is how often, in one pass, a step is tried on a shared object, which workers write for other tenants, too. A
// step that revokes is tried as often on any object. No pause comes between the tries: when a write is refused as
// outdated, the write that won is complete.
const tries = 6

// fewTries is how often, in one pass, a step that doesn't revoke is tried on a tenant's own object that another client
// keeps writing. While an obstacle makes the operator repeat a tenant's passes with back-off, such a step is tried only
// once in each pass.
const fewTries = 3

// stepRunner carries out plans. It lets only one worker at a time write a shared object, and grants nothing to a tenant
// for which Withdraw was called.
type stepRunner struct {
	objects *objectStore
	leaving *leavingTenants
	clock   *revocationClock
	// uidOf returns the UID of a Namespace as the watch has shown it, "" for none.
	uidOf func(name string) types.UID
	// patience counts, by tenant, the passes in a row that an obstacle has stopped.
	patience workqueue.TypedRateLimiter[string]
	writing  sync.Map // keys of the shared objects that a worker is writing
}

// runSteps carries out the steps in order. If a step fails, the steps that need its object are skipped. If a revocation
// fails, or if the watch is late (see checkCurrent), all later steps that don't revoke are skipped. Conflicts and busy
// objects don't count as failures. Later steps in the root are skipped, too, once the root turns out to be missing or
// terminating.
func (r *stepRunner) runSteps(ctx context.Context, tenant *v1alpha1.LNamespace, plan grants.Plan, actual grants.Actual) *outcome {
	done := &outcome{conflicts: plan.Conflicts}
	unsound := map[grants.Key]bool{}
	mayGrant := true
	current := sync.OnceValue(func() error { return r.checkCurrent(ctx, tenant) })
	for _, step := range plan.Steps {
		key := grants.KeyOf(step.Desired)
		switch {
		case !step.Revokes && !mayGrant, unsound[step.Needs], key.Namespace != "" && done.rootless:
			continue
		case step.Verb == grants.VerbEnsure && r.leaving.isLeaving(tenant):
			continue // Withdraw was called since this pass began
		}
		changes, err := r.runStep(ctx, tenant, step, actual, current)
		if errors.As(err, &outdatedError{}) && step.Revokes {
			if mayGrant {
				done.recordFailure(key, err)
			}
			mayGrant = false
			step.Verb = grants.VerbNarrow // subjects that no list names lose their rights nevertheless
			var more []change
			more, err = r.runStep(ctx, tenant, step, actual, current)
			changes = append(changes, more...)
		}
		// A step that moves rights revokes none, so no Event and no time of a revocation is due.
		if !step.Moves {
			done.changes = append(done.changes, changes...)
			r.clock.timeRevocation(tenant.Name, changes)
		}
		if err != nil {
			unsound[key] = true
			failed := step.Revokes && !errors.As(err, &conflictError{}) && !errors.Is(err, errBusy)
			// A subject whose right could not be taken must not get more. A conflict or a busy object is no failure.
			mayGrant = mayGrant && !failed && !errors.As(err, &outdatedError{})
			done.recordFailure(key, err)
		}
	}
	slices.SortFunc(done.conflicts, func(a, b grants.Key) int { return strings.Compare(a.String(), b.String()) })
	return done
}

// recordFailure records an error about the object named key, in the field of o for this kind of failure.
func (o *outcome) recordFailure(key grants.Key, err error) {
	switch {
	case errors.As(err, &conflictError{}):
		o.conflicts = append(o.conflicts, key)
	case errors.Is(err, errBusy):
		o.busy = append(o.busy, key)
	case errors.Is(err, errContended):
		o.contended = append(o.contended, key)
	// Before the refusals: in a terminating namespace, the API server answers a creation with 403, too.
	case key.Namespace != "" && (apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err)):
		o.rootless = true
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		o.forbidden = append(o.forbidden, err.Error())
	default:
		o.errs = append(o.errs, err)
	}
}

// runStep carries out one step on the object in actual; it first reads a shared object from the cache again. If the API
// server refuses the write because that object is outdated, runStep reads the object from the API server and tries
// again. It updates actual for the steps that follow. Before it grants anything, it calls current, which calls
// checkCurrent once in a pass; before it tries to grant again, it calls checkCurrent itself.
func (r *stepRunner) runStep(ctx context.Context, tenant *v1alpha1.LNamespace, step grants.Step, actual grants.Actual,
	current func() error) ([]change, error) {
	key := grants.KeyOf(step.Desired)
	if grants.Shared(step.Desired) {
		if _, taken := r.writing.LoadOrStore(key, true); taken {
			return nil, errBusy
		}
		defer r.writing.Delete(key)
		existing, err := r.objects.readCached(ctx, key) // a worker may have written it for another tenant since this pass began
		if err != nil {
			return nil, err
		}
		actual.Put(key, existing)
	}
	var changes []change
	left := r.triesOf(tenant.Name, step)
	for range tries {
		before := actual[key]
		after, finished, err := r.tryStep(ctx, tenant.Name, step, actual, current)
		if err == nil {
			if before != after {
				changes = append(changes, change{key: key, before: before, after: after})
			}
			actual.Put(key, after)
			if finished {
				return changes, nil
			}
			continue
		}
		if errors.As(err, &outdatedError{}) || !isStale(err, before) {
			return changes, err
		}
		if left--; left == 0 {
			break
		}
		if step.Verb == grants.VerbEnsure {
			if err := r.checkCurrent(ctx, tenant); err != nil {
				return changes, err
			}
		}
		existing, err := r.objects.readLive(ctx, key)
		if err != nil {
			return changes, err
		}
		actual.Put(key, existing)
	}
	return changes, fmt.Errorf("writing %s: %w", key, errContended)
}

// triesOf returns after how many refusals of an outdated write a step is given up. A step that revokes may be refused
// as often as one on a shared object.
func (r *stepRunner) triesOf(tenant string, step grants.Step) int {
	switch {
	case step.Revokes, grants.Shared(step.Desired):
		return tries
	case r.patience.NumRequeues(tenant) > 0:
		return 1
	}
	return fewTries
}

// isStale reports whether a write was refused because the object is no longer in the state that before describes.
func isStale(err error, before grants.Object) bool {
	if before == nil {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// tryStep makes at most one write. It returns the object after that write (nil if there is none), and whether the step
// is finished.
func (r *stepRunner) tryStep(ctx context.Context, tenant string, step grants.Step, actual grants.Actual,
	current func() error) (after grants.Object, finished bool, err error) {
	if step.Role != nil {
		// Another worker may have made the role anew since this pass began. The cache doesn't hold foreign objects.
		role, err := r.objects.readLive(ctx, grants.KeyOf(step.Role))
		if err != nil {
			return nil, false, err
		}
		actual.Put(grants.KeyOf(step.Role), role)
	}
	existing := actual[grants.KeyOf(step.Desired)]
	next := grants.NextWrite(tenant, step, actual)
	if step.Verb == grants.VerbEnsure && mayGive(step, next, existing) {
		if err := current(); err != nil {
			return existing, false, err
		}
	}
	switch next.Verb {
	case grants.WriteConflict:
		return existing, true, conflictError{grants.KeyOf(step.Desired)}
	case grants.WriteCreate:
		after, err = r.objects.createObject(ctx, next.Object)
	case grants.WriteUpdate:
		after, err = r.objects.updateObject(ctx, next.Object)
	case grants.WriteDelete:
		// The UID alone, so that a client that keeps writing the object delays no deletion.
		guard := sameUID(next.Object)
		// A shared object that has got another owner since it was read must stay.
		if next.Unchanged {
			guard = isUnchanged(next.Object)
		}
		err = r.objects.deleteObject(ctx, next.Object, guard)
	default:
		after = existing
	}
	return after, !next.Unfinished, err
}
