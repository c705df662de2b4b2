package grants

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Object is a ClusterRole, a ClusterRoleBinding or a RoleBinding.
type Object interface {
	metav1.Object
	runtime.Object
}

// Facts hold what the objects of a tenant depend on besides its LNamespace.
type Facts struct {
	// Mode is the mode in status.sudo.mode. While the rules contain both forms, it is the old one.
	Mode v1alpha1.SudoMode
	// Forms are the forms of impersonation that the rules contain.
	Forms Forms
	// SelfForms are, by user, the forms that a self pair contains besides, because other tenants that own it need them.
	SelfForms map[string]Forms
	// UserClusterRole is the name of the ClusterRole that users are bound to.
	UserClusterRole string
	// Refused are listed subjects that get nothing; see Refusals.
	Refused []Refusal
	// Requests reports that component requests is installed.
	Requests bool
}

// Pair is a ClusterRole and the ClusterRoleBinding of the same name.
type Pair struct {
	Role    *rbacv1.ClusterRole
	Binding *rbacv1.ClusterRoleBinding
}

// Objects are all access objects of one tenant. In the pairs of Self, this tenant is the only owner; the pairs that
// exist in the cluster may have more owners.
type Objects struct {
	Forms   Forms
	Sudoers *rbacv1.RoleBinding
	Users   *rbacv1.RoleBinding
	// SudoOn lets sudoers use the constrained form in the tree. It is desired only if Forms contains that form.
	SudoOn *rbacv1.RoleBinding
	// Requests are those of sudo on request. They are written only if GrantsRequests.
	Requests       []*rbacv1.RoleBinding
	GrantsRequests bool
	Sudo           Pair
	Edit           Pair
	Self           []Pair // one for each sudoer who is a User, in the order of the list
	// Sole takes the place of Sudo, Edit and Self where one User is the only manager and the only sudoer; otherwise it
	// is nil. It saves ClusterRoleBindings, all of which the API server reads for each request of any user.
	Sole *Pair
}

// For returns the objects that the tenant implies.
func For(tenant *v1alpha1.LNamespace, facts Facts) Objects {
	name := tenant.Name
	group := v1alpha1.Subject{Kind: v1alpha1.SubjectGroup, Name: v1alpha1.SudoersGroup(name)}
	sudoers := grantedSubjects(tenant.Spec.Sudoers, ListSudoers, facts.Refused)
	managers := grantedSubjects(tenant.Spec.Managers, ListManagers, facts.Refused)

	editors := managers
	if len(managers)+len(sudoers) > 0 {
		editors = append(editors, group)
	}
	objects := Objects{
		Forms:    facts.Forms,
		Requests: requestBindings(tenant, facts.Refused), GrantsRequests: facts.Requests,
		Sudoers: roleBinding(tenant, SudoersBinding, v1alpha1.AccessSudoers, clusterAdmin, []v1alpha1.Subject{group}),
		Users: roleBinding(tenant, UsersBinding, v1alpha1.AccessUsers, facts.UserClusterRole,
			grantedSubjects(tenant.Spec.Users, ListUsers, facts.Refused)),
		SudoOn: roleBinding(tenant, SudoOnBinding, v1alpha1.AccessSudo, ImpersonateOnRole, sudoers),
		Sudo:   tenantPair(tenant, SudoName(name), v1alpha1.AccessSudo, facts.Forms.sudoRules(name, needsSudoUser(sudoers)), sudoers),
		Edit:   tenantPair(tenant, EditName(name), v1alpha1.AccessEdit, editRules(name), editors),
	}
	for _, sudoer := range sudoers {
		if sudoer.Kind == v1alpha1.SubjectUser {
			objects.Self = append(objects.Self, selfPair(sudoer.Name, []metav1.OwnerReference{Reference(tenant)},
				facts.Forms.Or(facts.SelfForms[sudoer.Name])))
		}
	}
	if len(sudoers) == 1 && len(objects.Self) == 1 && slices.Equal(managers, sudoers) {
		pair := solePair(tenant, sudoers[0].Name, facts.Forms)
		objects.Sole = &pair
	}
	return objects
}

// asYourself is kubectl with the sudoer's own name, as the API server knows it. $USER is another name where users log
// in by OIDC.
const asYourself = `kubectl --as="$(kubectl auth whoami -o jsonpath={.status.userInfo.username})"`

// SudoStatus returns status.sudo, which shows sudoers the command to type. Only a User can impersonate itself; sudoers
// who are a Group or a ServiceAccount impersonate SudoUser instead.
func SudoStatus(tenant *v1alpha1.LNamespace, facts Facts) *v1alpha1.SudoStatus {
	sudoers := grantedSubjects(tenant.Spec.Sudoers, ListSudoers, facts.Refused)
	group := v1alpha1.SudoersGroup(tenant.Name)
	status := &v1alpha1.SudoStatus{Group: group, Mode: facts.Mode, Command: asYourself + " --as-group=" + group}
	if !needsSudoUser(sudoers) {
		return status
	}
	status.User = SudoUser(tenant.Name)
	for _, sudoer := range sudoers {
		if sudoer.Kind == v1alpha1.SubjectUser {
			return status
		}
	}
	status.Command = "kubectl --as=" + status.User + " --as-group=" + group
	return status
}

// Bindings returns the ClusterRoleBindings that the operator writes where nothing is withheld.
func (o Objects) Bindings() []*rbacv1.ClusterRoleBinding {
	if o.Sole != nil {
		return []*rbacv1.ClusterRoleBinding{o.Sole.Binding}
	}
	var bindings []*rbacv1.ClusterRoleBinding
	for _, pair := range o.separatePairs() {
		if !pair.bindsNobody() {
			bindings = append(bindings, pair.Binding)
		}
	}
	return bindings
}

// separatePairs returns all pairs but the sole one, in the order in which they are written.
func (o Objects) separatePairs() []Pair { return append([]Pair{o.Sudo, o.Edit}, o.Self...) }

// SudoPairs returns the pairs that let sudoers become the group of their tenant, first the one that binds them all.
func (o Objects) SudoPairs() []Pair {
	if o.Sole != nil {
		return []Pair{*o.Sole}
	}
	return append([]Pair{o.Sudo}, o.Self...)
}

// bindsNobody reports whether the pair has a role alone, because the list of its subjects is empty.
func (p Pair) bindsNobody() bool { return len(p.Binding.Subjects) == 0 }

// all returns every object. Where there is a sole pair, these include the pairs that it replaces. A role comes before
// its binding, and the sudoers' RoleBinding before the users'.
func (o Objects) all() []Object {
	objects := o.RootBindings()
	pairs := o.separatePairs()
	if o.Sole != nil {
		pairs = append(pairs, *o.Sole)
	}
	for _, pair := range pairs {
		objects = append(objects, pair.Role, pair.Binding)
	}
	return objects
}

// RootBindings returns the RoleBindings in the root namespace, which grant rights there and are copied to the tree.
func (o Objects) RootBindings() []Object {
	bindings := []Object{o.Sudoers, o.Users, o.SudoOn}
	for _, binding := range o.Requests {
		bindings = append(bindings, binding)
	}
	return bindings
}

// Keys returns the key of every object of the tenant, whether the object exists or not.
func (o Objects) Keys() []Key {
	objects := o.all()
	keys := make([]Key, 0, len(objects))
	for _, object := range objects {
		keys = append(keys, KeyOf(object))
	}
	return keys
}
