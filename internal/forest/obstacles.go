package forest

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Obstacle is why a namespace can't be made or taken up: the reason that a condition shows, and a sentence. The zero
// value is none. A sentence says what stands in the way, never whose it is.
type Obstacle struct {
	Reason  v1alpha1.Reason
	Message string
}

// Exists says whether there is an obstacle.
func (o Obstacle) Exists() bool { return o.Reason != "" }

func obstacle(reason v1alpha1.Reason, format string, args ...any) Obstacle {
	return Obstacle{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Protected says whether the namespace called name is never in the forest, by its name or by its label.
func (s *Snapshot) Protected(name string) bool {
	if n := s.Namespace(name); n != nil {
		return s.rules.protected(n)
	}
	return s.rules.ProtectedName != nil && s.rules.ProtectedName(name)
}

// BoundTo says whether the namespace is the one that the SubNamespace of its name in parent made.
func (n *Namespace) BoundTo(parent string) bool {
	return n != nil && n.Bound() && n.Parent() == parent
}

// ParentObstacle is why no namespace can be made below parent now.
func (s *Snapshot) ParentObstacle(parent string) Obstacle {
	p, place := s.Namespace(parent), s.Place(parent)
	switch {
	case p != nil && p.Terminating:
		return obstacle(v1alpha1.ReasonParentTerminating, "parent namespace %s is being terminated", parent)
	case place.Halted():
		return obstacle(v1alpha1.ReasonParentNotManaged, "parent namespace %s is halted (%s): %s", parent, place.Halt.Reason, place.Halt.Message)
	case !place.InTree():
		return obstacle(v1alpha1.ReasonParentNotManaged, "parent namespace %s is neither a root nor a sub-namespace", parent)
	}
	return Obstacle{}
}

// NameObstacle is what keeps the SubNamespace name in parent from having a namespace of its name.
func (s *Snapshot) NameObstacle(parent, name string) Obstacle {
	n := s.Namespace(name)
	switch {
	case s.Protected(name):
		return obstacle(v1alpha1.ReasonProtectedName, "%s is a protected namespace", name)
	case n == nil:
		return Obstacle{}
	case n.Terminating:
		return obstacle(v1alpha1.ReasonNamespaceTerminating, "namespace %s is being terminated", name)
	case n.BoundTo(parent):
		return Obstacle{}
	case n.Parent() == parent:
		return obstacle(v1alpha1.ReasonConflict, "namespace %s is a child of %s, but is not bound to a SubNamespace", name, parent)
	case n.Parent() != "":
		return obstacle(v1alpha1.ReasonConflict, "namespace %s exists and is the child of another namespace", name)
	}
	return obstacle(v1alpha1.ReasonConflict, "namespace %s exists and is no sub-namespace: choose another name, or delete it", name)
}

// NamingObstacle is the naming policies that the name of a new namespace below parent breaks. parent stands in a tree.
func (s *Snapshot) NamingObstacle(parent, name string) Obstacle {
	if s.rules.CheckName == nil {
		return Obstacle{}
	}
	if err := s.rules.CheckName(s.Place(parent).Path[0], name); err != nil {
		return Obstacle{v1alpha1.ReasonNamingPolicyViolated, err.Error()}
	}
	return Obstacle{}
}

// DepthObstacle is why a new namespace below parent, which stands in a tree, would be too deep.
func (s *Snapshot) DepthObstacle(parent string) Obstacle {
	place := s.Place(parent)
	if why := s.TooDeep(place.Path[0], place.Depth()+1); why != "" {
		return Obstacle{v1alpha1.ReasonLimitExceeded, why}
	}
	return Obstacle{}
}

// NotAdoptable says why an LNamespace can't make a root of a namespace that exists and is not its own; "" if it can: a
// cluster admin marked it, and it is nothing that can't become a root.
func (s *Snapshot) NotAdoptable(n *Namespace) string {
	kind := s.KindOf(n)
	switch {
	case n.Terminating:
		return "namespace " + n.Name + " is being terminated"
	case n.Annotations[v1alpha1.AnnotationAdopt] != v1alpha1.True:
		return "namespace " + n.Name + " exists; a cluster admin can mark it: kubectl annotate namespace " + n.Name + " " + v1alpha1.AnnotationAdopt + "=true"
	case s.rules.protected(n), s.Place(n.Name).Halted():
		return "namespace " + n.Name + " is protected or halted, so it can't become the root of a tenant"
	case kind == SubNamespace, kind == Template:
		return "namespace " + n.Name + " is a sub-namespace or a template, so it can't become the root of a tenant"
	}
	return ""
}

// HeldByChildren says why the namespace called name may not be deleted: what is below it, and is not allowed to go with
// it. "" if nothing holds it.
func (s *Snapshot) HeldByChildren(name string) string {
	children := s.BoundChildren(name)
	if len(children) == 0 || s.CascadingAllowed(name) {
		return ""
	}
	return fmt.Sprintf("%s has sub-namespaces (%s): delete them first or set allowCascadingDeletion", name, Few(children))
}

// Waiting are the namespaces that wait for a parent called name, which doesn't exist.
func (s *Snapshot) Waiting(name string) []string {
	if s.Namespace(name) != nil {
		return nil
	}
	return s.Children(name)
}

// ParentCycle is the cycle of parents that the namespace called name stands in, "b -> c -> b" beginning with itself, or
// ""; TemplateCycle is that of templates.
func (s *Snapshot) ParentCycle(name string) string { return s.circle(name, (*Namespace).Parent) }

// TemplateCycle is like ParentCycle for templates.
func (s *Snapshot) TemplateCycle(name string) string { return s.circle(name, (*Namespace).Template) }

func (s *Snapshot) circle(name string, next func(*Namespace) string) string {
	path := []string{name}
	for n := s.Namespace(name); n != nil && next(n) != ""; n = s.Namespace(next(n)) {
		up := next(n)
		if up == name {
			return strings.Join(append(path, name), " -> ")
		}
		if slices.Contains(path, up) {
			return "" // a cycle that others make, further up
		}
		path = append(path, up)
	}
	return ""
}

// Named is how many things a message names.
const Named = 5

// Few joins sorted names for a message and cuts the list after Named.
func Few(names []string) string {
	return First(slices.Sorted(slices.Values(names)), Named, ", ")
}

// First joins the first of texts for a message and says how many more there are.
func First(texts []string, most int, separator string) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}
