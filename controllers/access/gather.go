package access

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// facts are everything that the decisions of one pass over a tenant depend on.
type facts struct {
	tenant   string
	deleting bool
	own      bool // the root Namespace belongs to this LNamespace
	// ending reports that the root Namespace is being deleted. The API server creates nothing in it then, and a
	// finalizer may keep it for long.
	ending   bool
	settings Settings
	// switching reports that rules of the tenant held the other form of impersonation than the set one when the pass
	// began.
	switching bool
	roleless  bool // the ClusterRole of users doesn't exist
	input     grants.Facts
	objects   grants.Objects
	actual    grants.Actual
	group     groupState
	// namesakes are bindings that may grant rights of the tenant, and that no list asks for.
	namesakes []holder
	// unlooked reports that a look for namesakes must end first. At its end, it requeues the tenant.
	unlooked bool
	// uncopied describes the copies of the tenant's RoleBindings that its tree lacks. unsure reports that they are not known
	// yet, and that the condition may name some.
	uncopied []string
	unsure   bool
	// unbounded reports that no subject holds rights in the root yet, and that copies of the template's rails are still
	// missing there. Grants in the root wait for these copies, because rails limit what the rights allow.
	unbounded bool
	// unremembered is the error from recording the namespaces of service accounts, or nil. Accounts whose namespaces
	// are not recorded get nothing.
	unremembered error
	// unread is the error from reading the ClusterRole of users, or nil. After an error nothing is granted, but
	// subjects that left a list still lose their rights.
	unread error
	// starting reports that the leader has not made its first pass over every tenant yet. Until then, nothing is
	// granted.
	starting bool
}

// withheldGrants returns the grants that must not be made, judged by the facts.
func (f *facts) withheldGrants() grants.Withheld {
	return grants.Withheld{
		Everything:    !f.own && !f.deleting,
		Sudo:          f.groupInUse(),
		Users:         f.roleless,
		SudoAdditions: f.group.pending && f.input.Forms.Legacy,
		// A tenant that is being deleted keeps what it has until its finalizer withdraws everything, but a subject that
		// leaves a list loses its rights.
		Additions: f.deleting || f.unread != nil || f.starting,
		Bindings:  f.unbounded || f.ending,
	}
}

// groupInUse reports whether a first grant of sudo would also give the sudoers rights that others bound to their group.
// Constrained impersonation alone would not, because it is allowed only inside the tree.
func (f *facts) groupInUse() bool { return len(f.group.inTheWay) > 0 && f.input.Forms.Legacy }

// firstGrant reports whether sudoers hold sudo now, and no foreign binding stops a first grant. The status then records
// this, and from then on foreign bindings stop nothing (see groups).
func (f *facts) firstGrant() bool {
	return f.own && !f.group.pending && len(f.group.inTheWay) == 0 && len(f.actual.Holders(grants.ListSudoers, f.tenant)) > 0
}

// holdsRights reports whether a RoleBinding of the tenant exists in its root namespace.
func (f *facts) holdsRights() bool {
	for _, binding := range f.objects.RootBindings() {
		if f.actual[grants.KeyOf(binding)] != nil {
			return true
		}
	}
	return false
}

// readTenant reads an LNamespace. It returns nil, and forgets the tenant, if there is none.
func (r *Reconciler) readTenant(ctx context.Context, name string) (*v1alpha1.LNamespace, error) {
	tenant := &v1alpha1.LNamespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, tenant)
	if apierrors.IsNotFound(err) {
		r.dropTenant(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading LNamespace %s: %w", name, err)
	}
	return tenant, nil
}

func (r *Reconciler) dropTenant(tenant string) {
	r.groups.dropTenant(tenant)
	r.patience.Forget(tenant)
	r.clock.dropTenant(tenant)
	r.leaving.dropTenant(tenant)
	r.switches.dropTenant(tenant)
	r.announcer.dropTenant(tenant)
	r.namesakes.dropTenant(tenant)
	r.blocked.setKeys(tenant, nil)
	r.elsewhere.setCount(tenant, 0)
}

func (r *Reconciler) gatherFacts(ctx context.Context, tenant *v1alpha1.LNamespace) (*facts, error) {
	f := &facts{
		tenant:   tenant.Name,
		deleting: !tenant.DeletionTimestamp.IsZero(),
		own:      r.View.Owns(tenant.Name, tenant.UID),
		ending:   r.View.IsTerminating(tenant.Name),
		settings: r.Config,
	}
	// Before planInput, which refuses accounts whose namespaces are not recorded.
	tenant.Status.ServiceAccounts, f.unremembered = r.accounts.rememberAccounts(ctx, tenant)
	f.input = planInput(r.View, tenant, f.settings)
	f.input.Requests = r.requests.served.Load()
	var err error
	if f.actual, err = r.readActual(ctx, tenant, grants.For(tenant, f.input)); err != nil {
		return nil, err
	}
	if f.switching, err = r.switches.chooseForms(ctx, tenant, &f.input, f.actual); err != nil {
		return nil, err
	}
	// Once more, because chooseForms may have changed the form of impersonation.
	f.objects = grants.For(tenant, f.input)
	if f.deleting {
		return f, nil
	}
	// Without its root the tenant gets no sudo, so no scan is owed to it.
	if !f.own {
		r.groups.dropTenant(tenant.Name)
		return f, nil
	}
	exists, err := r.roles.roleExists(ctx, f.settings.UserClusterRole)
	f.roleless, f.unread = err == nil && !exists, err
	f.unbounded = !f.ending && r.AwaitsRails != nil && !f.holdsRights() && r.AwaitsRails(tenant.Name)
	f.group = r.groups.decideGroupState(tenant, f.objects.Sudo.Binding, f.actual)
	f.findNamesakes(r.namesakes, tenant)
	f.findUncopied(r.Copies, r.View, tenant)
	return f, nil
}

func (f *facts) findNamesakes(n *namesakes, tenant *v1alpha1.LNamespace) {
	reported, known := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionAccessReady) != nil, false
	if !reported && len(grants.Subjects(f.objects.Sudo.Binding)) == 0 {
		f.namesakes, known = n.ofNewTenant(tenant.Name)
	} else {
		n.dropTenant(tenant.Name)
		f.namesakes, known = n.ofTenant(tenant.Name)
	}
	f.unlooked = !known
}

// planInput returns what the desired objects depend on besides the LNamespace. Their rules have the form of
// impersonation that is set.
func planInput(view View, tenant *v1alpha1.LNamespace, settings Settings) grants.Facts {
	return grants.Facts{
		Mode:            settings.SudoMode,
		Forms:           grants.FormsOf(settings.SudoMode),
		UserClusterRole: settings.UserClusterRole,
		Refused: grants.Refusals(tenant, grants.Surroundings{
			OperatorNamespace: settings.OperatorNamespace,
			InTree:            belongsTo(view, tenant),
			Doubt: func(account v1alpha1.Subject) string {
				return grants.DoubtAccount(account, tenant.Status.ServiceAccounts, view.UID(account.Namespace))
			},
		}),
	}
}

// readActual reads the existing objects that have the names of the desired objects, and the self and sole pairs that
// the tenant owns. It finds an object that the operator didn't write only if an earlier pass recorded it (blocked).
func (r *Reconciler) readActual(ctx context.Context, tenant *v1alpha1.LNamespace, objects grants.Objects) (grants.Actual, error) {
	actual := grants.Actual{}
	if err := r.objects.addOwnedPairs(ctx, tenant.Name, actual); err != nil {
		return nil, err
	}
	blocked := r.blocked.ofTenant(tenant.Name)
	for _, key := range objects.Keys() {
		object, err := r.objects.readCached(ctx, key)
		if object == nil && err == nil && blocked[key] {
			object, err = r.objects.readLive(ctx, key) // the cache doesn't hold foreign objects
		}
		if err != nil {
			return nil, err
		}
		if object != nil {
			actual[key] = object
		}
	}
	return actual, nil
}
