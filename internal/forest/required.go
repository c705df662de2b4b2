package forest

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// UnmetChildren says what keeps the required children of the namespace called name from being there, one obstacle for each that
// is not, in the order of their names.
func (s *Snapshot) UnmetChildren(name string) []Obstacle {
	h, n := s.Hierarchy(name), s.Namespace(name)
	if h == nil || n == nil || n.Terminating {
		return nil
	}
	var obstacles []Obstacle
	for _, child := range slices.Sorted(slices.Values(h.Required)) {
		if o := s.childObstacle(name, child, 0); o.Exists() {
			obstacles = append(obstacles, o)
		}
	}
	return obstacles
}

// childObstacle is what keeps one required child from being there, where so many others of the same parent are under way.
func (s *Snapshot) childObstacle(parent, name string, underWay int) Obstacle {
	sub, child, place := s.Sub(parent, name), s.Namespace(name), s.Place(parent)
	why := func(reason v1alpha1.Reason, message string) Obstacle {
		return Obstacle{Reason: reason, Message: message}
	}
	if !place.InTree() {
		return why(v1alpha1.ReasonNotInForest, fmt.Sprintf("required child %s can't be created: %s is in no tree, or halted", name, parent))
	}
	if o := s.NameObstacle(parent, name); o.Reason == v1alpha1.ReasonNamespaceTerminating {
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
		if sub == nil && s.awaitedByOthers(place, name) {
			return why(v1alpha1.ReasonChildConflict, fmt.Sprintf("other namespaces wait for a parent named %q: choose another name for the required child, or have a cluster admin create the SubNamespace", name))
		}
		if o := s.NamingObstacle(parent, name); o.Exists() {
			return why(v1alpha1.ReasonChildConflict, o.Message)
		}
		if o := s.DepthObstacle(parent); o.Exists() {
			return o
		}
		if full := s.NoRoom(place.Path[0], underWay, 1); full != "" {
			return why(v1alpha1.ReasonLimitExceeded, name+": "+full)
		}
	}
	return why(v1alpha1.ReasonChildPending, "SubNamespace "+parent+"/"+name+" is being created")
}

// awaitedByOthers says whether namespaces wait for a parent of that name that did not stand below place: whoever requires such a
// child would get them, and nobody asks whether they may.
func (s *Snapshot) awaitedByOthers(place Place, name string) bool {
	path := strings.Join(append(slices.Clone(place.Path), name), "/")
	return slices.ContainsFunc(s.Waiting(name), func(orphan string) bool {
		return s.Namespace(orphan).Annotations[v1alpha1.AnnotationAncestry] != path+"/"+orphan
	})
}

// MissingChildren are the required children of parent that have no SubNamespace and that nothing stands in the way of.
func (s *Snapshot) MissingChildren(parent string) []string {
	h, n := s.Hierarchy(parent), s.Namespace(parent)
	if h == nil || n == nil || n.Terminating {
		return nil
	}
	var missing []string
	underWay := 0
	for _, name := range h.Required {
		old := s.Namespace(name) // one that is going goes first
		if s.Sub(parent, name) != nil {
			if old == nil && !s.Sub(parent, name).NameLost {
				underWay++
			}
			continue
		}
		// A name that strangers have is asked for once, so that the SubNamespace remembers that it was lost.
		lost := s.NameObstacle(parent, name).Reason == v1alpha1.ReasonNameTaken && s.Place(parent).InTree()
		if !lost && (old != nil && old.Terminating || s.childObstacle(parent, name, underWay).Reason != v1alpha1.ReasonChildPending) {
			continue
		}
		if !lost {
			underWay++
		}
		missing = append(missing, name)
	}
	return missing
}
