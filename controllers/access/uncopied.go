package access

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Copies answers what is wrong with copies of propagated objects. controllers/copies implements it.
type Copies interface {
	// Known reports whether this replica, since it leads, has looked at everything that concerns a namespace. Before
	// that, Troubles may lack some.
	Known(namespace string) bool
	// Troubles returns, in alphabetical order, what keeps copies in these namespaces from being what they should be.
	Troubles(namespaces iter.Seq[string]) []copies.Trouble
}

// mostUncopied is how many copies the condition names at most.
const mostUncopied = 10

// findUncopied finds the namespaces of the tenant's tree that lack a copy of a RoleBinding of its root, because another
// user's object has the name, or because the API server refuses the copy: there, listed subjects have no rights. Until
// the copies are known after a start, a report of a Conflict stays as it was.
func (f *facts) findUncopied(known Copies, view View, tenant *v1alpha1.LNamespace) {
	switch before := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionAccessReady); {
	case known == nil:
		return
	case !known.Known(tenant.Name):
		f.unsure = before != nil && before.Reason == string(v1alpha1.ReasonConflict)
		return
	}
	for _, t := range known.Troubles(slices.Values(view.Living(tenant.Name))) {
		lacks := t.Reason == v1alpha1.ReasonConflict || t.Reason == v1alpha1.ReasonRejected
		if lacks && t.From == tenant.Name && t.Slot.Kind == copies.RoleBindingKind && strings.HasPrefix(t.Slot.Name, "warren:") {
			f.uncopied = append(f.uncopied, fmt.Sprintf("RoleBinding %s in namespace %s (%s)", t.Slot.Name, t.Slot.Namespace, t.Text))
		}
	}
}

// Again reports on the LNamespaces of these roots again, because of their copies.
func (r *Reconciler) Again(roots ...string) {
	for _, root := range roots {
		r.copied.Add(requestFor(root))
	}
}
