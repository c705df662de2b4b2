package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/pause"
)

// atOnce is how many requests are under way at once.
const atOnce = 16

// The run takes these times from its last progress, without those in which it reads and plans: of a big cluster, that
// takes longer.
const (
	// patience is how long the migration waits for the other operator to stop, and for Warren to write its copies.
	patience = 2 * time.Minute
	// refusalPatience is how long a refused request is tried again: Warren's webhooks may not have seen the last write
	// yet.
	refusalPatience = 20 * time.Second
	// retryPause and longestPause bound the time between two attempts. It grows with the time since the last progress,
	// because each attempt reads the whole cluster.
	retryPause, longestPause = time.Second, 10 * time.Second
)

// executor carries out plans, wave by wave; a wave is the set of steps of one phase that may be done in parallel. After
// each wave it reads everything anew and plans again, so that steps that were interrupted, lost a race or were refused
// for a moment are repeated.
type executor struct {
	*reader
	// read is readEverything of the reader.
	read func(context.Context) (*Estate, Cluster, error)
	plan func(*Estate, Cluster) (Plan, error)
	// tenants are the LNamespaces of the plan to which the user has agreed. The run ends if one of them can't be migrated
	// any more.
	tenants []string
	// agreed are the places to which the user has agreed. The record has them as soon as it is written.
	agreed map[string]string
	// until is the last phase that is carried out; "" for all phases.
	until Phase
	out   io.Writer
	// begun reports whether anything has been written, by this run or an earlier one.
	begun bool
	// stopped reports whether the other operator's Deployments are scaled to 0.
	stopped bool
	// lastDone is the time of the last progress: the start of the run, an accepted write, or a change of lastAwaited.
	lastDone time.Time
	// lastAwaited describes what the run waited for last.
	lastAwaited string
}

// runUntilDone carries out all steps up to phase until, and returns the plan of what is left.
func (x *executor) runUntilDone(ctx context.Context) (plan Plan, err error) {
	x.lastDone = time.Now()
	for {
		began := time.Now()
		estate, c, err := x.read(ctx)
		if failure.IsTransient(err) && time.Since(x.lastDone) <= patience {
			if err := x.pauseBeforeRetry(ctx); err != nil {
				return plan, err
			}
			continue
		}
		if err == nil {
			err = x.lostTenant(estate)
		}
		if err != nil {
			return plan, err
		}
		c.Agreed, x.begun, x.stopped = x.agreed, x.begun || c.Peer.Record != nil, c.Peer.isScaledDown()
		if plan, err = x.plan(estate, c); err != nil {
			return plan, err
		}
		x.lastDone = x.lastDone.Add(time.Since(began))
		wave, limit := x.nextWave(plan.Steps), refusalPatience
		if awaited := x.reasonToWait(wave, estate, c); awaited != "" {
			err, limit = errors.New("timed out waiting for "+awaited), patience
			if awaited != x.lastAwaited {
				x.lastAwaited, x.lastDone = awaited, time.Now()
			}
		} else if len(wave) == 0 {
			return plan, nil
		} else {
			err = x.carryOut(ctx, wave)
		}
		if err == nil {
			continue
		}
		if time.Since(x.lastDone) > limit || !isTransientRefusal(err) {
			return plan, err
		}
		if err := x.pauseBeforeRetry(ctx); err != nil {
			return plan, err
		}
	}
}

// pauseBeforeRetry waits for half the time since the last progress, within retryPause and longestPause.
func (x *executor) pauseBeforeRetry(ctx context.Context) error {
	return pause.For(ctx, min(max(time.Since(x.lastDone)/2, retryPause), longestPause))
}

// planOn returns the plan, or an error if the estate reports that the migration must not go on.
func planOn(estate *Estate, c Cluster) (Plan, error) {
	if estate.Stop != "" {
		return Plan{}, errors.New(estate.Stop)
	}
	plan := NewPlan(estate, c)
	return plan, plan.checkPlacesAgreed(estate.peer)
}

// lostTenant returns an error if a tenant to which the user has agreed can't move any more, for example because
// somebody has taken its name since.
func (x *executor) lostTenant(estate *Estate) error {
	for _, name := range x.tenants {
		if _, moves := estate.Tenants[name]; moves {
			continue
		}
		why := "it was deleted; give the command again"
		for _, gap := range estate.Gaps {
			if gap.What == "Tenant "+name {
				why = gap.Instead
			}
		}
		return fmt.Errorf("tenant %s can't be migrated any more: %s", name, why)
	}
	return nil
}

// reasonToWait returns what must happen before the next wave; "" if nothing must. The other operator must have stopped
// before the later waves of phase Rest, and before all other phases but Wake, which starts it again. Before some waves,
// Warren must have made or deleted the roots of tenants, or removed inherited keys. In the last phase, Warren must have
// written the copies of one wave before the next.
func (x *executor) reasonToWait(wave []Step, estate *Estate, c Cluster) string {
	stopped := restFinalizers
	if c.Peer.hasAnyGrants() {
		stopped = restOthers
	}
	begun := len(wave) == 0 || wave[0].Phase != Rest && wave[0].Phase != Wake ||
		wave[0].Phase == Rest && wave[0].wave >= stopped
	if running := c.Peer.firstRunningDeployment(); begun && running != "" && c.Peer.Record != nil {
		return x.peer.title + " to stop: " + running + " still has Pods (kubectl get pods -n " + x.peerNamespace + ")"
	}
	if unready := tenantToWaitFor(wave, estate, c); unready != "" {
		return unready
	}
	if keys := awaitedCleaning(wave, c); keys != "" {
		return keys
	}
	if len(wave) == 0 || wave[0].Phase == Finish {
		return cmp.Or(awaitedTreeQuota(wave, estate, c), staleCopiesReason(estate, c))
	}
	return ""
}

// nextWave returns the first wave of steps; nil if its phase comes after until.
func (x *executor) nextWave(steps []Step) []Step {
	if len(steps) == 0 || x.until != "" && slices.Index(phaseOrder, steps[0].Phase) > slices.Index(phaseOrder, x.until) {
		return nil
	}
	end := slices.IndexFunc(steps, func(s Step) bool { return s.Phase != steps[0].Phase || s.wave != steps[0].wave })
	if end < 0 {
		end = len(steps)
	}
	return steps[:end]
}

// staleCopiesReason returns how many copies Warren must still update after their sources changed in the last phase; ""
// for none.
func staleCopiesReason(estate *Estate, c Cluster) string {
	if !c.Peer.Record.isMigrationFinished() {
		return ""
	}
	objects, modes, count := c.objectsBySlot(), c.configuredKindModes(), 0
	for slot := range estate.Copies {
		object := objects[slot]
		if object == nil || copies.ParseHash(object.Annotations[v1alpha1.AnnotationSourceHash]).Mode != v1alpha1.ModeCreate {
			continue
		}
		at := slot.At(object.Labels[v1alpha1.LabelInheritedFrom])
		final := estate.finalPropagateMode(at, modes)
		if source := objects[at]; source != nil && final != v1alpha1.ModeCreate &&
			source.Labels[v1alpha1.LabelPropagate] == final {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("Warren to update %d copies that it has taken over: kubectl warren describe NAMESPACE shows the cause",
		count)
}

// carryOut performs the steps of a wave in parallel. After all have been tried, it returns one error: if possible, one
// that a retry can't remedy.
func (x *executor) carryOut(ctx context.Context, wave []Step) error {
	failures := make([]error, len(wave))
	group := errgroup.Group{}
	group.SetLimit(atOnce)
	for i, step := range wave {
		group.Go(func() error {
			failures[i] = sendStepRequest(ctx, x.api, step)
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors
	var first error
	for i, step := range wave {
		if failures[i] == nil {
			x.begun, x.lastDone = true, time.Now()
			terminal.Fprintf(x.out, "%s: %s %s\n", step.Phase, step.Object, done[step.Verb])
		} else if first == nil || isTransientRefusal(first) && !isTransientRefusal(failures[i]) {
			first = fmt.Errorf("%s of %s: %w", step.Verb, step.Object, failures[i])
		}
	}
	return first
}

var done = map[Verb]string{Create: "created", Patch: "patched", Delete: "deleted"}

// sendStepRequest sends one request, which fails if the object has changed since it was read.
func sendStepRequest(ctx context.Context, api client.Client, step Step) error {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(step.Object.APIVersion)
	object.SetKind(step.Object.Kind)
	object.SetNamespace(step.Object.Namespace)
	object.SetName(step.Object.Name)
	switch step.Verb {
	case Delete:
		uid := types.UID(step.uid)
		return client.IgnoreNotFound(api.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &step.version}))
	case Create:
		body, err := json.Marshal(step.Body)
		if err == nil {
			err = json.Unmarshal(body, &object.Object)
		}
		if err != nil {
			return err
		}
		return api.Create(ctx, object)
	}
	body, kind, err := step.guardedPatchBody()
	if err != nil {
		return err
	}
	return api.Patch(ctx, object, client.RawPatch(kind, body))
}

// guardedPatchBody returns the body of a patch that fails if the object has changed since it was read. A JSON patch
// already has its own test.
func (s Step) guardedPatchBody() ([]byte, types.PatchType, error) {
	merge, ok := s.Body.(map[string]any)
	if !ok {
		body, err := json.Marshal(s.Body)
		return body, types.JSONPatchType, err
	}
	guarded, metadata := map[string]any{}, map[string]any{"uid": s.uid, "resourceVersion": s.version}
	maps.Copy(guarded, merge)
	if given, ok := merge["metadata"].(map[string]any); ok {
		maps.Copy(metadata, given)
	}
	guarded["metadata"] = metadata
	body, err := json.Marshal(guarded)
	return body, types.MergePatchType, err
}

// isTransientRefusal reports whether the same request may succeed in a moment: for example because another client
// changed the object, or because Warren's webhooks haven't seen the last write yet.
func isTransientRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled)
	}
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnauthorized, metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotFound:
		return false
	}
	return true
}
