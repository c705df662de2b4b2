package budget

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
)

// tree is what a plan needs of a tree, and a report.
type tree struct {
	root     string
	limits   []budget.Limit
	quotas   []*limit // the HierarchicalResourceQuota of each limit, nil for that of the tenant
	rows     []budget.Row
	ignored  map[int]bool // limits beyond mostLimits
	refusals map[string]budget.Refusal
	lost     []budget.Share // writes without an answer
	failed   map[string]int // 1 for each namespace whose last write failed
	// uncounted are namespaces whose shares are not counted, or could not be written, with what is wrong.
	uncounted map[string]string
	inTree    bool
}

// mostLimits is how many HierarchicalResourceQuotas of a namespace count, so that a sudoer can't make the plan of a tree long.
const mostLimits = 8

// countPatience is how long an uncounted share is nothing to report.
const countPatience = 10 * time.Second

// gatherTree returns the tree of a root; for another name, that namespace alone.
func (r *Reconciler) gatherTree(s *forest.Snapshot, root string, now time.Time) *tree {
	t := &tree{root: root, inTree: s.Place(root).InTree(), refusals: map[string]budget.Refusal{}, uncounted: map[string]string{},
		failed: map[string]int{}, ignored: map[int]bool{}}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	under := map[string][]int{}
	if hard := s.Limits(root).Hard; t.inTree && len(hard) > 0 {
		t.addLimit("tenant "+root, budget.AmountsOf(corev1.ResourceList(hard)), nil)
		under[""] = []int{0}
	}
	if len(t.limits) == 0 && r.known.limits.IsEmpty() && r.known.shares.IsEmpty() && len(r.known.writes) == 0 {
		return t // no budgets in the cluster: nothing is worth a walk
	}
	for _, name := range append([]string{root}, s.Members(root)...) {
		r.known.addNamespace(t, s, name, under, now)
	}
	return t
}

// addNamespace adds a namespace to the tree. Its parent was added before; under has the limits at and above each namespace. The caller
// holds the lock.
func (k *known) addNamespace(t *tree, s *forest.Snapshot, name string, under map[string][]int, now time.Time) {
	n := s.Namespace(name)
	if n == nil {
		return
	}
	above := t.limitsAbove(s, n, under)
	is := append(slices.Clone(above), k.addLimits(t, name)...)
	under[name] = is
	q := k.quotaOf(name)
	if q == nil && len(is) == 0 {
		return
	}
	row := budget.Row{}
	if q != nil {
		row = q.row()
		k.noteWrites(t, name, q)
	}
	row.Namespace, row.Under = name, is
	// Where the operator may write nothing, the share counts as it is.
	isLeft := s.Place(name).Halted() || s.Protected(name)
	row.Fixed, row.Ending = row.Fixed || isLeft, n.Terminating
	t.rows = append(t.rows, row)
	switch {
	case len(is) == 0 || row.Ending:
	case isLeft:
		t.noteUnlimited(&row)
	case !row.Fixed || q != nil && q.lost != nil:
		k.noteUncounted(t, name, q, now)
	}
	k.addRefusal(t, name, q, now)
}

// limitsAbove returns the limits above a namespace. Where its parent was deleted, or is in another tree by now, they are those of the nearest
// namespace that was above it and is in this tree: what runs there still uses what that limit allows.
func (t *tree) limitsAbove(s *forest.Snapshot, n *forest.Namespace, under map[string][]int) []int {
	if n.Name == t.root {
		return under[""]
	}
	for _, name := range append([]string{n.Parent()}, s.FormerAncestors(n.Name)...) {
		if above, known := under[name]; known {
			return above
		}
	}
	return under[t.root]
}

// noteUnlimited notes that the share of a namespace in which the operator writes nothing doesn't hold a limit above it.
func (t *tree) noteUnlimited(row *budget.Row) {
	for _, l := range row.Under {
		for key, hard := range t.limits[l].Hard {
			if amount, counted := row.Counted[key]; !counted || amount > hard {
				t.uncounted[row.Namespace] = "namespace " + row.Namespace + " is halted or protected, so the operator writes no share there, and " +
					"nothing holds it to the limit: place it in the tree again, or delete it"
				return
			}
		}
	}
}

// addLimits adds the HierarchicalResourceQuotas of a namespace, and returns the indexes of those that count: the first mostLimits, by name.
func (k *known) addLimits(t *tree, name string) (counting []int) {
	n := 0
	for _, one := range k.limits.In(name) {
		if n >= mostLimits {
			t.ignored[len(t.limits)] = true
		} else if !one.isEnding && t.inTree {
			counting = append(counting, len(t.limits))
		}
		n++
		t.addLimit("HierarchicalResourceQuota "+name+"/"+one.Name, one.hard, new(*one))
	}
	return counting
}

// noteWrites notes how the last write of a share ended, unless it succeeded.
func (k *known) noteWrites(t *tree, name string, q *quota) {
	if q.lost != nil {
		t.lost = append(t.lost, *q.lost)
	}
	if q.failure != "" {
		t.failed[name] = 1
	}
}

// addRefusal adds what a namespace was refused, and forgets it when it doesn't even count as the one before.
func (k *known) addRefusal(t *tree, name string, q *quota, now time.Time) {
	refusal, refused := k.refusals[name]
	switch {
	case refused && now.Sub(refusal.At) < budget.RefusalHolds:
		// A controller that has used what it got will be refused again: it gets more before it waits longer.
		refusal.Again = refusal.Again || q != nil && q.hasUsedUp(refusal)
		k.refusals[name], t.refusals[name] = refusal, refusal
	case refused && now.Sub(refusal.At) > budget.RefusedBefore:
		delete(k.refusals, name)
	}
}

// hasUsedUp reports whether the share was raised since a refusal, and is too small again.
func (q *quota) hasUsedUp(refusal budget.Refusal) bool {
	for key, amount := range refusal.Requested {
		if q.spec[key] > refusal.Share[key] && q.spec[key]-q.used[key] < amount {
			return true
		}
	}
	return false
}

func (k *known) noteUncounted(t *tree, name string, q *quota, now time.Time) {
	switch {
	case q == nil:
	case q.failure != "":
		t.uncounted[name] = "the ResourceQuota of " + name + " can't be written: " + q.failure
	case !q.since.IsZero() && now.Sub(q.since) >= countPatience:
		t.uncounted[name] = "the ResourceQuota of " + name + " has not been counted for " + now.Sub(q.since).Truncate(time.Second).String() +
			": its people get no rights before"
	}
}

func (t *tree) addLimit(name string, hard budget.Amounts, of *limit) {
	t.limits, t.quotas = append(t.limits, budget.Limit{Name: name, Hard: hard}), append(t.quotas, of)
}
