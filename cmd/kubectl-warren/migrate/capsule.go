package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Capsule's API group, keys and ClusterRoles, as its documentation names them.
const (
	capsuleGroup       = "capsule.clastix.io"
	capsuleTenant      = capsuleGroup + "/tenant"
	capsuleBinding     = capsuleGroup + "/role-binding"
	capsuleQuota       = capsuleGroup + "/resource-quota"
	capsuleLimits      = capsuleGroup + "/limit-range"
	capsulePolicy      = capsuleGroup + "/network-policy"
	capsulePool        = "projectcapsule.dev/pool"
	capsuleGlobalQuota = "projectcapsule.dev/global-resource-quota"
	capsuleManagedBy   = "projectcapsule.dev/managed-by"
	capsuleProvisioner = "capsule-namespace-provisioner"
	capsuleDeleter     = "capsule-namespace-deleter"
)

// Capsule holds the objects of a cluster that Capsule has written or reads.
type Capsule struct {
	Tenants []unstructured.Unstructured
	// Replicas are objects that Capsule wrote into the namespaces of Tenants; Made are RoleBindings that a migration has
	// made.
	Replicas, Made []unstructured.Unstructured
	// Others are objects of Capsule's other kinds.
	Others []unstructured.Unstructured
}

// ourRules are the settings of Warren's installation that concern tenants.
type ourRules struct {
	*config.OperatorConfiguration
	operatorNamespace string
}

// capsuleEstate turns Capsule's objects into an Estate.
type capsuleEstate struct {
	*Estate
	peer    Capsule
	cluster Cluster
	rules   ourRules
	claims  *capsuleClaims
	// covered are the RoleBindings of Capsule's, as namespace/name, that may be deleted with their Tenant: an LNamespace
	// grants their rights, or isRoleNotReplaced is true of their role.
	covered map[string]bool
	// unlisted are the owners, by Tenant, whom its LNamespace can't list: their rights come from RoleBindings in the root.
	unlisted map[string][]unlistedOwner
	// bindings are the RoleBindings that Capsule wrote, and made those that a migration has made, by namespace.
	bindings map[string][]rbacv1.RoleBinding
	made     map[string][]string
	// pools are the quotas over several namespaces, by these, and assigned the names of those that the budget of a Tenant has dealt with.
	pools    map[string][]quotaOfCapsule
	assigned map[string]bool
}

// tenantOfCapsule is a Tenant with its namespaces, sorted.
type tenantOfCapsule struct {
	unstructured.Unstructured
	namespaces []string
}

// EstateOfCapsule returns the Estate for Capsule's objects. A Tenant is a flat set of namespaces: it becomes an
// LNamespace of its name. The root is its namespace of that name or, if it has none, one that Warren makes; its other
// namespaces become children of the root.
func EstateOfCapsule(peer Capsule, c Cluster, rules ourRules) *Estate {
	e := &capsuleEstate{Estate: newEmptyEstate(), peer: peer, cluster: c, rules: rules, claims: newCapsuleClaims(c),
		covered: map[string]bool{}, unlisted: map[string][]unlistedOwner{}, bindings: bindingsByNamespace(peer.Replicas),
		made: namesByNamespace(peer.Made), assigned: map[string]bool{}}
	e.OwnerGroup = capsuleGroup
	namespaces := e.divideNamespaces()
	e.readQuotas()
	if len(peer.Tenants) > 0 && !c.Peer.Record.isMigrationFinished() {
		e.addEstateGap("deletion of a Tenant", "delete no Tenant and no CustomResourceDefinition of Capsule before kubectl warren migrate "+
			"capsule --finish: until then the garbage collector would delete the namespaces too")
	}
	for _, object := range peer.Tenants {
		t := tenantOfCapsule{object, namespaces[object.GetName()]}
		if why := e.obstacleTo(t); why != "" {
			e.addEstateGap("Tenant "+t.GetName(), why)
			e.stopBelowForeignRoot(t, why)
			continue
		}
		e.placeTenantNamespaces(t)
		e.addTenantRights(t)
		e.missTenantRules(t)
	}
	e.missOtherObjects()
	e.findGarbageOwned()
	return e.Estate
}

// divideNamespaces returns the namespaces of each Tenant, sorted: those that only this Tenant owns, or that it owned
// until the last step of a migration, which has placed them. A label alone doesn't count, because only Capsule keeps
// users from writing it. It adds a gap for each namespace that several Tenants own.
func (e *capsuleEstate) divideNamespaces() map[string][]string {
	uids := map[string]types.UID{}
	for _, tenant := range e.peer.Tenants {
		uids[tenant.GetName()] = tenant.GetUID()
	}
	divided := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(e.cluster.Namespaces)) {
		n := e.cluster.Namespaces[name]
		owners, labeled := ownersAmongTenants(n, uids), n.Labels[capsuleTenant]
		switch {
		case len(owners) == 1:
			divided[owners[0]] = append(divided[owners[0]], name)
		case len(owners) > 1:
			e.addEstateGap("Namespace "+name, "several Tenants own it ("+strings.Join(owners, ", ")+
				"), so it is placed below none of them: remove the wrong ownerReferences, and plan again")
		case labeled != "" && e.cluster.Peer.Record.isMigrationFinished() && isPlacedIn(labeled, n):
			divided[labeled] = append(divided[labeled], name)
		}
	}
	return divided
}

// ownersAmongTenants returns the names of the Tenants that own a namespace, sorted, by name and UID: a Tenant that was
// deleted and created again owns none of its predecessor's namespaces.
func ownersAmongTenants(n *metav1.PartialObjectMetadata, uids map[string]types.UID) (owners []string) {
	for _, r := range n.OwnerReferences {
		if uid, exists := uids[r.Name]; exists && apiGroupOfOwner(r) == capsuleGroup && r.Kind == "Tenant" && r.UID == uid {
			owners = append(owners, r.Name)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// isPlacedIn reports whether a namespace has the labels of the root called root, or those of a child of it.
func isPlacedIn(root string, n *metav1.PartialObjectMetadata) bool {
	return n.Labels[v1alpha1.LabelParent] == root || n.Name == root && n.Labels[v1alpha1.LabelType] == v1alpha1.TypeRoot
}

// obstacleTo returns why there can be no LNamespace for a Tenant, and what to do; "" if there can.
func (e *capsuleEstate) obstacleTo(t tenantOfCapsule) string {
	name := t.GetName()
	root := e.cluster.Namespaces[name]
	const moved = "; until then its namespaces stay in no tree, and what Capsule wrote there stays as it is"
	switch {
	case t.GetDeletionTimestamp() != nil:
		return "it is being deleted, with the namespaces that only it owns: wait until it is gone, and plan again"
	case e.cluster.LNamespaces[name] != nil:
		return e.claims.reasonNotToAdopt(e.cluster.LNamespaces[name], t)
	case len(validation.IsDNS1123Label(name)) > 0:
		return "its name is no DNS label, but the name of an LNamespace must be one: make an LNamespace of another name, and place " +
			"the namespaces there by kubectl warren set NAMESPACE --parent NAME" + moved
	case e.rules.Protected(name, e.rules.operatorNamespace):
		return "a tenant can't have the name of a protected namespace (default, kube-*, the operator's, protectedNamespaces of the " +
			"configuration): take the name out of protectedNamespaces and plan again, " +
			"or make an LNamespace of another name and place the namespaces there by kubectl warren set NAMESPACE --parent NAME" + moved
	case e.rules.Reserved(name, e.rules.operatorNamespace):
		return "tenants.reservedNames of the configuration reserves its name: change that, and plan again" + moved
	case root != nil && !slices.Contains(t.namespaces, name):
		return "Namespace " + name + " exists and does not belong to the Tenant, so LNamespace " + name +
			" can't make its root: make an LNamespace of another name, and place the " +
			"namespaces there by kubectl warren set NAMESPACE --parent NAME" + moved
	case root != nil && root.Labels[v1alpha1.LabelProtected] == v1alpha1.True:
		return "Namespace " + name + " is protected, so that it can't be the root of LNamespace " + name +
			": end the protection with kubectl warren protect " + name + " --off" + moved
	}
	return ""
}

// placeTenantNamespaces adds the places of a Tenant's namespaces and the spec of its LNamespace to the estate.
func (e *capsuleEstate) placeTenantNamespaces(t tenantOfCapsule) {
	name := t.GetName()
	below := e.placeNamespaces(t)
	spec := v1alpha1.LNamespaceSpec{Users: e.usersOfTenant(t), Limits: e.tenantLimitsFor(t, below)}
	if now := e.cluster.LNamespaces[name]; now != nil && !e.claims.isMadeSinceRecord(now) {
		e.addEstateGap("LNamespace "+name, "it exists, and its lists and limits stay as they are: compare its users with the owners of the "+
			"Tenant, and its limits with the Tenant's")
		spec = now.Spec
	}
	e.Tenants[name] = spec
	if len(e.rules.Billing.Required) > 0 && e.cluster.LNamespaces[name] == nil {
		e.addEstateGap("billing of LNamespace "+name, "the configuration requires "+joinTextFields(e.rules.Billing.Required)+
			" of every LNamespace, and a Tenant has no such fields: set billing.defaults, "+
			"or make LNamespace "+name+" yourself before --apply")
	}
}

// placeNamespaces adds the places of a Tenant's namespaces, and returns how many are below the root.
func (e *capsuleEstate) placeNamespaces(t tenantOfCapsule) (below int32) {
	for _, namespace := range t.namespaces {
		if namespace == t.GetName() {
			e.Places[namespace] = Place{Type: v1alpha1.TypeRoot}
			e.missKindsInModeAll(namespace)
			continue
		}
		below++
		e.Places[namespace] = Place{Parent: t.GetName(), Sub: &v1alpha1.SubNamespaceSpec{}}
	}
	return below
}

// missKindsInModeAll adds a gap for each kind in mode All. One namespace of the Tenant becomes the root, and Warren
// would copy its objects to the others.
func (e *capsuleEstate) missKindsInModeAll(root string) {
	for _, kind := range e.cluster.Kinds {
		if kind.Mode == copies.All {
			e.addEstateGap(fmt.Sprintf("objects of %s in Namespace %s", kind.Kind, root),
				"the namespace becomes the root, and propagation.kinds has the kind in mode All, so Warren would copy them to the Tenant's "+
					"other namespaces: before the migration, set label "+v1alpha1.LabelPropagate+"="+v1alpha1.ModeNone+
					" on those that must stay uncopied, or set mode OptIn")
		}
	}
}

func joinTextFields[T ~string](fields []T) string {
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, string(field))
	}
	return strings.Join(names, " and ")
}

// tenantLimitsFor returns the limits of the LNamespace; nil if it has none.
func (e *capsuleEstate) tenantLimitsFor(t tenantOfCapsule, below int32) *v1alpha1.Limits {
	limits := v1alpha1.Limits{SubNamespaces: e.mostNamespacesOf(t, below), Hard: e.budgetOf(t)}
	if limits.SubNamespaces == nil && len(limits.Hard) == 0 {
		return nil
	}
	return &limits
}

// mostNamespacesOf returns the limit of sub-namespaces for the Tenant's quota of namespaces; nil if it has none. A root
// that Warren makes didn't count in the quota; a root that is one of the Tenant's namespaces did.
func (e *capsuleEstate) mostNamespacesOf(t tenantOfCapsule, below int32) *int32 {
	quota, found, _ := unstructured.NestedInt64(t.Object, "spec", "namespaceOptions", "quota")
	if !found {
		return nil
	}
	most := int32(min(max(quota, 0), 1<<30))
	if slices.Contains(t.namespaces, t.GetName()) && most > 0 {
		most-- // one of them is the root
	}
	if most < below {
		e.addEstateGap("namespaceOptions.quota of Tenant "+t.GetName(),
			fmt.Sprintf("it allows fewer namespaces than the Tenant has: spec.limits.subNamespaces of the LNamespace becomes %d, the number of "+
				"namespaces below its root", below))
		most = below
	}
	return &most
}

// findGarbageOwned finds the objects that the garbage collector would delete with Capsule's objects, except the
// RoleBindings in covered, which may be deleted with their Tenant.
func (e *capsuleEstate) findGarbageOwned() {
	owns := func(r metav1.OwnerReference) bool { return apiGroupOfOwner(r) == capsuleGroup }
	for _, name := range slices.Sorted(maps.Keys(e.cluster.Namespaces)) {
		if n := e.cluster.Namespaces[name]; slices.ContainsFunc(n.OwnerReferences, owns) && n.DeletionTimestamp == nil {
			e.Owned = append(e.Owned, n)
		}
	}
	for _, replica := range e.peer.Replicas {
		object := partialMetadataOf(replica)
		if slices.ContainsFunc(object.OwnerReferences, owns) && object.DeletionTimestamp == nil &&
			!e.covered[keyOfBinding(replica)] {
			e.Owned = append(e.Owned, object)
		}
	}
}

// keyOfBinding returns namespace/name of a replica that is a RoleBinding; "" for other kinds.
func keyOfBinding(replica unstructured.Unstructured) string {
	if replica.GetKind() != "RoleBinding" {
		return ""
	}
	return replica.GetNamespace() + "/" + replica.GetName()
}
