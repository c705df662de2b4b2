package grants

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Marked is the UID of a reference that a tenant has given up. No object has it, so the garbage collector drops the
// reference, and the object with its last one.
const Marked types.UID = "mark-for-deletion"

const kindLNamespace = "LNamespace"

// Reference is how the tenant owns its access objects: neither as controller, for a shared pair would have several, nor
// blocking the owner's deletion, for that needs a right that clusters may ask for.
func Reference(tenant *v1alpha1.LNamespace) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kindLNamespace, Name: tenant.Name, UID: tenant.UID,
	}
}

// Owners are the references of object to LNamespaces of any version, marked ones included.
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

// Shared says whether the object is one that several tenants may own.
func Shared(object Object) bool {
	return object.GetLabels()[v1alpha1.LabelAccess] == v1alpha1.AccessSelf
}

// withOwner puts own among references, in the place of one of the same tenant whatever its UID, and once. Others'
// references to LNamespaces stay on a shared object only.
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

// Release returns the shared object without the tenant's ownership, its reference marked, or false if it owns nothing
// there. A tenant's marked reference is left as it is; what it holds beside that is dropped.
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

// OwnersChanged names the tenants whose ownership of a shared object differs between two versions of it. It is false if the
// object isn't shared or anything else differs, which concerns all of its tenants.
func OwnersChanged(before, after Object) ([]string, bool) {
	if !Shared(before) {
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

func sameReference(a, b metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(a, b) }

// LastOwner says whether no one but the tenant owns the object, marked references aside.
func LastOwner(existing Object, tenant string) bool {
	for _, reference := range existing.GetOwnerReferences() {
		if reference.UID != Marked && (!ownsAsLNamespace(reference) || reference.Name != tenant) {
			return false
		}
	}
	return true
}
