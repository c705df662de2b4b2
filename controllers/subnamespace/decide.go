package subnamespace

import (
	"fmt"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// verdict is what is true of a SubNamespace, and whether its namespace is to be made.
type verdict struct {
	reason  v1alpha1.Reason
	message string
	stalled bool // a human must act
	create  bool
	tooDeep bool // may change with the limits of the tree
}

func (v verdict) ready() bool { return v.reason == v1alpha1.ReasonNamespaceActive }

// orActive is the verdict on a namespace that was made a moment ago and that the index may not hold yet.
func (v verdict) orActive() verdict {
	if v.create {
		return verdict{reason: v1alpha1.ReasonNamespaceActive, message: "the namespace exists and belongs to this SubNamespace"}
	}
	return v
}

// question looks at one thing; ok means that it has nothing to say.
type question func(s *forest.Snapshot, settings Settings, parent, name string) (v verdict, ok bool)

// questions are asked in this order; the first that has something to say decides.
var questions = []question{parentStands, nameIsFree, nameIsAllowed, depthFits}

func (r *Reconciler) decide(s *forest.Snapshot, sub *v1alpha1.SubNamespace) verdict {
	settings := r.Settings()
	for _, ask := range questions {
		if v, ok := ask(s, settings, sub.Namespace, sub.Name); !ok {
			return v
		}
	}
	return verdict{reason: v1alpha1.ReasonCreating, message: "the namespace is being made", create: true}
}

func parentStands(s *forest.Snapshot, _ Settings, parent, _ string) (verdict, bool) {
	p, place := s.Namespace(parent), s.Place(parent)
	switch {
	case p != nil && p.Terminating:
		return verdict{reason: v1alpha1.ReasonParentTerminating, message: "parent namespace " + parent + " is being terminated"}, false
	case place.Halted():
		return stalled(v1alpha1.ReasonParentNotManaged, "parent namespace %s is halted (%s): %s", parent, place.Halt.Reason, place.Halt.Message), false
	case !place.InTree():
		return stalled(v1alpha1.ReasonParentNotManaged, "parent namespace %s is neither a root nor a sub-namespace", parent), false
	}
	return verdict{}, true
}

// nameIsFree looks at what bears the name. A message says what stands in the way, never whose it is.
func nameIsFree(s *forest.Snapshot, settings Settings, parent, name string) (verdict, bool) {
	if settings.Protected(name) {
		return stalled(v1alpha1.ReasonProtectedName, "%s is a protected namespace", name), false
	}
	n := s.Namespace(name)
	switch {
	case n == nil:
		return verdict{}, true
	case n.Labels[v1alpha1.LabelProtected] == v1alpha1.True:
		return stalled(v1alpha1.ReasonProtectedName, "%s is a protected namespace", name), false
	case n.Terminating:
		return verdict{reason: v1alpha1.ReasonNamespaceTerminating, message: "namespace " + name + " is being terminated"}, false
	case owns(n, parent):
		return verdict{reason: v1alpha1.ReasonNamespaceActive, message: "the namespace exists and belongs to this SubNamespace"}, false
	case n.Parent() == parent:
		return stalled(v1alpha1.ReasonConflict, "namespace %s is a child of %s, but is not bound to a SubNamespace", name, parent), false
	case n.Parent() != "":
		return stalled(v1alpha1.ReasonConflict, "namespace %s exists and is the child of another namespace", name), false
	}
	return stalled(v1alpha1.ReasonConflict, "namespace %s exists and is no sub-namespace: choose another name, or delete it", name), false
}

func nameIsAllowed(s *forest.Snapshot, settings Settings, parent, name string) (verdict, bool) {
	if err := settings.CheckName(s.Place(parent).Path[0], name); err != nil {
		return verdict{reason: v1alpha1.ReasonNamingPolicyViolated, message: err.Error(), stalled: true}, false
	}
	return verdict{}, true
}

func depthFits(s *forest.Snapshot, settings Settings, parent, _ string) (verdict, bool) {
	place := s.Place(parent)
	limits := limitsOf(s, settings, place.Path[0])
	most := forest.MaxDepth
	if limits.Depth != nil {
		most = min(most, int(*limits.Depth))
	}
	if depth := place.Depth() + 1; depth > most {
		v := stalled(v1alpha1.ReasonLimitExceeded, "%s: depth %d exceeds %d", treeName(s, place.Path[0]), depth, most)
		v.tooDeep = true
		return v, false
	}
	return verdict{}, true
}

func stalled(reason v1alpha1.Reason, format string, args ...any) verdict {
	return verdict{reason: reason, message: fmt.Sprintf(format, args...), stalled: true}
}

// limitsOf are the limits of the tree of root: those of its LNamespace, field by field over the configuration's.
func limitsOf(s *forest.Snapshot, settings Settings, root string) v1alpha1.Limits {
	limits := settings.Limits
	if tenant := s.Tenant(root); tenant != nil && s.Owns(root, tenant.UID) {
		if tenant.MaxSubNamespaces != nil {
			limits.SubNamespaces = tenant.MaxSubNamespaces
		}
		if tenant.MaxDepth != nil {
			limits.Depth = tenant.MaxDepth
		}
	}
	return limits
}

func treeName(s *forest.Snapshot, root string) string {
	if tenant := s.Tenant(root); tenant != nil && s.Owns(root, tenant.UID) {
		return "tenant " + root
	}
	return "tree " + root
}
