// Package vetting looks at the users' ClusterRole whenever it changes, has internal/rolevetting compare it with the vetted list, and
// reports. The vetted list has the rights that somebody has reviewed. New and dangerous rights are reported by a metric, by Events
// on that ClusterRole, and to the controllers that report on tenants. Package vetting changes nothing in the cluster: cluster
// admins, once they know, decide what is aggregated into a role.
//
// Only the metadata of that one ClusterRole is watched (watch.go). A look (look.go) reads the role and the ClusterRoles that are
// aggregated into it.
package vetting

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// Timing holds the time constants, so that tests can shrink them.
type Timing struct {
	// Interval is the time between two looks where nothing changes: the API server may have been upgraded, and another version has
	// another list.
	Interval time.Duration
	// Retry is the pause after a look that failed, Timeout the longest time that one may take.
	Retry, Timeout time.Duration
	// Patience is how long other controllers wait for the first look.
	Patience time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{Interval: 10 * time.Minute, Retry: 5 * time.Second, Timeout: 30 * time.Second, Patience: 30 * time.Second}
}

// Vetter compares the ClusterRole of users with the vetted list, on the leader. All exported fields are required, unless they say
// otherwise.
type Vetter struct {
	// Tenants lists LNamespaces. SetupWithManager takes the manager's cache if it is nil.
	Tenants client.Reader
	// Live reads ClusterRoles from the API server. SetupWithManager takes the manager's if it is nil.
	Live client.Reader
	// Role is the name of the ClusterRole.
	Role   string
	Events record.EventRecorder
	Timing Timing

	metadata metadata.Interface
	version  func(context.Context) (*apiversion.Info, error)

	making sync.Once
	again  chan struct{}
	first  chan struct{} // closed after the first look

	// mu guards the fields below. Only Start's goroutine writes last, and it reads last without mu.
	mu          sync.Mutex
	last        *verdict // of the last look that succeeded; nil before the first
	subscribers []func(tenants []string)
}

// verdict is the result of a look.
type verdict struct {
	role     *rolevetting.Role // nil if there is no such ClusterRole
	findings []rolevetting.Finding
}

// SetupWithManager runs the vetter with mgr.
func (v *Vetter) SetupWithManager(mgr ctrl.Manager) error {
	if v.Role == "" || v.Events == nil {
		return errors.New("setting up the vetting of users' rights: Role and Events are required")
	}
	if v.Tenants == nil {
		v.Tenants = mgr.GetClient()
	}
	if v.Live == nil {
		v.Live = mgr.GetAPIReader()
	}
	if v.Timing == (Timing{}) {
		v.Timing = DefaultTiming()
	}
	var err error
	if v.metadata, err = metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient()); err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	v.version = server.ServerVersionWithContext
	return mgr.Add(v)
}

// Start implements manager.Runnable.
func (v *Vetter) Start(ctx context.Context) error {
	v.prepareVetter()
	log := ctrl.Log.WithName("vetting")
	if err := v.watchRole(ctx); err != nil {
		return err
	}
	for {
		next := v.Timing.Interval
		if err := v.lookAtRole(ctx, v.Role); err != nil && ctx.Err() == nil {
			next = v.Timing.Retry
			log.Error(err, "the rights of users can't be compared with the vetted list; what was found before still holds")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.again:
		case <-time.After(next):
		}
	}
}

// Again makes the vetter look as soon as possible, because something that its findings depend on has changed. It doesn't block.
func (v *Vetter) Again() {
	v.prepareVetter()
	select {
	case v.again <- struct{}{}:
	default: // a look is due already
	}
}

func (v *Vetter) prepareVetter() {
	v.making.Do(func() { v.again, v.first = make(chan struct{}, 1), make(chan struct{}) })
}

// keepVerdict keeps the result of a look, and returns the subscribers to call.
func (v *Vetter) keepVerdict(now *verdict) []func(tenants []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = now
	return slices.Clone(v.subscribers)
}

// subscribe has tell called after each look with the tenants whose conditions may change by it; with none where nothing dangerous
// came or went.
func (v *Vetter) subscribe(tell func(tenants []string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subscribers = append(v.subscribers, tell)
}

// Unvetted returns sentences about the dangerous rights of users; none if there are none, or before the first look.
func (v *Vetter) Unvetted() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		return nil
	}
	return rolevetting.Messages(v.last.findings, rolevetting.Danger)
}
