package grants

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Names of the RoleBindings in a root, and of the ClusterRoles that sudoers hold in the tree: cluster-admin as their
// group, and ImpersonateOnRole as themselves, for the constrained form of impersonation. ImpersonateOnRole is shipped
// in config/rbac, and the operator never writes it.
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
	solePrefix = "warren:sole:"
)

// Each replacer makes a single pass over the name, so that it never changes the text of a replacement, which may
// contain ~.
var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1", "%", "~2")
	unescaper = strings.NewReplacer("~0", "~", "~1", "/", "~2", "%")
)

// SudoName returns the name of the Pair (ClusterRole and ClusterRoleBinding) that lets sudoers impersonate the group of
// their tenant. If a sudoer is not a User, the Pair also lets them impersonate SudoUser.
func SudoName(tenant string) string { return sudoPrefix + tenant }

// SudoUser is the user without rights of its own that sudoers who are a Group or a ServiceAccount impersonate. The name
// is reserved, so no list can contain it.
func SudoUser(tenant string) string { return sudoPrefix + tenant }

// EditName returns the name of the Pair that lets managers and sudoers edit their LNamespace.
func EditName(tenant string) string { return editPrefix + tenant }

// SelfName returns the name of the pair that lets user impersonate that user. RBAC names may contain any character but
// / and %, which are escaped; no two users have the same pair.
func SelfName(user string) string { return selfPrefix + escaper.Replace(user) }

// SelfUser returns the user in the name of a self pair; false if SelfName doesn't make that name.
func SelfUser(name string) (string, bool) {
	escaped, ok := strings.CutPrefix(name, selfPrefix)
	if !ok || escaped == "" {
		return "", false
	}
	user := unescaper.Replace(escaped)
	return user, SelfName(user) == name
}

// SoleName returns the name of the pair of a tenant whose only manager and only sudoer is this user. A tenant's name
// has no colon, so two tenants never have the same pair.
func SoleName(tenant, user string) string { return solePrefix + tenant + ":" + escaper.Replace(user) }

// SoleUser returns the user in the name of a sole pair of the tenant; false if SoleName doesn't make that name.
func SoleUser(name, tenant string) (string, bool) {
	escaped, ok := strings.CutPrefix(name, solePrefix+tenant+":")
	if !ok || escaped == "" {
		return "", false
	}
	user := unescaper.Replace(escaped)
	return user, SoleName(tenant, user) == name
}

// LetsSudo reports whether a ClusterRoleBinding of this name is one by which sudoers become the group of their tenant.
func LetsSudo(binding, tenant string) bool {
	_, sole := SoleUser(binding, tenant)
	return sole || binding == SudoName(tenant)
}

// Key names an access object.
type Key struct {
	Kind      string // ClusterRole, ClusterRoleBinding or RoleBinding
	Namespace string
	Name      string
}

// String returns the object's name for messages: "ClusterRole warren:sudo:payments", "RoleBinding
// payments/warren:users".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// compareKeys orders keys by name, then by kind.
func compareKeys(a, b Key) int { return strings.Compare(a.Name+" "+a.Kind, b.Name+" "+b.Kind) }

// Resource returns the name of the kind in the URLs of the API server.
func (k Key) Resource() string { return strings.ToLower(k.Kind) + "s" }

// KeyOf returns the key of object, whatever the object's TypeMeta says. It panics on a kind that no access object has.
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

// Lists returns the three lists of a tenant.
func Lists() []List { return []List{ListUsers, ListManagers, ListSudoers} }

// Of returns the subjects that the tenant has on this list.
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

// ListsOf returns the lists whose subjects a binding has; none for an object that doesn't bind a whole list, such as a
// self pair.
func ListsOf(key Key, tenant string) []List {
	switch key {
	case Key{Kind: kindRoleBinding, Namespace: tenant, Name: UsersBinding}:
		return []List{ListUsers}
	case Key{Kind: kindClusterRoleBinding, Name: EditName(tenant)}:
		return []List{ListManagers}
	case Key{Kind: kindClusterRoleBinding, Name: SudoName(tenant)}:
		return []List{ListSudoers}
	}
	if _, sole := SoleUser(key.Name, tenant); sole && key.Kind == kindClusterRoleBinding {
		return []List{ListManagers, ListSudoers}
	}
	return nil
}

// Claimants returns the tenants of which one must exist for an access object to stay: the tenant in its label, or the
// owners of a shared pair, which has no such label.
func Claimants(object Object) []string {
	if tenant := object.GetLabels()[v1alpha1.LabelTenant]; tenant != "" {
		return []string{tenant}
	}
	return Tenants(object)
}

// Tenants returns the tenants that an access object belongs to: those that its owner references name, existing or not,
// and the one that its label names.
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
