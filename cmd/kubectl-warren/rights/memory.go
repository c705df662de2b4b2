package rights

import (
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// memory is what one report has found out, so that nothing is read twice. Its zero value is empty.
type memory struct {
	unread  gaps
	barred  remembered[bool] // by kind of review: the caller may not create it
	roles   remembered[roleTable]
	bound   remembered[bindings]
	tenants remembered[*tenant]
	caller  remembered[Identity] // under "" alone
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

// remembered holds answers by the name of what was asked about. Its lock is never held during a request: two who ask at once for the
// same may both read it.
type remembered[V any] struct {
	mu     sync.Mutex
	byName map[string]V
}

func (m *remembered[V]) find(name string) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.byName[name]
	return known, ok
}

func (m *remembered[V]) keep(name string, found V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[string]V{}
	}
	m.byName[name] = found
}

// gaps are what the report lacks because the caller may not read or ask it.
type gaps struct {
	mu    sync.Mutex
	lines []string
}

// note notes what the caller may not do, "list clusterroles", so that the report lacks something.
func (g *gaps) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if what = "can't " + what; !slices.Contains(g.lines, what) {
		g.lines = append(g.lines, what)
	}
}

// list tells what the report lacks, in alphabetical order, since some things are read at once.
func (g *gaps) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(slices.Values(g.lines))
}
