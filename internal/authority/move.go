package authority

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// move is a namespace on its way from one parent to another. A parent "" stands for none: the namespace is or becomes a
// root.
type move struct {
	s        *forest.Snapshot
	n        *forest.Namespace
	from, to string
	// earlier is the parent in a request that the change withdraws; else "". The operator may be carrying out that
	// request.
	earlier string
	// estranged is forest.Snapshot.IsParentTaken of n.
	estranged bool
}

// moveAskedBy returns the move that a change asks for; false where it asks for none.
func moveAskedBy(s *forest.Snapshot, c Change) (move, bool) {
	n := s.Namespace(c.Namespace)
	if n == nil {
		n = &forest.Namespace{Name: c.Namespace}
	}
	m := move{s: s, n: n, from: n.Parent(), estranged: s.IsParentTaken(n)}
	if c.New == nil {
		if c.Old != nil && *c.Old != m.from {
			m.earlier = *c.Old
		}
		return m, c.Old != nil && *c.Old != "" && !n.Bound()
	}
	m.to = *c.New
	if m.to == "" && m.from == "" {
		return m, s.KindOf(n) != forest.Root
	}
	return m, m.to != m.from
}

// problemsOfMove returns why nobody may make the move, cluster admins included.
func (m move) problemsOfMove() []string {
	var problems []string
	for _, o := range forest.MoveObstacles(m.s, m.n, m.to) {
		problems = append(problems, o.Message)
	}
	return problems
}

// unknownParent returns the current parent, where the forest lacks it although it exists; else "".
func (m move) unknownParent(exists func(string) bool) string {
	if m.from != "" && m.s.Namespace(m.from) == nil && exists(m.from) {
		return m.from
	}
	return ""
}

func (m move) questionsOfMove() []Question {
	if at, reason := m.causeOfHalt(); at != "" && len(m.othersInCycle()) == 0 {
		return []Question{{Right: UpdateNamespaces, Instead: fmt.Sprintf("ancestor %q is halted (%s); resolve that first", at, reason)}}
	}
	if common := m.commonAncestor(); m.to != "" && common != "" {
		return []Question{{Right: Administer, Namespace: common, Role: roleCommon}}
	}
	old := append(m.questionsOfLeaving(m.from), m.questionsOfLeaving(m.earlier)...)
	switch {
	case m.to == "" && m.isSplitFromTree():
		return old
	case m.to == "":
		return append(old, Question{Right: UpdateNamespaces, Role: fmt.Sprintf("namespace %q starts a new tree", m.n.Name)})
	case m.s.Namespace(m.to) == nil:
		old = append(old,
			Question{Right: CreateHierarchy, Namespace: m.to, Role: roleParent},
			Question{Right: CreateNamespaces, Role: roleParent})
	default:
		old = append(old, Question{Right: Administer, Namespace: m.to, Role: roleParent})
	}
	return append(old, m.questionsOfJoining()...)
}

// questionsOfJoining returns the question whether the user has all rights in the namespace, if the namespace joins
// another tree: the users of that tree then get rights in the namespace. It returns no question where a cluster admin
// has marked the namespace for that tree.
func (m move) questionsOfJoining() []Question {
	if root := m.s.RootOf(m.n.Name); root != "" && root == m.s.RootOf(m.to) || forest.MarkedFor(m.s, m.n, m.to) {
		return nil
	}
	return []Question{{Right: DoEverything, Namespace: m.n.Name, Parent: m.to, Role: roleJoins}}
}

// isSplitFromTree reports whether a namespace that becomes a root is one already, is in a cycle, or comes from a tree
// with a root. Otherwise a tree would begin out of nothing, which only a cluster admin may allow.
func (m move) isSplitFromTree() bool {
	isRoot := func(name string) bool { return m.s.KindOf(m.s.Namespace(name)) == forest.Root }
	return isRoot(m.n.Name) || len(m.othersInCycle()) > 0 || isRoot(m.topOfTree(m.from)) || isRoot(m.topOfTree(m.earlier))
}

// questionsOfLeaving returns the questions for the consent of the tree that parent is in, and that the namespace
// leaves.
func (m move) questionsOfLeaving(parent string) []Question {
	if parent == "" {
		return nil
	}
	if members := m.othersInCycle(); parent == m.from && len(members) > 0 {
		var questions []Question
		for _, member := range members {
			questions = append(questions, Question{Right: Administer, Namespace: member, Role: roleMember})
		}
		// A halted namespace still belongs to the tenant in whose tree it was.
		return append(questions, m.questionsOfTenant(m.s.RootOf(m.n.Name))...)
	}
	top := m.topOfTree(parent)
	if top == "" {
		return nil
	}
	if leaving := m.questionsOfTenant(top); len(leaving) > 0 && leaving[0].Right == ChangeTenant {
		return leaving
	}
	return append([]Question{{Right: Administer, Namespace: top, Role: roleRoot}}, m.questionsOfTenant(top)...)
}

// questionsOfTenant returns the question for taking the namespace out of the tenant of root. The question is for the
// right to change that tenant. If the new place is in no tenant, it is for cl instead, because the namespace would
// escape limits and billing there. It returns none where root has no tenant, or where the namespace stays in its tree.
func (m move) questionsOfTenant(root string) []Question {
	if m.s.TenantOf(root) == nil || root == m.topOfTree(m.to) {
		return nil
	}
	role := fmt.Sprintf("namespace %q leaves tenant %s", m.n.Name, root)
	if m.to == "" || m.s.TenantOf(m.topOfTree(m.to)) == nil {
		return []Question{{Right: UpdateNamespaces, Role: role}}
	}
	return []Question{{Right: ChangeTenant, Namespace: root, Role: role}}
}

// othersInCycle returns the other namespaces in the cycle that the namespace is in now, in alphabetical order.
func (m move) othersInCycle() []string {
	members := strings.Split(forest.ParentCycle(m.s, m.n.Name), " -> ")
	members = slices.DeleteFunc(members, func(name string) bool { return name == m.n.Name || name == "" })
	slices.Sort(members)
	return members
}

// causeOfHalt returns the nearest ancestor of m.n that is halted for a reason of its own, and that reason. Both are ""
// where the parent of m.n isn't halted, even if m.n is halted for a reason of its own, such as a missing parent.
func (m move) causeOfHalt() (name string, reason v1alpha1.Reason) {
	for at := m.from; ; {
		place := m.s.Place(at)
		switch {
		case !place.Halted():
			return "", ""
		case place.Halt.Reason != v1alpha1.ReasonAncestorHalted:
			return at, place.Halt.Reason
		}
		at = m.s.Namespace(at).Parent()
	}
}

// commonAncestor returns the nearest common ancestor of the old and the new parent, themselves included. It returns ""
// if they share no tree, if the namespace is in a cycle, or if another namespace has taken the old parent's name.
func (m move) commonAncestor() string {
	if len(m.othersInCycle()) > 0 {
		return ""
	}
	target := m.namesInChain(m.to)
	for _, name := range m.chainForAuthority(m.from) {
		if slices.Contains(target, name) {
			return name
		}
	}
	return ""
}

// topOfTree returns the namespace that decides for the tree of the namespace called name: the last one that the labels
// lead to. If name is the parent of m.n, and is missing or taken by another namespace, it returns the root that the
// ancestry of m.n names. It returns "" if that root is missing, too, or is m.n itself.
func (m move) topOfTree(name string) string {
	chain := m.chainForAuthority(name)
	if len(chain) > 0 {
		return chain[len(chain)-1]
	}
	if name == "" || name != m.n.Parent() {
		return ""
	}
	first := m.n.FormerRoot()
	if first == m.n.Name || m.s.Namespace(first) == nil {
		return ""
	}
	return first
}

// chainForAuthority returns namesInChain(name). It returns nil for the old parent of m.n if another namespace has taken
// that parent's name: this namespace has no authority over m.n.
func (m move) chainForAuthority(name string) []string {
	if m.estranged && name == m.from {
		return nil
	}
	return m.namesInChain(name)
}

// namesInChain returns name and its ancestors up to the last one that exists, each once even in a cycle.
func (m move) namesInChain(name string) []string {
	var chain []string
	for n := m.s.Namespace(name); n != nil && !slices.Contains(chain, n.Name); n = m.s.Namespace(n.Parent()) {
		chain = append(chain, n.Name)
	}
	return chain
}

func (m move) warningsOfMove() []string {
	if m.to == "" {
		return nil
	}
	return ParentWarnings(m.s, m.to)
}

// ParentWarnings returns why a namespace below parent will be halted for now; nil where it won't.
func ParentWarnings(s *forest.Snapshot, parent string) []string {
	n, place := s.Namespace(parent), s.Place(parent)
	switch {
	case n == nil:
		return []string{"parent namespace " + parent + " does not exist: a namespace below it is halted until the parent exists; correct " +
			"the name, or create the parent"}
	case place.Halted():
		return []string{"parent namespace " + parent + " is halted (" + string(place.Halt.Reason) + ")"}
	case !place.InTree():
		return []string{"parent namespace " + parent + " is not a root or a sub-namespace yet"}
	}
	return nil
}

func uniqueQuestions(questions []Question) []Question {
	var result []Question
	for _, q := range questions {
		same := func(other Question) bool {
			return other.Right == q.Right && other.Namespace == q.Namespace && other.Instead == q.Instead
		}
		if !slices.ContainsFunc(result, same) {
			result = append(result, q)
		}
	}
	return result
}

func equalNames(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
