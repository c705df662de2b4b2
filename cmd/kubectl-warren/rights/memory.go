package rights

import (
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// memory caches what one report has read and asked, so that nothing is requested twice. Its zero value is empty.
type memory struct {
	unread  gaps
	barred  remembered[bool] // by kind of review: the caller may not create it
	roles   remembered[roleTable]
	bound   remembered[bindings]
	tenants remembered[*tenant]
	caller  remembered[Identity] // its only key is ""
}

// tenant is what is known of an LNamespace.
type tenant struct {
	// exists is Unknown where the caller may not read it.
	exists Answer
	spec   v1alpha1.LNamespaceSpec
}

// roleTable holds the rules of the Roles of a namespace, or of the ClusterRoles, by name.
type roleTable struct {
	rules map[string][]rbacv1.PolicyRule
	read  bool
}

// remembered caches answers by name. Its lock is never held during a request, so two goroutines that need the same
// answer at once may both request it.
type remembered[V any] struct {
	mu     sync.Mutex
	byName map[string]V
}

func (m *remembered[V]) findRemembered(name string) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.byName[name]
	return known, ok
}

func (m *remembered[V]) rememberValue(name string, found V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[string]V{}
	}
	m.byName[name] = found
}

// gaps lists what the report lacks, because the caller may not read or ask it, or because it would be too much.
type gaps struct {
	mu    sync.Mutex
	lines []string
}

// recordGap records a right that the caller lacks, such as "list clusterroles".
func (g *gaps) recordGap(what string) { g.addLine("can't " + what) }

// addLine records what the report lacks, once.
func (g *gaps) addLine(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Contains(g.lines, line) {
		g.lines = append(g.lines, line)
	}
}

// sortedGaps returns the gaps in alphabetical order, because parallel requests record them in any order.
func (g *gaps) sortedGaps() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(slices.Values(g.lines))
}
