package grants

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Names of the RoleBindings in a root, and of the ClusterRoles that sudoers hold in the tree: as their group, and as
// themselves for the constrained form of impersonation. The second is shipped in config/rbac and never written.
const (
	UsersBinding   = "warren:users"
	SudoersBinding = "warren:sudoers"
	SudoOnBinding  = "warren:sudo"

	clusterAdmin      = "cluster-admin"
	ImpersonateOnRole = "warren:impersonate-on"
)

const (
	sudoPrefix = v1alpha1.SudoUserPrefix
	editPrefix = "warren:edit:"
	selfPrefix = "warren:self:"
)

// A single pass over the name is the same as the replacements one after the other, because only ~ is written twice over.
var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1", "%", "~2")
	unescaper = strings.NewReplacer("~0", "~", "~1", "/", "~2", "%")
)

// SudoName is the name of the pair that lets sudoers impersonate the group of their tenant.
func SudoName(tenant string) string { return sudoPrefix + tenant }

// SudoUser is the powerless user that Groups and ServiceAccounts impersonate. No one can be listed by that name.
func SudoUser(tenant string) string { return sudoPrefix + tenant }

// EditName is the name of the pair that lets managers and sudoers edit their LNamespace.
func EditName(tenant string) string { return editPrefix + tenant }

// SelfName is the name of the pair that lets user impersonate itself. RBAC names may hold anything but / and %; two users
// never have the same name.
func SelfName(user string) string { return selfPrefix + escaper.Replace(user) }

// SelfUser is the user of a self pair's name, or false if it is not one that SelfName makes.
func SelfUser(name string) (string, bool) {
	escaped, ok := strings.CutPrefix(name, selfPrefix)
	if !ok || escaped == "" {
		return "", false
	}
	user := unescaper.Replace(escaped)
	return user, SelfName(user) == name
}

// Key names an access object.
type Key struct {
	Kind      string // ClusterRole, ClusterRoleBinding or RoleBinding
	Namespace string
	Name      string
}

// String is how messages name the object: "ClusterRole warren:sudo:payments", "RoleBinding payments/warren:users".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Resource is the plural by which the API server knows the kind.
func (k Key) Resource() string { return strings.ToLower(k.Kind) + "s" }

// KeyOf names object, whatever its TypeMeta says. It panics on a kind that no access object has.
func KeyOf(object Object) Key {
	return Key{Kind: kindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// New returns an empty object of the key's kind, to read into.
func (k Key) New() Object {
	switch k.Kind {
	case kindClusterRole:
		return &rbacv1.ClusterRole{}
	case kindClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{}
	default:
		return &rbacv1.RoleBinding{}
	}
}

const (
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindRoleBinding        = "RoleBinding"
)

func kindOf(object Object) string {
	switch object.(type) {
	case *rbacv1.ClusterRole:
		return kindClusterRole
	case *rbacv1.ClusterRoleBinding:
		return kindClusterRoleBinding
	case *rbacv1.RoleBinding:
		return kindRoleBinding
	}
	panic(fmt.Sprintf("%T is not an access object", object))
}

// List is one of the three lists of a tenant.
type List string

// The lists of a tenant.
const (
	ListUsers    List = "users"
	ListManagers List = "managers"
	ListSudoers  List = "sudoers"
)

// Lists are all of them.
func Lists() []List { return []List{ListUsers, ListManagers, ListSudoers} }

// Of are the subjects that the tenant has on this list.
func (l List) Of(tenant *v1alpha1.LNamespace) []v1alpha1.Subject {
	switch l {
	case ListUsers:
		return tenant.Spec.Users
	case ListManagers:
		return tenant.Spec.Managers
	default:
		return tenant.Spec.Sudoers
	}
}

// ListOf says of which list the subjects of a binding are; "" for objects that bind no list as such.
func ListOf(key Key, tenant string) List {
	switch key {
	case Key{Kind: kindRoleBinding, Namespace: tenant, Name: UsersBinding}:
		return ListUsers
	case Key{Kind: kindClusterRoleBinding, Name: EditName(tenant)}:
		return ListManagers
	case Key{Kind: kindClusterRoleBinding, Name: SudoName(tenant)}:
		return ListSudoers
	}
	return ""
}

// Tenants names the tenants that an access object is of: those that its owner references name, living or not, and its
// label's.
func Tenants(object Object) []string {
	var tenants []string
	for _, reference := range Owners(object) {
		tenants = append(tenants, reference.Name)
	}
	if tenant := object.GetLabels()[v1alpha1.LabelTenant]; tenant != "" {
		tenants = append(tenants, tenant)
	}
	return tenants
}
