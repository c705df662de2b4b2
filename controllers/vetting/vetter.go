// Package vetting reports the rights of the users' ClusterRole that are new or dangerous, whenever it changes and every
// Timing.Interval. internal/rolevetting compares the role with the vetted list: the rights that a person has reviewed.
// A metric, and Events on that ClusterRole, report new rights and dangerous rights. The controllers that report on
// tenants learn of dangerous rights only. Package vetting changes no right: cluster admins, once they know, decide what
// is aggregated into a role.
//
// Only the metadata of that one ClusterRole is watched. A look (look.go) reads the role and the ClusterRoles that are
// aggregated into it.
package vetting

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/requeue"
	"github.com/warren-tenancy/warren/internal/rolevetting"
)

// Timing holds the time constants, so that tests can shrink them.
type Timing struct {
	// Interval is the time between two looks where nothing changes: the API server may have been upgraded, and another
	// version has another list.
	Interval time.Duration
	// Retry is the pause after a look that failed, Timeout the longest time that a look may take.
	Retry, Timeout time.Duration
	// Patience is how long other controllers wait for the first look.
	Patience time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{Interval: 10 * time.Minute, Retry: 5 * time.Second, Timeout: 30 * time.Second, Patience: 30 * time.Second}
}

// Vetter compares the ClusterRole of users with the vetted list, on the leader. All exported fields are required,
// unless they say otherwise.
type Vetter struct {
	// Tenants lists LNamespaces. SetupWithManager takes the manager's cache if it is nil.
	Tenants client.Reader
	// Live reads ClusterRoles from the API server. SetupWithManager takes the manager's if it is nil.
	Live client.Reader
	// Role is the name of the ClusterRole.
	Role   string
	Events record.EventRecorder
	// Timing is DefaultTiming if it is zero.
	Timing Timing

	version func(context.Context) (*apiversion.Info, error)
	tenants requeue.Source[reconcile.Request]

	mu   sync.Mutex // guards last, which only a look writes
	last *verdict   // of the last look that succeeded; nil before the first
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
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	v.version = server.ServerVersionWithContext
	roles, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultFieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, v.Role),
	})
	if err != nil {
		return fmt.Errorf("making the cache of ClusterRole %s: %w", v.Role, err)
	}
	// The ClusterRoles that are aggregated into that role need no watch: Kubernetes writes their rules into the role
	// itself.
	role := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}}
	loop := &requeue.Loop{Name: "vetting", Look: v.checkRole, RetryMin: v.Timing.Retry, RetryMax: v.Timing.Retry}
	return errors.Join(mgr.Add(roles), loop.SetupWithManager(mgr, requeue.Changes(roles, role)))
}

// Start implements source.Source: the Vetter requeues every tenant when the answer of Unvetted has changed.
func (v *Vetter) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return v.tenants.Start(ctx, queue)
}

// WaitForSync implements source.SyncingSource. A controller that has the Vetter as a source waits for the first look.
// Otherwise it would report for a moment after a restart that nothing is dangerous. It waits Patience at most, because
// vetting must not stop tenants.
func (v *Vetter) WaitForSync(ctx context.Context) error {
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, v.Timing.Patience, true, func(context.Context) (bool, error) {
		return v.lastVerdict() != nil, nil
	})
	return ctx.Err()
}

// String names the source in errors of controller-runtime, which would else print all fields while they change.
func (v *Vetter) String() string { return "vetting of ClusterRole " + v.Role }

func (v *Vetter) lastVerdict() *verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}

// Unvetted returns sentences about the dangerous rights of users; none if there are none, or before the first look.
func (v *Vetter) Unvetted() []string {
	last := v.lastVerdict()
	if last == nil {
		return nil
	}
	return rolevetting.Messages(last.findings, rolevetting.Danger)
}
