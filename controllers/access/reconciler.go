// Package access writes the RBAC objects through which the users, managers and sudoers of a tenant hold their rights,
// as internal/grants plans them.
//
// These "access objects" have the label tenancy.warren.dev/access. They are RoleBindings in the tenant's root namespace
// and pairs, each a ClusterRole and a ClusterRoleBinding of one name. A self pair lets a user impersonate himself or
// herself. The tenants that list the user as a sudoer share it, and each of them is an owner of it. Tenants with a sole
// pair (see internal/grants) need none.
//
// One pass over a tenant gathers the facts (gather.go), lets the pure planner decide, carries out the plan (act.go) and
// reports (report.go, events.go). Withdraw revokes everything when a tenant is deleted. A second, small controller
// deletes objects whose tenant is gone (orphans.go).
//
// Beside the Reconciler, each type owns its state. objectStore reads and writes access objects (read.go, writer.go);
// stepRunner carries out plans; announcer sends Events; accountRecorder records the namespaces of service accounts;
// switches changes the form of impersonation; groups finds the bindings of the groups of sudoers that others made;
// namesakes finds bindings that only have a name of ours.
//
// Before the first write of a pass that may grant a right, the operator reads the LNamespace and the Namespaces
// concerned from the API server (current.go). If they are not what the watches have shown, the pass only revokes.
// Otherwise an operator whose watch is late would grant again what had ended. A new leader first makes one pass for
// each tenant that only revokes (start.go).
package access

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// View answers questions about namespaces that access depends on.
type View interface {
	// Owns reports whether the Namespace root is the one that the LNamespace with this UID made or adopted.
	Owns(root string, uid types.UID) bool
	// IsTerminating reports whether the Namespace called name is being deleted.
	IsTerminating(name string) bool
	// InTree reports whether namespace is root or a descendant of it, and is not halted.
	InTree(namespace, root string) bool
	// BelongsTo reports whether namespace counts as part of the tree of root when subjects are refused. Unlike InTree,
	// it counts a namespace that is halted, in a cycle or protected.
	BelongsTo(namespace, root string) bool
	// UID returns the UID of the namespace called name; "" if there is none.
	UID(name string) types.UID
	// Living returns root itself, and those namespaces below it that are not terminating.
	Living(root string) []string
}

// Settings are what the configuration says about access.
type Settings struct {
	// UserClusterRole is the ClusterRole that users hold in their tree.
	UserClusterRole string
	SudoMode        v1alpha1.SudoMode
	// OperatorNamespace is where the operator runs; service accounts of it get no access.
	OperatorNamespace string
}

// Timing holds the time constants, so that tests can shrink them.
type Timing struct {
	// RetryMin and RetryMax bound the back-off of a tenant that an obstacle has stopped.
	RetryMin, RetryMax time.Duration
	// ErrorMin is the shortest back-off after an error; RetryMax is the longest.
	ErrorMin time.Duration
	// RoleTrust is how long the ClusterRole of users, once seen, is taken to exist without being read again. Once
	// missed, it is taken to be missing for RetryMin.
	RoleTrust time.Duration
	// GroupRetry is the pause between two reads of the bindings that stop a tenant's first grant (see groups).
	GroupRetry time.Duration
	// Namesakes is the pause between two looks for bindings that only have a name of the operator's (see namesakes).
	Namesakes time.Duration
	// Recent is how long one of the operator's own writes is remembered if no watch brings it (see recent).
	Recent time.Duration
	// SwitchGrace is how long the set form of impersonation must be in place before a tenant's rules lose the other
	// one.
	SwitchGrace time.Duration
}

// DefaultTiming is what production uses.
func DefaultTiming() Timing {
	return Timing{
		RetryMin: time.Second, RetryMax: 30 * time.Second, ErrorMin: 200 * time.Millisecond, RoleTrust: time.Minute,
		GroupRetry: 30 * time.Second, Namesakes: time.Hour, Recent: 10 * time.Second,
		SwitchGrace: 2 * time.Second,
	}
}

// Reconciler keeps the access objects of LNamespaces. All exported fields but Timing are required, unless their
// comments say otherwise.
type Reconciler struct {
	// Client reads ClusterRoles, ClusterRoleBindings and RoleBindings from a cache that holds those labelled
	// tenancy.warren.dev/access. SetupWithManager takes the manager's if it is nil, and the same holds for Live.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// View is the shared view (*view.View). It is asked only after Changes has synced.
	View View
	// Changes requeues a tenant when an answer of View about it may have changed: its root was created, deleted or got
	// another owner, or a namespace joined or left its tree. A View that fills up in the background needs a
	// source.SyncingSource here. Nothing is reconciled before that source has synced: with an empty View, the operator
	// would revoke all access for a moment after a restart.
	Changes source.Source
	// AwaitsRails reports whether rights in the root must wait for a template's copies that limit these rights there
	// (such as quotas and network policies). It reports true only for a limited time. In the operator it is
	// copies.Runner.AwaitsRails; if it is nil, grants never wait.
	AwaitsRails func(root string) bool
	// Unvetted returns sentences about dangerous rights that users hold; Vetting requeues all tenants when these may
	// have changed. A vetting.Vetter provides both. Neither is required.
	Unvetted func() []string
	Vetting  source.Source
	// Copies answers which copies of a tenant's RoleBindings its tree lacks: copies.Runner; nil where nothing is
	// propagated. Again must be called when an answer may have changed.
	Copies Copies
	Config Settings
	// Report changes the status of an LNamespace by a function, which it may call again after a conflict. In the
	// operator it is lnamespace.Reporter.Report.
	Report func(context.Context, *v1alpha1.LNamespace, func(*v1alpha1.LNamespaceStatus)) error
	Events record.EventRecorder
	Timing Timing
	// Revoked is closed when each tenant that existed at the start has had one pass that only revokes. If it is nil,
	// SetupWithManager makes one.
	Revoked chan struct{}
	// Workers is how many tenants are worked on at once; 4 if it is 0.
	Workers int

	// Each type below owns its state. No method takes the lock of one while it holds the lock of another. checkComplete
	// sets the pointers, and patience.
	objects   *objectStore
	steps     *stepRunner
	groups    *groups
	namesakes *namesakes
	switches  *switches
	roles     *userRoles
	accounts  *accountRecorder
	announcer *announcer
	leaving   *leavingTenants
	clock     *revocationClock
	patience  workqueue.TypedRateLimiter[string]
	start     *startPhase
	blocked   obstacles
	requests  requests
	// copied requeues tenants whose copies have something new to report.
	copied requeue.Source[reconcile.Request]
	// elsewhere counts foreign bindings of the groups of sudoers.
	elsewhere foreignBindings
}

// Reconcile brings the access objects of one tenant to what its LNamespace says. It does nothing for a missing
// LNamespace. During the start phase (see startPhase) it only revokes; the end of that phase requeues the tenant.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	starting := !r.start.isOver()
	if starting {
		defer r.start.recordPass(request.Name)
	}
	tenant, err := r.readTenant(ctx, request.Name)
	if err != nil || tenant == nil {
		return ctrl.Result{}, err
	}
	seen, err := r.gatherFacts(ctx, tenant)
	if err != nil {
		return ctrl.Result{}, err
	}
	seen.starting = starting
	plan := grants.PlanFor(tenant.Name, seen.objects, seen.withheldGrants(), seen.actual)
	done := r.steps.runSteps(ctx, tenant, plan, seen.actual)
	// No report: the pass after the start phase decides about grants, too.
	if starting {
		return ctrl.Result{}, errors.Join(done.errs...)
	}
	for _, err := range []error{seen.unremembered, seen.unread} {
		if err != nil {
			done.errs = append(done.errs, err)
		}
	}
	return r.reportAccess(ctx, tenant, seen, done)
}
