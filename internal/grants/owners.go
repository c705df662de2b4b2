package grants

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Marked is the UID in the owner reference of a tenant that has given up a shared object. No object has that UID, so
// the garbage collector removes the reference. With the last reference, it deletes the object.
const Marked types.UID = "mark-for-deletion"

const kindLNamespace = "LNamespace"

// Reference returns the reference by which the tenant owns its access objects. It is no controller reference, because a
// shared pair has several owners. It doesn't block the owner's deletion, because clusters may require a further right
// for a reference that does.
func Reference(tenant *v1alpha1.LNamespace) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kindLNamespace, Name: tenant.Name, UID: tenant.UID,
	}
}

// Owners returns the references of object to LNamespaces of any version, marked ones included.
func Owners(object Object) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for _, reference := range object.GetOwnerReferences() {
		if ownsAsLNamespace(reference) {
			owners = append(owners, reference)
		}
	}
	return owners
}

func ownsAsLNamespace(reference metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(reference.APIVersion)
	return err == nil && gv.Group == v1alpha1.Domain && reference.Kind == kindLNamespace
}

// Shared reports whether several tenants may own the object.
func Shared(object Object) bool {
	return object.GetLabels()[v1alpha1.LabelAccess] == v1alpha1.AccessSelf
}

// withOwner returns references with own in the place of the same tenant's reference, whatever its UID; if there is
// none, at the end. References to other LNamespaces stay on a shared object only.
func withOwner(references []metav1.OwnerReference, own metav1.OwnerReference, shared bool) []metav1.OwnerReference {
	result := make([]metav1.OwnerReference, 0, len(references)+1)
	placed := false
	for _, reference := range references {
		switch {
		case !ownsAsLNamespace(reference) || (shared && reference.Name != own.Name):
			result = append(result, reference)
		case reference.Name == own.Name && !placed:
			result, placed = append(result, own), true
		}
	}
	if !placed {
		result = append(result, own)
	}
	return result
}

// Release returns the shared object with the tenant's reference marked, or false if that changes nothing. A second
// reference of the same tenant is dropped.
func Release(existing Object, tenant string) (Object, bool) {
	references := make([]metav1.OwnerReference, 0, len(existing.GetOwnerReferences()))
	marked := false
	for _, reference := range existing.GetOwnerReferences() {
		if ownsAsLNamespace(reference) && reference.Name == tenant {
			if marked {
				continue
			}
			marked = true
			reference.UID, reference.Controller, reference.BlockOwnerDeletion = Marked, nil, nil
		}
		references = append(references, reference)
	}
	if slices.EqualFunc(references, existing.GetOwnerReferences(), sameReference) {
		return nil, false
	}
	released := existing.DeepCopyObject().(Object)
	released.SetOwnerReferences(references)
	return released, true
}

// OwnersChanged returns the tenants whose ownership of a shared object differs between two versions of it. It returns
// false if the object isn't shared, if no ownership differs, or if anything else differs, since that concerns all its
// tenants. It also returns false if the object is a role with both forms of impersonation: an owner that leaves may be
// the last one that needed the old form, so that the others are to remove it.
func OwnersChanged(before, after Object) ([]string, bool) {
	if !Shared(before) || holdsBothForms(before) {
		return nil, false
	}
	rest := before.DeepCopyObject().(Object)
	rest.SetResourceVersion(after.GetResourceVersion())
	rest.SetManagedFields(after.GetManagedFields())
	rest.SetOwnerReferences(after.GetOwnerReferences())
	if !equality.Semantic.DeepEqual(rest, after) {
		return nil, false
	}
	tenants := map[string]bool{}
	for _, two := range [][2]Object{{before, after}, {after, before}} {
		for _, owner := range Owners(two[0]) {
			if !slices.ContainsFunc(Owners(two[1]), func(o metav1.OwnerReference) bool { return sameReference(o, owner) }) {
				tenants[owner.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(tenants)), len(tenants) > 0
}

func holdsBothForms(object Object) bool {
	role, ok := object.(*rbacv1.ClusterRole)
	return ok && FormsIn(role) == (Forms{Legacy: true, Constrained: true})
}

func sameReference(a, b metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(a, b) }

// LastOwner reports whether the object has no owner other than the tenant. References with the UID Marked don't count.
func LastOwner(existing Object, tenant string) bool {
	for _, reference := range existing.GetOwnerReferences() {
		if reference.UID != Marked && (!ownsAsLNamespace(reference) || reference.Name != tenant) {
			return false
		}
	}
	return true
}
