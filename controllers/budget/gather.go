package budget

import (
	"fmt"
	"slices"
	"time"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
)

// tree is what a plan needs of a tree, and a report.
type tree struct {
	root     string
	limits   []budget.Limit
	quotas   []*v1alpha1.HierarchicalResourceQuota // of each limit, nil for that of the tenant
	rows     []budget.Row
	ignored  map[int]string // limits that are one too many, with the rule
	problems [][]string     // of each limit: what of it is left out, and why
	keys     int            // how many resources the HierarchicalResourceQuotas have that count
	refusals map[string]budget.Refusal
	lost     []budget.Share // writes without an answer
	failed   map[string]int // 1 for each namespace whose last write failed
	// uncounted tells, by limit, of shares below it that are not counted, or could not be written; of mostNames at most.
	uncounted map[int][]string
	inTree    bool
}

// These bound what a sudoer can make a plan cost, and how large a share. The limits nearest to the root count first, and that of the tenant
// before all, so that no HierarchicalResourceQuota takes the place of one above.
const (
	mostLimits   = 8    // HierarchicalResourceQuotas of a namespace, by name
	mostKeys     = 64   // resources of all limits above a namespace
	mostTreeKeys = 4096 // resources of all HierarchicalResourceQuotas of a tree
)

// past is what is remembered of a tree from one plan to the next.
type past struct {
	doubts budget.Doubts
	// unlimited are namespaces below HierarchicalResourceQuotas of which none counts: no share will come there.
	unlimited map[string]bool
}

// above is what limits a namespace.
type above struct {
	limits []int
	keys   int
	silent bool // a HierarchicalResourceQuota does not count
}

// countPatience is how long an uncounted share is nothing to report.
const countPatience = 10 * time.Second

// gatherTree returns the tree of a root; for another name, that namespace alone.
func (r *Reconciler) gatherTree(s *forest.Snapshot, root string, now time.Time) *tree {
	t := &tree{root: root, inTree: s.Place(root).InTree(), refusals: map[string]budget.Refusal{}, uncounted: map[int][]string{},
		failed: map[string]int{}, ignored: map[int]string{}}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	was, is := r.past[root], past{unlimited: map[string]bool{}}
	delete(r.past, root)
	under := map[string]above{}
	if hard := s.Limits(root).Hard; t.inTree && len(hard) > 0 {
		t.addLimit("tenant "+root, hard, nil)
		under[""] = above{limits: []int{0}, keys: len(t.limits[0].Hard)}
	}
	if len(t.limits)+len(r.known.limits)+len(r.known.quotas) == 0 {
		return t // no budgets in the cluster: nothing is worth a walk
	}
	for _, name := range append([]string{root}, s.Members(root)...) {
		r.known.addNamespace(t, s, name, under, now)
		if under[name].silent && under[name].keys == 0 {
			is.unlimited[name] = true
		}
	}
	if is.doubts = was.doubts.Judge(t.rows, t.refusals, now); len(is.doubts)+len(is.unlimited) > 0 {
		r.past[root] = is
	}
	return t
}

// addNamespace adds a namespace to the tree. Its parent was added before; under has the limits at and above each namespace. The caller
// holds the lock.
func (k *known) addNamespace(t *tree, s *forest.Snapshot, name string, under map[string]above, now time.Time) {
	n, parent := s.Namespace(name), ""
	if n == nil {
		return
	}
	if name != t.root {
		parent = n.Parent()
	}
	is, known := under[parent]
	if !known {
		is = under[t.root] // the parent was deleted, or is in another tree by now: the namespace still counts in this one
	}
	is = k.addLimits(t, name, is)
	under[name] = is
	q := k.quotas[name]
	if q == nil && len(is.limits) == 0 {
		return
	}
	row := budget.Row{}
	if q != nil {
		row = q.row()
		k.noteWrites(t, name, q)
	}
	row.Namespace, row.Under = name, is.limits
	// Where the operator may write nothing, the share counts as it is.
	row.Fixed, row.Ending = row.Fixed || s.Place(name).Halted() || s.Protected(name), n.Terminating
	if t.rows = append(t.rows, row); len(is.limits) > 0 && !row.Ending && (!row.Fixed || q != nil && q.lost != nil) {
		k.noteUncounted(t, &row, q, now)
	}
	k.addRefusal(t, name, q, now)
}

// addLimits adds the HierarchicalResourceQuotas of a namespace, and returns what limits it and all below.
func (k *known) addLimits(t *tree, name string, from above) above {
	is := above{slices.Clone(from.limits), from.keys, from.silent}
	for n, limit := range k.listLimits(name) {
		size, rule := len(limit.Spec.Hard), ""
		switch {
		case n >= mostLimits:
			rule = fmt.Sprintf("only the first %d HierarchicalResourceQuotas of a namespace count, by name", mostLimits)
		case is.keys+size > mostKeys:
			rule = fmt.Sprintf("the limits above a namespace may have %d resources together", mostKeys)
		case t.keys+size > mostTreeKeys:
			rule = fmt.Sprintf("the HierarchicalResourceQuotas of a tree may have %d resources together", mostTreeKeys)
		}
		if rule != "" {
			is.silent = true
			t.ignoreLimit(limit, rule)
			continue
		}
		t.addLimit("HierarchicalResourceQuota "+name+"/"+limit.Name, limit.Spec.Hard, limit)
		if limit.DeletionTimestamp == nil && t.inTree {
			l := len(t.limits) - 1
			counting := len(t.limits[l].Hard)
			is.limits, is.keys, t.keys = append(is.limits, l), is.keys+counting, t.keys+counting
			is.silent = is.silent || counting < size
		}
	}
	return is
}

// ignoreLimit adds a limit that is one too many, to be reported. If that is reported already, it costs nothing.
func (t *tree) ignoreLimit(limit *v1alpha1.HierarchicalResourceQuota, rule string) {
	ready := v1alpha1.FindCondition(limit.Status.Conditions, v1alpha1.ConditionReady)
	if t.inTree && ready != nil && ready.Reason == string(v1alpha1.ReasonLimitExceeded) && ready.ObservedGeneration == limit.Generation {
		return
	}
	t.ignored[len(t.limits)] = rule
	t.addLimit("", nil, limit)
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

func (k *known) noteUncounted(t *tree, row *budget.Row, q *quota, now time.Time) {
	text := ""
	switch {
	case q == nil:
	case q.failure != "":
		text = "the ResourceQuota of " + row.Namespace + " can't be written: " + q.failure
	case !q.since.IsZero() && now.Sub(q.since) >= countPatience:
		text = "the ResourceQuota of " + row.Namespace + " has not been counted for " + now.Sub(q.since).Truncate(time.Second).String() +
			": its people get no rights before"
	}
	for _, l := range row.Under {
		if text != "" && len(t.uncounted[l]) < mostNames {
			t.uncounted[l] = append(t.uncounted[l], text)
		}
	}
}

func (t *tree) addLimit(name string, hard v1alpha1.Budget, of *v1alpha1.HierarchicalResourceQuota) {
	amounts, problems := budget.Limited(hard)
	t.limits = append(t.limits, budget.Limit{Name: name, Hard: amounts})
	t.quotas, t.problems = append(t.quotas, of), append(t.problems, problems)
}
