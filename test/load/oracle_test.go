package load_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// grace is how long the authorizer may still answer by a state that is over (FLT-I2: a right ends in 1 s). The authorizer has caches of
// its own, and the observer's watches may be ahead of them.
const grace = 2 * time.Second

// list is one of the lists of an LNamespace.
type list int

const (
	users list = iota
	managers
	sudoers
	everybody // no list: the right of whoever acts as the group of a tenant's sudoers
)

func (l list) String() string { return []string{"users", "managers", "sudoers", "everybody"}[l] }

// version is whom one generation of an LNamespace lists: users, managers, sudoers.
type version [3][]string

// tenant is an LNamespace, and all versions of its lists that were ever sent.
type tenant struct {
	name string
	// people are permanent users of the tenant. The first of them is on all lists.
	people [2]string
	// fixed are the root, and sub-namespaces that neither move nor end.
	fixed []*place

	editing, sourcing sync.Mutex
	sources           map[string]string // guarded by sourcing: the Secrets in the root, and their values

	versions []version // generation n is versions[n-1]
	ready    int       // index of the oldest version from which a right may still follow; copies don't count
}

// home is a tenant to which a namespace may belong.
type home struct {
	of *tenant
	// seen is the version of the tenant that the binding of users in the namespace had last; from is the oldest version from which a right
	// may still follow.
	seen, from int
}

// place is a namespace of some tree. Each has a name that is never used again.
type place struct {
	name, parent string
	homes        []home // several while it moves, the last is the destination; none while it is in no tree
	settled      bool   // it has its bindings, and neither moves nor ends
	doomed       bool   // its deletion was asked for
	busy         bool   // a user moves or deletes it
	changes      int    // counts how often settled ended
}

// oracle knows what everybody may do: by the state before a change, and by the state after it.
type oracle struct {
	people  []string
	tenants []*tenant
	byName  map[string]*tenant

	mu     sync.Mutex // guards the places, versions and ready of tenants, and what follows
	places map[string]*place
	all    []*place
	hot    []question // about what was changed lately
	wrong  map[string][]string
}

// Kinds of what may be wrong.
const (
	wrongRights    = "rights"
	wrongStrangers = "strangers"
	failed         = "operations"
)

func (o *oracle) blame(kind, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blameLocked(kind, format, args...)
}

func (o *oracle) blameLocked(kind, format string, args ...any) {
	o.wrong[kind] = append(o.wrong[kind], time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (o *oracle) wrongs(kind string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wrong[kind][:min(len(o.wrong[kind]), 20)]
}

// later runs f after grace: by then no answer may rest any more on what is the case now.
func (o *oracle) later(f func()) {
	time.AfterFunc(grace, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		f()
	})
}

// join records that a namespace is about to enter the tree of a tenant.
func (o *oracle) join(name, parent string, t *tenant) *place {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.places[name]
	if p == nil {
		p = &place{name: name}
		o.places[name], o.all = p, append(o.all, p)
	}
	if p.parent = parent; len(p.homes) > 0 && p.homes[len(p.homes)-1].of == t {
		return p
	}
	p.homes = append(p.homes, home{of: t, seen: t.ready, from: t.ready})
	p.settled, p.changes = false, p.changes+1
	return p
}

// condemn records that a namespace is about to be deleted.
func (o *oracle) condemn(p *place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.doomed, p.settled, p.changes = true, false, p.changes+1
}

func (o *oracle) isSettled(p *place) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return p.settled
}

// seeReady records that all access objects of a tenant but the copies are those of a generation.
func (o *oracle) seeReady(name string, generation int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, index := o.byName[name], int(generation)-1
	if t == nil {
		return
	}
	if index >= len(t.versions) {
		o.blameLocked(failed, "LNamespace %s has generation %d, and %d were sent", name, generation, len(t.versions))
		return
	}
	o.later(func() {
		t.ready = max(t.ready, index)
		root := &o.places[name].homes[0]
		root.from = max(root.from, t.ready)
	})
}

// seeBinding records the binding of users in a namespace. Each subject must be listed by a version that may still count. The operator's
// first pass after a start only revokes, so the binding may be that of no version; then it confirms none.
func (o *oracle) seeBinding(b *rbacv1.RoleBinding) {
	var names []string
	for _, s := range b.Subjects {
		names = append(names, s.Name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	p, t := o.places[b.Namespace], o.byName[b.Labels[v1alpha1.LabelTenant]]
	if p == nil {
		o.blameLocked(wrongRights, "RoleBinding %s/%s: no tree has this namespace", b.Namespace, b.Name)
		return
	}
	i := slices.IndexFunc(p.homes, func(h home) bool { return h.of == t })
	if i < 0 {
		o.blameLocked(wrongRights, "RoleBinding %s/%s is of tenant %s, to which it doesn't belong", b.Namespace, b.Name,
			b.Labels[v1alpha1.LabelTenant])
		return
	}
	h := &p.homes[i]
	for _, name := range names {
		if !slices.ContainsFunc(t.versions[h.seen:], func(v version) bool { return slices.Contains(v[users], name) }) {
			o.blameLocked(wrongRights, "RoleBinding %s/%s names %s, whom tenant %s lists in no version from %d to %d", b.Namespace, b.Name,
				name, t.name, h.seen, len(t.versions)-1)
		}
	}
	same := slices.IndexFunc(t.versions[h.seen:], func(v version) bool { return slices.Equal(v[users], names) })
	if same < 0 {
		return
	}
	h.seen += same
	seen := h.seen
	o.later(func() { p.arrive(t, seen) })
}

// arrive records that the binding of users in the namespace has version seen of tenant t. Older rights there end.
func (p *place) arrive(t *tenant, seen int) {
	if len(p.homes) == 0 || p.homes[len(p.homes)-1].of != t {
		return
	}
	h := p.homes[len(p.homes)-1]
	h.from = max(h.from, seen)
	p.homes, p.settled = []home{h}, !p.doomed
}

// way is a reason why a user may have a right: some version of a list names the user, the one at index from or a later one.
type way struct {
	of   *tenant
	list list
	from int
}

// standing is what the oracle knows about a question at one moment.
type standing struct {
	ways    []way
	certain bool // there is only one way, and it has held since changes got this value
	changes int
}

func (o *oracle) standing(q question) (s standing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case q.place != nil:
		for _, h := range q.place.homes {
			if q.tenant == nil || q.tenant == h.of {
				s.ways = append(s.ways, way{h.of, q.list, h.from})
			}
		}
		s.certain, s.changes = q.place.settled && q.list == users, q.place.changes
	case q.tenant != nil:
		s.ways = []way{{q.tenant, q.list, q.tenant.ready}}
	case q.anywhere:
		for _, t := range o.tenants {
			s.ways = append(s.ways, way{t, q.list, t.ready})
		}
	}
	return s
}

// judge checks an answer: nobody may do what no version since the question began allows, and nobody loses what all of them allow.
func (o *oracle) judge(q question, allowed bool, before, after standing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	may, must := false, before.certain && after.certain && before.changes == after.changes
	for _, w := range slices.Concat(before.ways, after.ways) {
		if w.list == everybody {
			may = true
			continue
		}
		for _, v := range w.of.versions[w.from:] {
			listed := slices.Contains(v[w.list], q.user)
			may, must = may || listed, must && listed
		}
	}
	if allowed && !may {
		o.blameLocked(wrongRights, "%s: allowed, though neither before nor after a change", q)
	}
	if !allowed && must {
		o.blameLocked(wrongRights, "%s: denied, though allowed before and after each change", q)
	}
}

// says returns the one right answer when all is settled.
func (o *oracle) says(q question) bool {
	s := o.standing(q)
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(s.ways, func(w way) bool {
		return w.list == everybody || slices.Contains(w.of.versions[len(w.of.versions)-1][w.list], q.user)
	})
}
