package preview

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// planTenant plans the access objects of one tenant, and applies the plan to the objects in memory.
func (r *rights) planTenant(tenant *v1alpha1.LNamespace, mode grants.Mode) {
	ending := r.ending[tenant.Name]
	if !tenant.DeletionTimestamp.IsZero() && !ending {
		return
	}
	own := r.f.Owns(tenant.Name, string(tenant.UID))
	input := r.input(tenant, mode)
	objects := grants.For(tenant, input)
	actual := r.actual(tenant.Name, objects)
	if mode.Unavailable && !ending {
		objects = grants.For(grants.Holding(tenant, actual), input)
	}
	withheld := grants.Withheld{Everything: !own || ending, Users: r.roleless}
	if own && !ending && mode.Forms.Legacy {
		if inTheWay := r.inTheWay(tenant, objects.Sudo, actual); inTheWay != "" {
			withheld.Sudo = true
			note := fmt.Sprintf("the sudo of tenant %s: %s names group %s since before the first sudoer, and sudo waits until a cluster admin has removed that",
				tenant.Name, inTheWay, v1alpha1.SudoersGroup(tenant.Name))
			if !slices.Contains(r.notes, note) {
				r.notes = append(r.notes, note)
			}
		}
	}
	plan := grants.PlanFor(tenant.Name, objects, withheld, actual)
	for _, key := range plan.Conflicts {
		r.note(Conflict, key, tenant.Name, "an object of that name exists which is not the operator's")
	}
	for _, step := range plan.Steps {
		r.carryOut(tenant.Name, step)
	}
}

// input returns the facts on which the access objects of a tenant depend.
func (r *rights) input(tenant *v1alpha1.LNamespace, mode grants.Mode) grants.Facts {
	belongs := func(namespace string) bool { return r.f.BelongsTo(namespace, tenant.Name) }
	accounts := grants.RememberAccounts(tenant, tenant.Status.ServiceAccounts, belongs, r.uid)
	return grants.Facts{
		Mode: mode.Told, Forms: mode.Forms, UserClusterRole: r.c.Access.UserClusterRole,
		Refused: grants.Refusals(tenant, grants.Surroundings{
			OperatorNamespace: r.operatorNamespace, InTree: belongs,
			Doubt: func(account v1alpha1.Subject) string {
				return grants.DoubtAccount(account, accounts, r.uid(account.Namespace))
			},
		}),
	}
}

func (r *rights) uid(namespace string) types.UID {
	if n := r.f.Namespace(namespace); n != nil {
		return types.UID(n.UID)
	}
	return ""
}

// actual returns the existing objects with the names of objects, and the self pairs that the tenant owns.
func (r *rights) actual(tenant string, objects grants.Objects) grants.Actual {
	actual := grants.Actual{}
	for _, key := range slices.Concat(objects.Keys(), r.pairs[tenant]) {
		if object := r.there[key]; object != nil {
			actual[key] = object
		}
	}
	return actual
}

// inTheWay returns the name of a binding that keeps the tenant's sudoers from their first grant; "" if there is none.
func (r *rights) inTheWay(tenant *v1alpha1.LNamespace, pair grants.Pair, actual grants.Actual) string {
	if len(grants.Subjects(pair.Binding)) == 0 || grants.WasGranted(tenant, pair, actual) {
		return ""
	}
	inTree := func(namespace string) bool { return r.f.InTree(namespace, tenant.Name) }
	for _, s := range r.elsewhere[v1alpha1.SudoersGroup(tenant.Name)] {
		if grants.StopsGrant(tenant.Name, s.key.Namespace, s.leftover, inTree) {
			return s.key.String()
		}
	}
	return ""
}

// carryOut adds the writes of a step to the plan, and applies them to the objects in memory.
func (r *rights) carryOut(tenant string, step grants.Step) {
	key := grants.KeyOf(step.Desired)
	if n := r.f.Namespace(key.Namespace); key.Namespace != "" && (n == nil || n.Terminating) && step.Deed == grants.DeedEnsure {
		return // nothing can be created in a namespace that is being deleted
	}
	for unfinished := true; unfinished; {
		existing := r.there[key]
		next := grants.NextWrite(tenant, step, existing)
		unfinished = next.Unfinished && next.Verb != grants.WriteNothing
		reason := reasonOf(step, next, existing, tenant)
		switch next.Verb {
		case grants.WriteCreate:
			r.note(Create, key, tenant, reason)
			r.there.Put(key, next.Object)
		case grants.WriteUpdate:
			r.note(Update, key, tenant, reason)
			r.there.Put(key, next.Object)
		case grants.WriteDelete:
			r.note(Delete, key, tenant, reason)
			r.there.Put(key, nil)
		case grants.WriteConflict:
			r.note(Conflict, key, tenant, "an object of that name exists which is not the operator's")
		}
	}
}

// reasonOf returns the reason of a step's write.
func reasonOf(step grants.Step, next grants.Write, existing grants.Object, tenant string) string {
	switch {
	case next.Unfinished:
		return "its roleRef is another one now, which can't be changed in place"
	case step.Deed == grants.DeedRelease:
		return "its user is no sudoer of tenant " + tenant + " any more"
	case step.Deed == grants.DeedRemove:
		return "LNamespace " + tenant + " doesn't ask for it any more"
	case next.Verb == grants.WriteCreate:
		return "LNamespace " + tenant + " asks for it"
	case existing == nil:
		return ""
	}
	if lost := grants.Minus(existing, next.Object); len(lost) > 0 {
		return fmt.Sprintf("it loses %s, whom LNamespace %s doesn't list", firstOf(lost), tenant)
	}
	if come := grants.Minus(next.Object, existing); len(come) > 0 {
		return fmt.Sprintf("it gets %s, whom LNamespace %s lists", firstOf(come), tenant)
	}
	return "it is not what LNamespace " + tenant + " and the configuration say"
}

// firstOf names the first of subjects, and says how many more there are.
func firstOf(subjects []string) string {
	if len(subjects) == 1 {
		return subjects[0]
	}
	return fmt.Sprintf("%s and %d more", subjects[0], len(subjects)-1)
}

// changedBindings returns the RoleBindings in root namespaces that the plan writes, as they will be; nil for one that it deletes.
func (r *rights) changedBindings() map[propagate.Slot]*unstructured.Unstructured {
	changed := map[propagate.Slot]*unstructured.Unstructured{}
	for _, all := range []grants.Actual{r.before, r.there} {
		for key := range all {
			if key.Namespace == "" || r.before[key] == r.there[key] {
				continue
			}
			slot := propagate.Slot{Kind: schema.GroupKind{Group: rbacv1.GroupName, Kind: key.Kind}, Namespace: key.Namespace, Name: key.Name}
			changed[slot] = asRead(r.there[key])
		}
	}
	return changed
}

// asRead returns a RoleBinding as the API server would return it; nil for none.
func asRead(object grants.Object) *unstructured.Unstructured {
	binding, ok := object.(*rbacv1.RoleBinding)
	if !ok {
		return nil
	}
	binding = binding.DeepCopy()
	binding.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"))
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(binding) // a RoleBinding has nothing that can't be converted
	return &unstructured.Unstructured{Object: content}
}
