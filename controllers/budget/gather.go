package budget

import (
	"fmt"
	"maps"
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
	quotas   []*limit // the HierarchicalResourceQuota of each limit, nil for that of the tenant
	rows     []budget.Row
	ignored  map[int]string // limits that are one too many, with the rule
	problems [][]string     // of each limit: what of it is left out, and why
	keys     int            // how many resources the HierarchicalResourceQuotas have that count
	refusals map[string]budget.Refusal
	asked    map[string]budget.Refusal // refusals, with those that no longer count
	unmarked []string                  // namespaces that have a share and not its label, or the label alone
	lacking  map[string]string         // AnnotationLacking of the shares that have it, by namespace
	managers []string                  // of the tenant
	order    map[string]int            // of the writes of a pass, by namespace: the least first
	// uncounted tells, by limit, of shares below it that are not counted, or could not be written; of mostNames at most.
	uncounted map[int][]string
	inTree    bool
}

// These bound what a sudoer can make a plan cost, and how large a share. The limits nearest to the root count first, and that of the
// tenant before all, so that no HierarchicalResourceQuota takes the place of one above.
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
		lacking: map[string]string{}, order: map[string]int{}, ignored: map[int]string{}}
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	was, is := r.past[root], past{unlimited: map[string]bool{}}
	delete(r.past, root)
	under := map[string]above{}
	if tenant := s.TenantOf(root); tenant != nil {
		t.managers = tenant.Managers
	}
	if hard := s.Limits(root).Hard; t.inTree && len(hard) > 0 {
		amounts, problems := budget.Limited(hard)
		t.addLimit("tenant "+root, amounts, problems, nil)
		under[""] = above{limits: []int{0}, keys: len(amounts)}
	}
	if len(t.limits) == 0 && r.known.limits.IsEmpty() && r.known.shares.IsEmpty() && len(r.known.writes) == 0 {
		return t // no budgets in the cluster: nothing is worth a walk
	}
	for _, name := range append([]string{root}, s.Members(root)...) {
		r.known.addNamespace(t, s, name, under, now)
		if under[name].silent && under[name].keys == 0 {
			is.unlimited[name] = true
		}
	}
	t.asked = maps.Clone(t.refusals)
	if is.doubts = was.doubts.Judge(t.rows, t.refusals, now); len(is.doubts)+len(is.unlimited) > 0 {
		r.past[root] = is
	}
	return t
}

// addNamespace adds a namespace to the tree. Its parent was added before; under has the limits at and above each namespace. The caller
// holds the lock.
func (k *known) addNamespace(t *tree, s *forest.Snapshot, name string, under map[string]above, now time.Time) {
	n := s.Namespace(name)
	if n == nil {
		return
	}
	is := k.addLimits(t, name, t.findAbove(s, n, under))
	under[name] = is
	q := k.quotaOf(name)
	if isMarked := n.Labels[v1alpha1.LabelShare] == v1alpha1.True; isMarked != (q != nil && q.spec != nil) && t.inTree {
		t.unmarked = append(t.unmarked, name)
	}
	if q == nil && len(is.limits) == 0 {
		return
	}
	row := budget.Row{}
	if q != nil {
		row = q.row()
		t.order[name] = q.orderOfWrite()
		if q.lacking != "" {
			t.lacking[name] = q.lacking
		}
	}
	row.Namespace, row.Under, row.Passed = name, is.limits, maps.Clone(k.doors[name].sumPassed(now))
	// Where the operator may write nothing, the share counts as it is.
	isLeft := s.Place(name).Halted() || s.Protected(name)
	row.Fixed, row.Ending = isLeft, n.Terminating
	t.rows = append(t.rows, row)
	switch {
	case row.Ending:
	case isLeft:
		t.noteUnlimited(&row)
	default:
		t.noteUncounted(&row, q, now)
	}
	k.addRefusal(t, name, q, now)
}

// findAbove returns what limits a namespace from above. Where its parent was deleted, or is in another tree by now, that is what holds
// below the nearest namespace that was above it and is in this tree.
func (t *tree) findAbove(s *forest.Snapshot, n *forest.Namespace, under map[string]above) above {
	if n.Name == t.root {
		return under[""]
	}
	for _, name := range append([]string{n.Parent()}, s.FormerAncestors(n.Name)...) {
		if is, known := under[name]; known {
			return is
		}
	}
	return under[t.root]
}

// noteUnlimited notes which limits the share of a namespace doesn't hold in which the operator writes nothing.
func (t *tree) noteUnlimited(row *budget.Row) {
	for _, l := range row.Under {
		for key, hard := range t.limits[l].Hard {
			if amount, counted := row.Counted[key]; !counted || amount > hard {
				t.addUncounted(l, "namespace "+row.Namespace+" is halted or protected, so the operator writes no share there, and nothing holds "+
					"it to the limit: place it in the tree again, or delete it")
				break
			}
		}
	}
}

func (t *tree) addUncounted(l int, text string) {
	if len(t.uncounted[l]) < mostNames {
		t.uncounted[l] = append(t.uncounted[l], text)
	}
}

// addLimits adds the HierarchicalResourceQuotas of a namespace, and returns what limits it and all below.
func (k *known) addLimits(t *tree, name string, from above) above {
	is, n := above{slices.Clone(from.limits), from.keys, from.silent}, 0
	for _, one := range k.limits.In(name) {
		rule := ""
		switch n++; {
		case n > mostLimits:
			rule = fmt.Sprintf("only the first %d HierarchicalResourceQuotas of a namespace count, by name", mostLimits)
		case is.keys+len(one.hard) > mostKeys:
			rule = fmt.Sprintf("the limits above a namespace may have %d resources together", mostKeys)
		case t.keys+len(one.hard) > mostTreeKeys:
			rule = fmt.Sprintf("the HierarchicalResourceQuotas of a tree may have %d resources together", mostTreeKeys)
		}
		if rule != "" {
			is.silent = true
			t.ignoreLimit(one, rule)
			continue
		}
		t.addLimit("HierarchicalResourceQuota "+name+"/"+one.Name, one.hard, one.problems, one)
		if !one.isEnding && t.inTree {
			is.limits, is.keys, t.keys = append(is.limits, len(t.limits)-1), is.keys+len(one.hard), t.keys+len(one.hard)
			is.silent = is.silent || len(one.problems) > 0
		}
	}
	return is
}

// ignoreLimit adds a limit that is one too many, to be reported. If that is reported already, it costs nothing.
func (t *tree) ignoreLimit(one *limit, rule string) {
	ready := v1alpha1.FindCondition(one.reported.ready, v1alpha1.ConditionReady)
	if t.inTree && ready != nil && ready.Reason == string(v1alpha1.ReasonLimitExceeded) && one.reported.generation == one.generation {
		return
	}
	t.ignored[len(t.limits)] = rule
	t.addLimit("", nil, nil, one)
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

// orderOfWrite returns when in a pass the share is written. A write without an answer occupies room until it is decided; what was refused
// hinders nothing else.
func (q *quota) orderOfWrite() int {
	switch {
	case q.lost != nil:
		return -1
	case q.failure != "":
		return 1
	}
	return 0
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

func (t *tree) noteUncounted(row *budget.Row, q *quota, now time.Time) {
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
		if text != "" {
			t.addUncounted(l, text)
		}
	}
}

func (t *tree) addLimit(name string, hard budget.Amounts, problems []string, of *limit) {
	t.limits, t.problems = append(t.limits, budget.Limit{Name: name, Hard: hard}), append(t.problems, problems)
	if of != nil {
		of = new(*of) // the table may change it
	}
	t.quotas = append(t.quotas, of)
}
