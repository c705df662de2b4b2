package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/mirror"
)

// reportPace is the least time between two writes of a status in which only numbers change.
const reportPace = 10 * time.Second

// reports are when each status was written last, and the conditions of tenants.
type reports struct {
	mu      sync.Mutex // guards the fields below
	written map[client.ObjectKey]time.Time
	reasons map[string]v1alpha1.Reason // by tenant
	budgets map[string]v1alpha1.BudgetStatus
}

func newReports() reports {
	return reports{written: map[client.ObjectKey]time.Time{}, reasons: map[string]v1alpha1.Reason{},
		budgets: map[string]v1alpha1.BudgetStatus{}}
}

// countReasons returns how many tenants have each reason.
func (r *reports) countReasons() map[v1alpha1.Reason]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[v1alpha1.Reason]int{}
	for _, reason := range r.reasons {
		counts[reason]++
	}
	return counts
}

// setVerdict records what is true of a tenant; nil means that it has no budget.
func (r *reports) setVerdict(tenant string, v *verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v == nil {
		delete(r.reasons, tenant)
		delete(r.budgets, tenant)
		return
	}
	r.reasons[tenant], r.budgets[tenant] = v.reason, v.budget
}

// begin returns how long a status must not be written yet; if it may be written now, begin records that.
func (r *reports) begin(of client.ObjectKey, hurried bool, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait = reportPace - now.Sub(r.written[of]); wait > 0 && !hurried {
		return wait
	}
	maps.DeleteFunc(r.written, func(_ client.ObjectKey, at time.Time) bool { return now.Sub(at) > reportPace })
	r.written[of] = now
	return 0
}

// verdict is what is to be reported of one limit.
type verdict struct {
	budget  v1alpha1.BudgetStatus
	reason  v1alpha1.Reason
	message string
}

// reportTree writes the status of the tenant and of the HierarchicalResourceQuotas of a tree, where they differ. It returns when to look
// again; 0: never.
func (r *Reconciler) reportTree(ctx context.Context, t *tree, is state, now time.Time) (again time.Duration, err error) {
	used, tenant := budget.SumUsed(t.limits, t.rows), (*verdict)(nil)
	var failures []error
	for i, of := range t.quotas {
		v := t.judge(i, used[i], is)
		if of == nil {
			tenant = &v
			continue
		}
		wait, err := r.reportLimit(ctx, of, v, now)
		again, failures = soonest(again, wait), append(failures, err)
	}
	if is.kind == installed {
		failures = append(failures, r.reportLacking(ctx, t, used, now))
	}
	if tenant == nil && is.kind == blind && t.inTree {
		tenant = new(blindVerdict(is))
	}
	wait, err := r.reportTenant(ctx, t.root, tenant, now)
	if again = soonest(again, wait); len(t.limits) > 0 && t.awaitsCount() {
		again = soonest(again, countPatience)
	}
	return again, errors.Join(append(failures, err)...)
}

// awaitsCount reports whether a share is not counted yet.
func (t *tree) awaitsCount() bool {
	return slices.ContainsFunc(t.rows, func(row budget.Row) bool { return !row.Fixed && !row.Ending && !row.IsCounted() })
}

// awaitsReturn reports whether a lowered share is not counted yet, so that there is more room soon.
func (t *tree) awaitsReturn() bool {
	return slices.ContainsFunc(t.rows, func(row budget.Row) bool {
		for key, amount := range row.Spec {
			if row.Counted[key] > amount {
				return true
			}
		}
		return row.Open
	})
}

// judge returns what is to be reported of a limit.
func (t *tree) judge(l int, used budget.Sum, is state) verdict {
	hard := t.limits[l].Hard
	v := verdict{budget: v1alpha1.BudgetStatus{Hard: hard.List()}}
	switch excess := used.DescribeExcess(hard); {
	case is.kind == missing:
		v.reason, v.message = v1alpha1.ReasonNotInstalled, "component budgets is not installed, so nothing limits the tree: a cluster admin "+
			"installs it, or removes the limit"
		return v
	case is.kind == forbidden:
		v.reason, v.message = v1alpha1.ReasonForbidden, "the operator may not watch HierarchicalResourceQuotas, ResourceQuotas or Events, so "+
			"nothing new is limited: a cluster admin installs component budgets with its rights, or removes the limit"
		return v
	case is.kind == blind:
		return blindVerdict(is)
	case !t.inTree:
		v.reason, v.message = v1alpha1.ReasonNotInTree, "the namespace is in no tree, so nothing is limited: delete this object, or place the "+
			"namespace in a tree"
		return v
	case t.ignored[l] != "":
		v.reason, v.message = v1alpha1.ReasonLimitExceeded, t.ignored[l]+": this one does not count, so delete it, or another"
		return v
	case len(t.uncounted[l])+len(t.problems[l]) > 0:
		v.reason, v.message = v1alpha1.ReasonNotCounted, strings.Join(slices.Concat(t.problems[l], t.uncounted[l]), "; ")
	case excess != "":
		v.reason, v.message = v1alpha1.ReasonExceeded, excess
	default:
		v.reason, v.message = v1alpha1.ReasonEnforced, "the namespaces use no more than the limit, and can't"+
			used.DescribeFull(hard)+t.describeNarrower(l)
	}
	v.budget.Used, v.budget.Free = used.Used.List(), budget.Free(hard, used.Used).List()
	return v
}

// blindVerdict is what is to be reported of every tenant, with a budget or not, while it isn't known which limits there are.
func blindVerdict(is state) verdict {
	return verdict{reason: v1alpha1.ReasonNotObserved, message: is.why + ": no share changes, and new namespaces get no rights and no " +
		"copies before; a cluster admin makes room (informers.maxInformers) or mends what the error names, or removes component budgets"}
}

// mostNames is how many namespaces a message names at most.
const mostNames = 10

// describeNarrower tells of resources of which the tenant has less than a HierarchicalResourceQuota allows.
func (t *tree) describeNarrower(l int) string {
	if t.quotas[l] == nil || t.quotas[0] != nil {
		return ""
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(t.limits[l].Hard)) {
		is, above := t.limits[l].Hard[key], t.limits[0].Hard
		if most, limited := above[key]; limited && most < is {
			texts = append(texts, fmt.Sprintf("; hard.%s %s is more than %s has (%s): the smaller one holds", key, budget.Format(key, is),
				t.limits[0].Name, budget.Format(key, most)))
		}
	}
	return strings.Join(texts, "")
}

func (r *Reconciler) reportTenant(ctx context.Context, root string, v *verdict, now time.Time) (wait time.Duration, err error) {
	lns := &v1alpha1.LNamespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: root}, lns); err != nil || r.View.Snapshot().TenantOf(root) == nil {
		r.reports.setVerdict(root, nil)
		return 0, client.IgnoreNotFound(err)
	}
	// The cache may not have the last report yet, and its event queues nothing.
	if lns, err = r.Newest(ctx, lns); err != nil || lns == nil {
		return 0, err
	}
	was, had := lns.Status.Budget, v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionBudgetEnforced)
	if r.reports.setVerdict(root, v); v == nil {
		if was == nil && had == nil {
			return 0, nil
		}
		return 0, r.Report(ctx, lns, func(status *v1alpha1.LNamespaceStatus) {
			status.Budget = nil
			meta.RemoveStatusCondition(&status.Conditions, string(v1alpha1.ConditionBudgetEnforced))
		})
	}
	sameCondition := had != nil && had.Reason == string(v.reason) && had.ObservedGeneration == lns.Generation
	if sameCondition && had.Message == v.message && (v.reason == v1alpha1.ReasonNotObserved ||
		was != nil && equality.Semantic.DeepEqual(*was, v.budget)) {
		return 0, nil
	}
	if wait := r.reports.begin(client.ObjectKey{Name: root}, !sameCondition, now); wait > 0 {
		return wait, nil
	}
	return 0, r.Report(ctx, lns, func(status *v1alpha1.LNamespaceStatus) {
		enforced := metav1.ConditionFalse
		if v.reason == v1alpha1.ReasonEnforced {
			enforced = metav1.ConditionTrue
		}
		if status.Budget = &v.budget; v.reason == v1alpha1.ReasonNotObserved {
			status.Budget = was // as it was last known
		}
		v1alpha1.SetCondition(&status.Conditions, lns.Generation, v1alpha1.ConditionBudgetEnforced, enforced, v.reason, v.message)
	})
}

func (r *Reconciler) reportLimit(ctx context.Context, of *limit, v verdict, now time.Time) (wait time.Duration, err error) {
	ready := metav1.ConditionFalse
	if v.reason == v1alpha1.ReasonEnforced || v.reason == v1alpha1.ReasonExceeded {
		ready = metav1.ConditionTrue
	}
	is := v1alpha1.HierarchicalResourceQuotaStatus{BudgetStatus: v.budget, ObservedGeneration: of.generation,
		Conditions: slices.Clone(of.reported.ready)}
	v1alpha1.SetCondition(&is.Conditions, of.generation, v1alpha1.ConditionReady, ready, v.reason, v.message)
	if digestOf(is) == of.reported.digest {
		return 0, nil
	}
	had := v1alpha1.FindCondition(of.reported.ready, v1alpha1.ConditionReady)
	hurried := had == nil || had.Reason != string(v.reason) || of.reported.generation != of.generation
	if wait := r.reports.begin(of.ObjectKey, hurried, now); wait > 0 {
		return wait, nil
	}
	return 0, client.IgnoreNotFound(r.writeReport(ctx, of, is))
}

// writeReport replaces the status of a HierarchicalResourceQuota, guarded by its UID and version.
func (r *Reconciler) writeReport(ctx context.Context, of *limit, status v1alpha1.HierarchicalResourceQuotaStatus) error {
	body, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/uid", "value": of.uid},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": of.version},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	var flight *mirror.Flight
	r.known.changeLimits(func(t limits) { flight = t.Begin(of.ObjectKey) })
	answer := &v1alpha1.HierarchicalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	err = r.Client.Status().Patch(ctx, answer, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(v1alpha1.OperatorName))
	r.known.changeLimits(func(t limits) {
		if err == nil {
			t.Answered(flight, answer)
		} else {
			t.Refused(flight) // where it was carried out all the same, a watch shows that
		}
	})
	return err
}
