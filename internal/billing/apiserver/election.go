package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// ElectionTiming holds the time constants of an Election; each is greater than the next.
type ElectionTiming struct {
	// Duration is how long a Lease that isn't renewed keeps others from leading. Deadline is how long the leader tries to renew it before
	// the leader gives up. Retry is the time between two attempts.
	Duration, Deadline, Retry time.Duration
}

// DefaultElectionTiming is controller-runtime's.
func DefaultElectionTiming() ElectionTiming {
	return ElectionTiming{Duration: 15 * time.Second, Deadline: 10 * time.Second, Retry: 2 * time.Second}
}

// Election makes one of several processes the leader, by a Lease, as k8s.io/client-go/tools/leaderelection does: the API server takes a
// write only of the version that was read, and whether a Lease has expired is told by how long this process has seen it unchanged, so
// that clocks needn't agree.
type Election struct {
	Client          *Client
	Namespace, Name string
	// Identity is this process's own; no other process, and no former run, has the same.
	Identity string
	Timing   ElectionTiming

	// waiting is why this process doesn't lead yet; nil before its first try.
	waiting atomic.Pointer[error]

	// version is the Lease's version as read last, and changedAt when this process first saw that version.
	version   string
	changedAt time.Time
}

// ErrLeaseLost says that the Lease couldn't be renewed in time, so that another process may lead.
var ErrLeaseLost = errors.New("the Lease couldn't be renewed in time, so another replica may lead now")

// Lead waits until this process leads, and runs work then. The context of work ends when ctx ends or the Lease is lost. Once work has
// ended Lead frees the Lease. It returns work's error, ErrLeaseLost, or nil if ctx ended.
func (e *Election) Lead(ctx context.Context, work func(context.Context) error) error {
	lead := func(ctx context.Context) (bool, error) {
		err := e.hold(ctx)
		if err != nil {
			e.noteWaiting(ctx, err)
		}
		return err == nil, nil
	}
	if wait.PollUntilContextCancel(ctx, e.Timing.Retry, true, lead) != nil {
		return nil // ctx ended before
	}
	leading, end := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		e.renew(leading, end)
	}()
	err := work(leading)
	lost := errors.Is(context.Cause(leading), ErrLeaseLost)
	end(nil)
	<-renewed
	if lost {
		return errors.Join(err, fmt.Errorf("Lease %s/%s: %w", e.Namespace, e.Name, ErrLeaseLost)) //nolint:staticcheck // the kind's name
	}
	e.release(context.WithoutCancel(ctx))
	return err
}

// Waiting returns why this process doesn't lead: ErrHeld if another one does, otherwise what went wrong; nil before its first try.
func (e *Election) Waiting() error {
	if err := e.waiting.Load(); err != nil {
		return *err
	}
	return nil
}

// noteWaiting stores why this process doesn't lead, and logs it where it is something else than before.
func (e *Election) noteWaiting(ctx context.Context, err error) {
	was := e.Waiting()
	e.waiting.Store(&err)
	if errors.Is(err, ErrHeld) || was != nil && was.Error() == err.Error() || ctx.Err() != nil {
		return
	}
	ctrllog.FromContext(ctx).WithName("election").Info("the Lease can't be taken; trying again", "lease", e.Namespace+"/"+e.Name, "error", err.Error())
}

// renew renews the Lease until ctx ends, and ends ctx if that fails for the deadline.
func (e *Election) renew(ctx context.Context, end context.CancelCauseFunc) {
	ticker := time.NewTicker(e.Timing.Retry)
	defer ticker.Stop()
	for renewedAt := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		began := time.Now()
		attempt, cancel := context.WithDeadline(ctx, renewedAt.Add(e.Timing.Deadline))
		err := e.hold(attempt)
		cancel()
		switch {
		case err == nil:
			renewedAt = began
		case ctx.Err() == nil && (errors.Is(err, ErrHeld) || time.Since(renewedAt) >= e.Timing.Deadline):
			end(ErrLeaseLost)
			return
		}
	}
}

// ErrHeld says that another process holds the Lease.
var ErrHeld = errors.New("another process holds the Lease")

// hold takes the Lease or renews it. It returns ErrHeld while another process holds it.
func (e *Election) hold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Deadline/2)
	defer cancel()
	lease, err := e.read(ctx)
	now := metav1.NowMicro()
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
		e.holdFrom(lease, now)
		return e.Client.coordination.Post().Namespace(e.Namespace).Resource("leases").Body(lease).Do(ctx).Error()
	case err != nil:
		return err
	}
	switch holder := ptr.Deref(lease.Spec.HolderIdentity, ""); {
	case holder == e.Identity:
		lease.Spec.RenewTime = &now
	case holder != "" && !e.expired(lease):
		return ErrHeld
	default:
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
		e.holdFrom(lease, now)
	}
	return e.write(ctx, lease)
}

func (e *Election) holdFrom(lease *coordinationv1.Lease, now metav1.MicroTime) {
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = &e.Identity, ptr.To(max(1, int32(e.Timing.Duration/time.Second)))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
}

// expired says whether this process has seen the Lease unchanged for as long as the Lease lasts.
func (e *Election) expired(lease *coordinationv1.Lease) bool {
	if lease.ResourceVersion != e.version {
		e.version, e.changedAt = lease.ResourceVersion, time.Now()
		return false
	}
	return time.Since(e.changedAt) > time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second
}

// release frees the Lease if this process holds it, so that the next leader needn't wait. What fails is left to the Lease's expiry.
func (e *Election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.Timing.Deadline)
	defer cancel()
	for ctx.Err() == nil {
		lease, err := e.read(ctx)
		if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != e.Identity {
			return
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To(int32(1))
		if !apierrors.IsConflict(e.write(ctx, lease)) { // a renewal that was under way
			return
		}
	}
}

func (e *Election) read(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	return lease, e.Client.coordination.Get().Namespace(e.Namespace).Resource("leases").Name(e.Name).Do(ctx).Into(lease)
}

func (e *Election) write(ctx context.Context, lease *coordinationv1.Lease) error {
	return e.Client.coordination.Put().Namespace(e.Namespace).Resource("leases").Name(e.Name).Body(lease).Do(ctx).Error()
}
