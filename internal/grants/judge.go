package grants

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Verdict describes how an existing object compares to the desired one of its name.
type Verdict string

// The verdicts of Judge.
const (
	// Equal: the object is the operator's, and as it should be.
	Equal Verdict = "Equal"
	// Drift: the object is the operator's, and differs from what it should be.
	Drift Verdict = "Drift"
	// Conflict: the object is someone else's. The operator never writes it.
	Conflict Verdict = "Conflict"
)

// Judge compares an object that exists with the desired one of its kind and name. It is ours if it has our labels and
// either an LNamespace among its owners or, without any, exactly the desired rules, roleRef and subjects.
func Judge(existing, desired Object) Verdict {
	switch {
	case !labelledAlike(existing, desired):
		return Conflict
	case len(Owners(existing)) == 0 && (!grantsAlike(existing, desired) || !SameSubjects(existing, desired)):
		return Conflict
	case !MustRecreate(existing, desired) && equality.Semantic.DeepEqual(existing, Restore(existing, desired)):
		return Equal
	}
	return Drift
}

// Removable reports whether an object that is no longer wanted may be deleted. It requires less than Judge, because
// without an owner the subjects are not known any more. It requires our labels, and one of these: an owner, the desired
// rules (in either form of impersonation), or the desired roleRef.
func Removable(existing, desired Object) bool {
	return labelledAlike(existing, desired) && (len(Owners(existing)) > 0 || grantsAlike(existing, desired) || roleOfAnotherForm(existing))
}

// roleOfAnotherForm reports whether existing is a role as the operator writes it in either form of impersonation, even
// if that form is not in force.
func roleOfAnotherForm(existing Object) bool {
	role, ok := existing.(*rbacv1.ClusterRole)
	if !ok {
		return false
	}
	expected, ok := Expected(role)
	return ok && grantsAlike(role, expected)
}

// labelledAlike compares the labels that describe what the object is. Other labels may differ.
func labelledAlike(existing, desired Object) bool {
	for _, key := range []string{v1alpha1.LabelAccess, v1alpha1.LabelTenant} {
		if existing.GetLabels()[key] != desired.GetLabels()[key] {
			return false
		}
	}
	return true
}

// LacksLabels reports whether an object has the name of a Pair, but not the labels that belong to the name. The operator neither wrote such
// an object nor finds it when a list changes.
func LacksLabels(o metav1.Object) bool {
	family, tenant, is := cutPairName(o.GetName())
	return is && (o.GetLabels()[v1alpha1.LabelAccess] != family || o.GetLabels()[v1alpha1.LabelTenant] != tenant)
}

// NamesakeOf returns the tenant whose Pair has the name of an object that lacks the labels of that name.
func NamesakeOf(o metav1.Object) (tenant string, is bool) {
	_, tenant, _ = cutPairName(o.GetName())
	return tenant, tenant != "" && LacksLabels(o)
}

// cutPairName returns the labels access and tenant that belong to the name of a Pair; tenant is "" for a self pair.
func cutPairName(name string) (family, tenant string, is bool) {
	family, rest, _ := strings.Cut(strings.TrimPrefix(name, "warren:"), ":")
	prefix := "warren:" + family + ":"
	if rest == "" || !strings.HasPrefix(name, prefix) || !slices.Contains([]string{selfPrefix, solePrefix, sudoPrefix, editPrefix}, prefix) {
		return "", "", false
	}
	switch prefix {
	case selfPrefix:
		return family, "", true
	case solePrefix:
		tenant, _, _ = strings.Cut(rest, ":")
		return family, tenant, true
	}
	return family, rest, true
}

// grantsAlike compares the rules or roleRefs of the objects, and leaves their subjects out.
func grantsAlike(existing, desired Object) bool {
	if role, ok := existing.(*rbacv1.ClusterRole); ok {
		return role.AggregationRule == nil && equality.Semantic.DeepEqual(role.Rules, desired.(*rbacv1.ClusterRole).Rules)
	}
	return !MustRecreate(existing, desired)
}

// MustRecreate reports whether existing has another roleRef than desired. A roleRef is immutable, so such an object has
// to be deleted and created anew.
func MustRecreate(existing, desired Object) bool {
	before, bound := roleRef(existing)
	after, _ := roleRef(desired)
	return bound && *before != *after
}

// Restore returns existing with everything put back that is ours: rules, subjects, owners, and the labels and
// annotations of our domain. Others' labels and annotations stay, except labels by which the API server would aggregate
// the rules into one of its own ClusterRoles.
func Restore(existing, desired Object) Object {
	restored := existing.DeepCopyObject().(Object)
	restored.SetLabels(restoreKeys(existing.GetLabels(), desired.GetLabels()))
	restored.SetAnnotations(restoreKeys(existing.GetAnnotations(), desired.GetAnnotations()))
	references := restored.GetOwnerReferences()
	for _, own := range desired.GetOwnerReferences() {
		references = withOwner(references, own, Shared(desired))
	}
	restored.SetOwnerReferences(references)

	switch want := desired.(type) {
	case *rbacv1.ClusterRole:
		role := restored.(*rbacv1.ClusterRole)
		// With an AggregationRule, the API server would replace the rules again.
		role.Rules, role.AggregationRule = want.Rules, nil
	default:
		setSubjects(restored, Subjects(desired))
	}
	return restored
}

func restoreKeys(existing, desired map[string]string) map[string]string {
	restored := make(map[string]string, len(existing)+len(desired))
	for key, value := range existing {
		if !v1alpha1.IsReservedKey(key) && !strings.HasPrefix(key, rbacv1.GroupName+"/") {
			restored[key] = value
		}
	}
	maps.Copy(restored, desired)
	return restored
}

// Expected returns the object that the operator writes under the name and labels of existing, as far as existing
// determines it. A binding's subjects, for example, are known only from the tenant's lists. It returns false for an
// object whose name the operator doesn't use, or whose labels are not those that belong to its name.
func Expected(existing Object) (Object, bool) {
	if user, ok := SelfUser(existing.GetName()); ok {
		self := selfPair(user, nil, formsOf(existing))
		return sameKey(existing, []Object{self.Role, self.Binding})
	}
	tenant := &v1alpha1.LNamespace{}
	tenant.Name = existing.GetLabels()[v1alpha1.LabelTenant]
	if user, ok := SoleUser(existing.GetName(), tenant.Name); ok {
		sole := solePair(tenant, user, formsOf(existing))
		return sameKey(existing, []Object{sole.Role, sole.Binding})
	}
	facts := Facts{Forms: formsOf(existing)}
	if ref, ok := roleRef(existing); ok {
		facts.UserClusterRole = ref.Name
	}
	if role, ok := existing.(*rbacv1.ClusterRole); ok && len(role.Rules) == len(facts.Forms.sudoRules(tenant.Name, true)) {
		tenant.Spec.Sudoers = anyGroup
	}
	return sameKey(existing, For(tenant, facts).all())
}

// formsOf returns the forms that a role contains, so that a role of any form is recognised. It returns the legacy form
// for every other object.
func formsOf(existing Object) Forms {
	role, ok := existing.(*rbacv1.ClusterRole)
	if ok && FormsIn(role) != (Forms{}) {
		return FormsIn(role)
	}
	return FormsOf(v1alpha1.SudoLegacy)
}

var anyGroup = []v1alpha1.Subject{{Kind: v1alpha1.SubjectGroup}}

func sameKey(existing Object, objects []Object) (Object, bool) {
	for _, object := range objects {
		if KeyOf(object) == KeyOf(existing) {
			return object, labelledAlike(existing, object)
		}
	}
	return nil, false
}
