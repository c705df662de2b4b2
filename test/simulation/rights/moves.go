package rights

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

// moving is one run of people who ask for other places for namespaces, and of an operator that places and labels them.
type moving struct {
	random *rand.Rand
	s      *forest.Snapshot
	past   []*forest.Snapshot
	rows   func(string)
}

// places are the namespaces, each with the parent where it begins. acme and zeta are roots of tenants, org is the root of a tree without a
// tenant, and solo is in no tree.
var places = map[string]string{
	"acme": "", "a": "acme", "a1": "a", "a2": "a1", "zeta": "", "z": "zeta", "z1": "z", "org": "", "o": "org", "solo": "-",
}

// people are mapped to the tenant that they manage, or the tree or namespace in which they hold every right; * is for a cluster admin.
var people = map[string]string{"ann": "acme", "zoe": "zeta", "olga": "org", "sam": "solo", "root": "*"}

var movable = []string{"a", "a1", "a2", "z", "z1", "o", "solo"}

func runMoves(seed uint64, rows func(string)) (wrong *Failure) {
	m := &moving{random: rand.New(rand.NewPCG(seed, 2)), s: forest.New(forest.Rules{}), rows: rows}
	defer func() {
		if r := recover(); r != nil {
			failed, is := r.(*Failure)
			if !is {
				panic(fmt.Sprintf("seed %d: %v", seed, r))
			}
			wrong = failed
		}
	}()
	m.plant()
	for range 10 + m.random.IntN(60) {
		m.happen()
	}
	m.settle()
	return nil
}

// plant makes the namespaces, with all keys that they should carry.
func (m *moving) plant() {
	for _, tenant := range []string{"acme", "zeta"} {
		m.s = m.s.WithTenant(&forest.Tenant{Name: tenant, UID: "uid-" + tenant})
	}
	for _, name := range sortedPlaces() {
		n := &forest.Namespace{Name: name, UID: "uid-" + name, Labels: map[string]string{}, Annotations: map[string]string{}}
		switch parent := places[name]; parent {
		case "":
			n.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
			if m.s.Tenant(name) != nil {
				n.Annotations[v1alpha1.AnnotationLNamespaceUID] = "uid-" + name
			}
		case "-":
		default:
			n.Labels[v1alpha1.LabelParent] = parent
		}
		m.s = m.s.WithNamespace(n)
	}
	m.workOff()
	m.past = []*forest.Snapshot{m.s}
}

func sortedPlaces() []string {
	var names []string
	for name := range places {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (m *moving) record(format string, args ...any) {
	if m.rows != nil {
		m.rows(fmt.Sprintf(format, args...))
	}
}

func (m *moving) happen() {
	if m.random.IntN(2) == 0 {
		m.ask()
	} else {
		names := sortedPlaces()
		m.operate(names[m.random.IntN(len(names))])
	}
	m.past = append(m.past, m.s)
	m.checkPlaces()
}

// ask lets one of the people ask for another parent of a namespace. The webhook judges by a forest that may be old.
func (m *moving) ask() {
	who := []string{"ann", "zoe", "olga", "sam", "root"}[m.random.IntN(5)]
	name, parent := movable[m.random.IntN(len(movable))], append(sortedPlaces(), "")[m.random.IntN(len(places)+1)]
	seen := m.past[max(0, len(m.past)-1-m.random.IntN(3)*m.random.IntN(2))]
	change := authority.Change{Namespace: name, New: &parent}
	if h := m.s.Hierarchy(name); h != nil {
		change.Old = h.Parent
		if *h.Parent == parent {
			return // this request exists already, whoever made it
		}
	}
	v := authority.Judge(seen, change, func(string) bool { return false })
	isRefused := slices.ContainsFunc(v.Questions, func(q authority.Question) bool { return !mayDo(seen, who, q) })
	if isRefused || len(v.Problems) > 0 || v.Unknown != "" {
		return
	}
	m.record("%s asks that %s stand below %q", who, name, parent)
	m.checkConsent(seen, who, name, parent)
	m.s = m.s.WithHierarchy(&forest.Hierarchy{Namespace: name, UID: "uid-h-" + name, Parent: &parent})
}

// mayDo answers a question as the API server's authorizer would: people hold every right in their tree, and may change their tenant.
func mayDo(s *forest.Snapshot, who string, q authority.Question) bool {
	switch {
	case people[who] == "*":
		return true
	case q.Namespace == "" || q.Right == authority.CreateHierarchy:
		return false
	case q.Right == authority.ChangeTenant:
		return people[who] == q.Namespace && s.Tenant(q.Namespace) != nil
	}
	return people[who] == q.Namespace || people[who] == topOf(s, q.Namespace)
}

// topOf follows the labels parent from a namespace to the last one, and returns "" in a cycle. It is a second opinion on internal/forest.
func topOf(s *forest.Snapshot, name string) string {
	for range len(places) + 1 {
		n := s.Namespace(name)
		if n == nil || n.Labels[v1alpha1.LabelParent] == "" {
			return name
		}
		name = n.Labels[v1alpha1.LabelParent]
	}
	return ""
}

// checkConsent: FLT-M18. Nobody takes a namespace out of a tenant that they may not change, nor brings one into a tree where they have no
// authority.
func (m *moving) checkConsent(s *forest.Snapshot, who, name, parent string) {
	from, to := topOf(s, name), topOf(s, parent)
	if people[who] == "*" || from == to {
		return
	}
	if s.Tenant(from) != nil && people[who] != from {
		fail("FLT-M18", "%s takes %s out of tenant %s", who, name, from)
	}
	if parent != "" && people[who] != to && people[who] != parent {
		fail("FLT-M18", "%s brings %s into the tree of %s", who, name, to)
	}
}

// operate lets the operator write what one namespace should carry. It reports whether there was anything to write.
func (m *moving) operate(name string) bool {
	change := forest.DesiredChange(m.s, name)
	if change.Empty() {
		return false
	}
	m.s = m.s.WithNamespace(m.s.Namespace(name).With(change))
	m.record("the operator writes %s: it stands below %q", name, m.s.Namespace(name).Parent())
	return true
}

// checkPlaces: FLT-M19. Sources reach a namespace only if its labels lead to a root.
func (m *moving) checkPlaces() {
	for name := range places {
		above, managed := m.s.Sources(name)
		top := m.s.Namespace(topOf(m.s, name))
		isSound := top != nil && top.Labels[v1alpha1.LabelType] == v1alpha1.TypeRoot
		if managed && !isSound && len(above.Names) > 0 {
			fail("FLT-M19", "%s gets what stands in %v, and no root is above it", name, above.Names)
		}
	}
}

// workOff lets the operator write until nothing is left to do.
func (m *moving) workOff() {
	for range 20 {
		wrote := false
		for _, name := range sortedPlaces() {
			wrote = m.operate(name) || wrote
		}
		if !wrote {
			return
		}
	}
	fail("FLT-M20", "the operator writes the same namespaces on each pass")
}

// settle: FLT-M20. The work ends, and the tree labels of each namespace are those of its way to the root.
func (m *moving) settle() {
	m.workOff()
	for _, name := range sortedPlaces() {
		n := m.s.Namespace(name)
		if !m.s.Place(name).InTree() {
			continue
		}
		for key := range n.Labels {
			if above, is := strings.CutSuffix(key, v1alpha1.TreeLabelSuffix); is && !m.isAbove(above, name) {
				fail("FLT-M20", "%s has the tree label of %s, which is not above it", name, above)
			}
		}
		if _, has := n.Labels[v1alpha1.TreeLabel(topOf(m.s, name))]; !has {
			fail("FLT-M20", "%s lacks the tree label of its root", name)
		}
	}
}

func (m *moving) isAbove(above, name string) bool {
	for range len(places) + 1 {
		if name == above {
			return true
		}
		n := m.s.Namespace(name)
		if n == nil || n.Parent() == "" {
			return false
		}
		name = n.Parent()
	}
	return false
}
