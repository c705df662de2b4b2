package forest

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Limits returns the limits of the tree of root: each field, and each amount of hard, from its LNamespace, or else from
// the configuration. A nil field is no limit.
func (s *Snapshot) Limits(root string) v1alpha1.Limits {
	limits := s.rules.Limits
	if tenant := s.TenantOf(root); tenant != nil {
		limits.SubNamespaces = cmp.Or(tenant.Limits.SubNamespaces, limits.SubNamespaces)
		limits.Depth = cmp.Or(tenant.Limits.Depth, limits.Depth)
		limits.Copies = cmp.Or(tenant.Limits.Copies, limits.Copies)
		limits.Bytes = cmp.Or(tenant.Limits.Bytes, limits.Bytes)
		limits.Hard = mergeBudgets(limits.Hard, tenant.Limits.Hard)
	}
	return limits
}

// mergeBudgets returns the amounts of both, those of own before those of common.
func mergeBudgets(common, own v1alpha1.Budget) v1alpha1.Budget {
	if len(common) == 0 {
		return own
	}
	merged := maps.Clone(common)
	maps.Copy(merged, own)
	return merged
}

func treeName(s *Snapshot, root string) string {
	if s.TenantOf(root) != nil {
		return "tenant " + root
	}
	return "tree " + root
}

// TooDeep returns a sentence that explains why the tree of root may not reach the given depth, or "".
func TooDeep(s *Snapshot, root string, depth int) string {
	most, raise := MaxDepth, ""
	if limit := s.Limits(root).Depth; limit != nil && int(*limit) < most {
		most, raise = int(*limit), ", or ask a cluster admin to raise the limit"
	}
	if depth <= most {
		return ""
	}
	return fmt.Sprintf("%s: depth %d exceeds the limit of %d: choose a place nearer to the root%s", treeName(s, root), depth, most, raise)
}

// NoRoom returns a sentence that explains why the tree of root has no room for as many more namespaces as adding says,
// or "". reserved is the number of namespaces that are being created and that the snapshot doesn't hold yet: they count
// as in use.
func NoRoom(s *Snapshot, root string, reserved, adding int) string {
	return noRoom(s, root, reserved, adding, 1)
}

// noRoom is NoRoom for a move that adds joining namespaces to the tree together. If joining is greater than 1, the text
// states it. The text also states how many namespaces would have to be deleted first.
func noRoom(s *Snapshot, root string, reserved, adding, joining int) string {
	limit := s.Limits(root).SubNamespaces
	if limit == nil {
		return ""
	}
	used, terminating := s.Descendants(root)
	used += reserved
	if used+adding <= int(*limit) {
		return ""
	}
	going := ""
	if terminating > 0 {
		going = fmt.Sprintf(", %d terminating", terminating)
	}
	advice := "ask a cluster admin to raise the limit"
	if excess := used + joining - int(*limit); excess <= used {
		advice = "delete " + OneOr(excess) + ", or " + advice
	}
	if joining > 1 {
		going += fmt.Sprintf("), and the move adds %d", joining)
	} else {
		going += ")"
	}
	return fmt.Sprintf("%s allows %d sub-namespaces (%d in use%s: %s", treeName(s, root), *limit, used, going, advice)
}

// OneOr returns the number of objects to delete, for a message: "one", or the number if it is greater.
func OneOr(n int) string {
	if n <= 1 {
		return "one"
	}
	return strconv.Itoa(n)
}

// CountAwaited counts the SubNamespaces in the tree of root that have no namespace, whatever the reason: each may still
// get one. It leaves out the SubNamespace name in parent, and those that are being deleted.
func CountAwaited(s *Snapshot, root, parent, name string) int {
	count := 0
	for _, at := range append(s.Subtree(root), root) {
		for _, sub := range s.Subs(at) {
			n, itself := s.Namespace(sub.Name), at == parent && sub.Name == name
			if there := n != nil && n.Parent() == at; !there && !itself && !sub.Deleting {
				count++
			}
		}
	}
	return count
}

// countHeight returns the distance from name to its deepest descendant, halted or not; 0 without children. A namespace
// in a cycle counts once.
func countHeight(s *Snapshot, name string) int {
	seen, height := map[string]bool{name: true}, -1
	for level := []string{name}; len(level) > 0; height++ {
		var below []string
		for _, at := range level {
			for _, child := range s.Children(at) {
				if !seen[child] {
					seen[child] = true
					below = append(below, child)
				}
			}
		}
		level = below
	}
	return height
}

// Crowded returns why the tree that name moves into has no place for name and its descendants: one sentence for each
// limit that the move would break. s is the forest after the move, and before is the forest before it. The new parent
// must not be below name.
func Crowded(s, before *Snapshot, name string) []string {
	parent := before.Place(s.Namespace(name).Parent())
	if !parent.InTree() {
		return nil
	}
	root := parent.Path[0]
	var problems []string
	if why := TooDeep(s, root, parent.Depth()+1+countHeight(s, name)); why != "" {
		problems = append(problems, why)
	}
	if before.RootOf(name) != root { // otherwise it counts there already, also while it is halted
		count := len(s.Subtree(name))
		if why := noRoom(withoutPlace(s, name), root, 0, 1+count, 1+count); why != "" {
			problems = append(problems, why)
		}
	}
	return problems
}

// withoutPlace returns the forest in which name has no parent, so that name and its descendants count in no tree.
func withoutPlace(s *Snapshot, name string) *Snapshot {
	n := s.Namespace(name).clone()
	delete(n.Labels, v1alpha1.LabelParent)
	return s.WithNamespace(n)
}
