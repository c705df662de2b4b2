package grants

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Verdict is what an object that exists is to the one that should exist under its name.
type Verdict string

// The verdicts of Judge.
const (
	// Equal: ours, and as it should be.
	Equal Verdict = "Equal"
	// Drift: ours, and something differs that is put back.
	Drift Verdict = "Drift"
	// Conflict: someone else's. It is never written.
	Conflict Verdict = "Conflict"
)

// Judge compares an object that exists with the desired one of its kind and name. It is ours if it has our labels and either
// an LNamespace among its owners or, without any, exactly the desired rules, roleRef and subjects.
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

// Removable says whether an object may be deleted where it is no longer wanted. It asks less than Judge, since the subjects
// of an object whose owner is gone can't be told any more: our labels, and an owner or the desired rules or roleRef, the rules in
// whichever form of impersonation.
func Removable(existing, desired Object) bool {
	return labelledAlike(existing, desired) && (len(Owners(existing)) > 0 || grantsAlike(existing, desired) || roleOfAnotherForm(existing))
}

// roleOfAnotherForm says whether existing is a role as the operator writes it in some form, be it not the one that is in force.
func roleOfAnotherForm(existing Object) bool {
	role, ok := existing.(*rbacv1.ClusterRole)
	if !ok {
		return false
	}
	expected, ok := Expected(role)
	return ok && grantsAlike(role, expected)
}

// labelledAlike compares the labels that say what the object is. The others may drift.
func labelledAlike(existing, desired Object) bool {
	for _, key := range []string{v1alpha1.LabelAccess, v1alpha1.LabelTenant} {
		if existing.GetLabels()[key] != desired.GetLabels()[key] {
			return false
		}
	}
	return true
}

// grantsAlike compares what the objects grant, whoever gets it.
func grantsAlike(existing, desired Object) bool {
	if role, ok := existing.(*rbacv1.ClusterRole); ok {
		return role.AggregationRule == nil && equality.Semantic.DeepEqual(role.Rules, desired.(*rbacv1.ClusterRole).Rules)
	}
	return !MustRecreate(existing, desired)
}

// MustRecreate says whether existing has another roleRef than desired, which is immutable.
func MustRecreate(existing, desired Object) bool {
	before, bound := roleRef(existing)
	after, _ := roleRef(desired)
	return bound && *before != *after
}

// Restore returns existing with everything put back that is ours: rules, subjects, owners, and the labels and annotations of
// our domain. Others' labels and annotations stay, but for labels that would add the rules to a ClusterRole of the server's.
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
	for key, value := range desired {
		restored[key] = value
	}
	return restored
}

// Expected is the object that the operator writes under the name and labels of existing, as far as these tell: only the tenant
// knows a binding's subjects, the ClusterRole of users, and whether a Group or a ServiceAccount is among the sudoers. It is
// false for an object of another name, or that only looks like one of ours.
func Expected(existing Object) (Object, bool) {
	if user, ok := SelfUser(existing.GetName()); ok {
		self := selfPair(user, nil, formsOf(existing))
		return sameKey(existing, []Object{self.Role, self.Binding})
	}
	tenant := &v1alpha1.LNamespace{}
	tenant.Name = existing.GetLabels()[v1alpha1.LabelTenant]
	facts := Facts{Forms: formsOf(existing)}
	if ref, ok := roleRef(existing); ok {
		facts.UserClusterRole = ref.Name
	}
	if role, ok := existing.(*rbacv1.ClusterRole); ok && len(role.Rules) == len(facts.Forms.sudo(tenant.Name, true)) {
		tenant.Spec.Sudoers = anyGroup
	}
	return sameKey(existing, For(tenant, facts).all())
}

// formsOf are the forms that a role holds, so that it is known in each; the legacy one where it holds none.
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
