package forest

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// UnmetChildren returns one obstacle for each required child that the namespace called name doesn't have as a bound
// child yet, in the order of their names.
func UnmetChildren(s *Snapshot, name string) []Obstacle {
	h, n := s.Hierarchy(name), s.Namespace(name)
	if h == nil || n == nil || n.Terminating {
		return nil
	}
	var obstacles []Obstacle
	for _, child := range slices.Sorted(slices.Values(h.Required)) {
		if o := childObstacle(s, name, child, 0); o.Exists() {
			obstacles = append(obstacles, o)
		}
	}
	return obstacles
}

// childObstacle returns what keeps one required child from existing. underWay is the number of other children of the
// same parent that are being created.
func childObstacle(s *Snapshot, parent, name string, underWay int) Obstacle {
	sub, child, place := s.Sub(parent, name), s.Namespace(name), s.Place(parent)
	why := func(reason v1alpha1.Reason, message string) Obstacle {
		return Obstacle{Reason: reason, Message: message}
	}
	if !place.InTree() {
		return why(v1alpha1.ReasonNotInForest, fmt.Sprintf("required child %s can't be created: %s is in no tree, or halted", name, parent))
	}
	if o := NameObstacle(s, parent, name); o.Reason == v1alpha1.ReasonNamespaceTerminating {
		return why(v1alpha1.ReasonChildPending, o.Message)
	} else if o.Exists() {
		return why(v1alpha1.ReasonChildConflict, o.Message)
	}
	if child != nil && sub != nil && !sub.Deleting {
		return Obstacle{}
	}
	if child == nil {
		if sub != nil && sub.NameLost {
			return why(v1alpha1.ReasonChildConflict, NameLost(name).Message)
		}
		if sub == nil && awaitedByOthers(s, place, name) {
			return why(v1alpha1.ReasonChildConflict, fmt.Sprintf("other namespaces wait for a parent named %q: choose another name for the "+
				"required child, or have a cluster admin create the SubNamespace", name))
		}
		if o := NamingObstacle(s, parent, name); o.Exists() {
			return why(v1alpha1.ReasonChildConflict, o.Message)
		}
		if o := DepthObstacle(s, parent); o.Exists() {
			return o
		}
		if full := NoRoom(s, place.Path[0], underWay, 1); full != "" {
			return why(v1alpha1.ReasonLimitExceeded, name+": "+full)
		}
	}
	return why(v1alpha1.ReasonChildPending, "SubNamespace "+parent+"/"+name+" is being created")
}

// awaitedByOthers reports whether namespaces that were not children of the required child before wait for a parent of
// its name. place is that of the namespace that requires the child. A new child of that name would get them as
// children, and nobody would have checked whether its maker may have them.
func awaitedByOthers(s *Snapshot, place Place, name string) bool {
	path := strings.Join(append(slices.Clone(place.Path), name), "/")
	return slices.ContainsFunc(WaitingFor(s, name), func(orphan string) bool {
		return s.Namespace(orphan).Annotations[v1alpha1.AnnotationAncestry] != path+"/"+orphan
	})
}

// MissingChildren returns the required children of parent for which the operator is to create a SubNamespace. These are
// the children without a SubNamespace that either have no obstacle, or have a name that is taken outside of the tree.
func MissingChildren(s *Snapshot, parent string) []string {
	h, n := s.Hierarchy(parent), s.Namespace(parent)
	if h == nil || n == nil || n.Terminating {
		return nil
	}
	var missing []string
	underWay := 0
	for _, name := range h.Required {
		old := s.Namespace(name) // a namespace that is terminating must be gone before it is made again
		if s.Sub(parent, name) != nil {
			if old == nil && !s.Sub(parent, name).NameLost {
				underWay++
			}
			continue
		}
		// A SubNamespace is created once even for a name that is taken outside of the tree, so that its status records
		// that the name was lost.
		lost := NameObstacle(s, parent, name).Reason == v1alpha1.ReasonNameTaken && s.Place(parent).InTree()
		if !lost && (old != nil && old.Terminating || childObstacle(s, parent, name, underWay).Reason != v1alpha1.ReasonChildPending) {
			continue
		}
		if !lost {
			underWay++
		}
		missing = append(missing, name)
	}
	return missing
}
