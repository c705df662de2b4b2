// Package leader is the Lease by which one of several replicas of a program leads.
package leader

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// leaseRequestTimeout bounds each request for the Lease, so that this process doesn't lose the Lease because one request hangs.
const leaseRequestTimeout = 5 * time.Second

// leaseDuration is how long the Lease is valid after a renewal.
const leaseDuration = 15 * time.Second

// renewDeadline is how long a leader tries to renew the Lease before it ends. The first try begins 2 s after the last renewal, so a leader
// that can't renew ends 9 s after that renewal (FLT-F17).
const renewDeadline = 7 * time.Second

// Lock is the Lease of a program. In client-go's election, a leader that reads another holder's name in the Lease still tries to renew
// it, until renewDeadline. Meanwhile the program would write. The Lock ends the process at that read, or earlier at a write after the Lease
// has run out (FLT-F18): to stop the writers inside a running process has failed too often in other operators. Only the election's
// goroutine uses it, except for endLateWrites and Failure.
type Lock struct {
	*resourcelock.LeaseLock
	// leads is whether this process held the Lease when it last read or wrote it.
	leads bool
	// renewed is when the last successful write of the Lease began; nil while this process does not hold the Lease.
	// endLateWrites reads it at each request to the API server.
	renewed atomic.Pointer[time.Time]
	// failure is why the last request for the Lease failed; nil if it succeeded.
	failure atomic.Pointer[error]
	// endProcess ends the process.
	endProcess func(holder string)
}

// NewLock returns the Lease of that name, with an identity that no other process has. endProcess ends the process when it must not write
// any more; nil stands for os.Exit.
func NewLock(cfg *rest.Config, namespace, name string, endProcess func()) (*Lock, error) {
	if endProcess == nil {
		endProcess = func() { os.Exit(1) }
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica: %w", err)
	}
	access := rest.AddUserAgent(rest.CopyConfig(cfg), "leader-election")
	access.Timeout = leaseRequestTimeout
	leases, err := coordinationclient.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("making the client for the Lease: %w", err)
	}
	return &Lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		endProcess: func(holder string) {
			ctrl.Log.WithName("election").Info("another replica has taken the Lease: this one ends at once, and its Pod starts again", "holder",
				holder)
			endProcess()
		},
	}, nil
}

// Elect makes the manager of these options take the Lease before it leads. It also guards all clients that are made from cfg after this
// call against late writes.
func (l *Lock) Elect(cfg *rest.Config, options *ctrl.Options) {
	cfg.Wrap(l.endLateWrites)
	options.LeaderElectionResourceLockInterface = l
	options.LeaderElectionID = l.LeaseMeta.Name // the label of leader_election_master_status
	options.LeaseDuration, options.RenewDeadline = new(leaseDuration), new(renewDeadline)
	options.LeaderElectionReleaseOnCancel = true
}

// Failure returns why the Lease could not be read, taken or renewed at the last try; nil if it could, or if another process holds it.
func (l *Lock) Failure() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// recorded returns err, and stores it for Failure.
func (l *Lock) recorded(err error) error {
	l.failure.Store(&err)
	return err
}

// Get reads the Lease. It ends the process if the process led and no longer holds the Lease.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.LeaseLock.Get(ctx)
	if l.recorded(err) != nil {
		return record, raw, err
	}
	holds := record.HolderIdentity == l.Identity()
	if l.leads && !holds {
		l.endProcess(record.HolderIdentity)
	}
	if l.leads = holds; !holds {
		l.renewed.Store(nil)
	}
	return record, raw, nil
}

// Create makes the Lease, held by this process.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begun := time.Now()
	err := l.recorded(l.LeaseLock.Create(ctx, record))
	if err == nil {
		l.leads = true
		l.renewed.Store(&begun)
	}
	return err
}

// Update takes, renews or releases the Lease.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	begun := time.Now()
	err := l.recorded(l.LeaseLock.Update(ctx, record))
	if err != nil {
		return err
	}
	if l.leads = record.HolderIdentity == l.Identity(); l.leads {
		l.renewed.Store(&begun)
	} else {
		l.renewed.Store(nil)
	}
	return nil
}

// endLateWrites ends the process at a write that comes after the Lease has run out. This process was then frozen: another one may lead by
// now, and what this one knows of the cluster is old. Until the Lease runs out, no other process may lead.
func (l *Lock) endLateWrites(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if renewed := l.renewed.Load(); request.Method != http.MethodGet && renewed != nil && time.Since(*renewed) > leaseDuration {
			l.endProcess("unknown: the Lease has run out")
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
