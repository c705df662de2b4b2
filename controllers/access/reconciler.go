// Package access keeps the RBAC objects of every tenant as internal/grants says they should be.
//
// One pass over a tenant gathers what is (gather.go), lets the pure planner say what to do, does it (act.go) and reports (report.go,
// events.go). Withdraw takes everything back when a tenant goes. A second, small controller deletes objects whose tenant is gone
// (orphans.go).
//
// Beside the Reconciler, each type owns its state: objectStore reads and writes access objects (read.go, writer.go), stepRunner carries
// out plans, announcer sends Events, accountRecorder writes down where service accounts live, modes follows the mode of sudo, groups
// and its holderTable know who else binds the groups of sudoers, and obstacleWatch watches what stands in a tenant's way.
package access

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Forest answers what access depends on outside of RBAC.
type Forest interface {
	// Owns says whether the Namespace root is the one that the LNamespace with this UID made or adopted.
	Owns(root string, uid types.UID) bool
	// InTree says whether namespace is root or a descendant of it.
	InTree(namespace, root string) bool
	// BelongsTo says whether namespace counts as part of the tree of root where something is refused because of that: also while
	// it is halted, in a cycle or protected.
	BelongsTo(namespace, root string) bool
	// UID is that of the namespace called name; "" if there is none.
	UID(name string) types.UID
	// Living are root and the namespaces below it that don't terminate.
	Living(root string) []string
}

// Settings are what the configuration says about access.
type Settings struct {
	// UserClusterRole is the ClusterRole that users hold in their tree.
	UserClusterRole string
	// SudoMode is Legacy, Constrained, or Auto for Constrained where the API server knows it.
	SudoMode v1alpha1.SudoMode
	// OperatorNamespace is where the operator runs; service accounts of it get no access.
	OperatorNamespace string
}

// Timing holds the time constants, so that tests can shrink them.
type Timing struct {
	// RetryMin and RetryMax bound the back-off of a tenant that something stands in the way of.
	RetryMin, RetryMax time.Duration
	// ErrorMin bounds the back-off after an error from below; RetryMax does from above.
	ErrorMin time.Duration
	// RoleTrust is how long the ClusterRole of users is taken to exist without another look.
	RoleTrust time.Duration
	// GroupScan is the pause between two looks at all RoleBindings; GroupRetry that between looks at those that were found
	// to name the group of a tenant from outside its tree.
	GroupScan, GroupRetry time.Duration
	// Recent is how long an own write is remembered that no watch has brought.
	Recent time.Duration
	// Probe is the pause between two questions whether the API server knows constrained impersonation, ProbeRetry that after
	// a question without an answer.
	Probe, ProbeRetry time.Duration
	// SwitchLook is the pause between two looks whether a switch of the mode is in place everywhere; SwitchGrace is how long
	// it has to be in place, for API servers see it a little later; SwitchLimit ends the wait.
	SwitchLook, SwitchGrace, SwitchLimit time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		RetryMin: time.Second, RetryMax: 30 * time.Second, ErrorMin: 200 * time.Millisecond, RoleTrust: time.Minute,
		GroupScan: 30 * time.Minute, GroupRetry: 30 * time.Second, Recent: 10 * time.Second,
		Probe: 10 * time.Minute, ProbeRetry: 30 * time.Second,
		SwitchLook: 500 * time.Millisecond, SwitchGrace: 2 * time.Second, SwitchLimit: time.Minute,
	}
}

// Reconciler keeps the access objects of LNamespaces. All exported fields are required, unless they say otherwise.
type Reconciler struct {
	// Client reads ClusterRoles, ClusterRoleBindings and RoleBindings from a cache that holds those labelled
	// tenancy.warren.dev/access. SetupWithManager takes the manager's if it is nil, and the same holds for Live.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Forest is asked from the moment when Changes has synced.
	Forest Forest
	// Changes asks for a tenant when an answer of Forest about it may have changed: its root came, went or changed hands, or
	// a namespace joined or left its tree. If it is a source.SyncingSource, nothing is reconciled before it has synced;
	// it has to be one if Forest fills up in the background, or a restart takes all access back for a moment.
	Changes source.Source
	// AwaitsRails says whether rights in the root are to wait for what is to hold them in bounds there, the copies of a template. It
	// says so for a while at most. Nil: nothing is waited for.
	AwaitsRails func(root string) bool
	// Unvetted says what is dangerous among the rights that users hold, as sentences; Vetting asks for all tenants when that may
	// have changed. Neither is required.
	Unvetted func() []string
	Vetting  source.Source
	// Config returns the settings in force. Reconfigured has to be called when another SudoMode is.
	Config func() Settings
	// Probe asks the API server whether it knows constrained impersonation. SetupWithManager asks with the manager's own
	// connection if it is nil.
	Probe func(context.Context) grants.Answer
	// Report changes the status of an LNamespace by a function, which may be called again after a conflict.
	Report func(context.Context, *v1alpha1.LNamespace, func(*v1alpha1.LNamespaceStatus)) error
	Events record.EventRecorder
	Timing Timing
	// Workers is how many tenants are worked on at once; 4 if it is 0.
	Workers int

	// What follows owns its state; no lock of it is taken under another. checkComplete makes what is a pointer, and patience.
	objects   *objectStore
	steps     *stepRunner
	groups    *groups
	modes     *modes
	roles     *userRoles
	accounts  *accountRecorder
	announcer *announcer
	leaving   *leavingTenants
	clock     *revocationClock
	patience  workqueue.TypedRateLimiter[string]
	blocked   obstacles
	// obstacles watches what is blocked, and what keeps groups from being granted.
	obstacles *obstacleWatch
	// elsewhere counts others' bindings of the groups of sudoers.
	elsewhere strangers
}

// Reconcile brings the access objects of one tenant to what its LNamespace says.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	tenant, err := r.readTenant(ctx, request.Name)
	if err != nil || tenant == nil {
		return ctrl.Result{}, err
	}
	seen, err := r.gatherFacts(ctx, tenant)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := grants.PlanFor(tenant.Name, seen.objects, seen.withheldGrants(), seen.actual)
	done := r.steps.runSteps(ctx, tenant, plan, seen.actual)
	for _, err := range []error{seen.unremembered, seen.unread} {
		if err != nil {
			done.errs = append(done.errs, err)
		}
	}
	return r.reportAccess(ctx, tenant, seen, done)
}
