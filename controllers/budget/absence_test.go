package budget

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// blindness has the watches of shares and Events work, and that of limits be in a state.
func blindness(t *testing.T, limits watchset.Status) *Reconciler {
	t.Helper()
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
	(&view.Feed{View: r.View}).TakeNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "org", UID: "uid-0",
		ResourceVersion: "3", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
		Annotations: map[string]string{v1alpha1.AnnotationLNamespaceUID: "tenant"}}})
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "org", UID: "tenant"}}
	(&view.Feed{View: r.View}).TakeTenant(tenant)
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(shareOf("1", "", 3), tenant).WithStatusSubresource(tenant).Build()
	r.Live = r.Client
	r.Report = func(ctx context.Context, of *v1alpha1.LNamespace, change func(*v1alpha1.LNamespaceStatus)) error {
		change(&of.Status)
		return r.Client.Status().Update(ctx, of)
	}
	r.Newest = func(ctx context.Context, of *v1alpha1.LNamespace) (*v1alpha1.LNamespace, error) {
		is := &v1alpha1.LNamespace{}
		return is, r.Live.Get(ctx, client.ObjectKeyFromObject(of), is)
	}
	is := &corev1.ResourceQuota{}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(shareOf("1", "", 3)), is); err != nil {
		t.Fatal(err)
	}
	shares := r.sinkOfShares()
	shares.Replace("", is.ResourceVersion, []client.Object{is})
	shares.State("", watchset.Status{State: watchset.Synced})
	for i := range refusalReasons {
		r.sinkOfEvents(watchOfEvents+i).State("", watchset.Status{State: watchset.Synced})
	}
	r.sinkOfLimits().State("", limits)
	return r
}

func TestALimitThatIsNotSeenIsNotTakenForAbsent(t *testing.T) {
	for name, tt := range map[string]struct {
		limits watchset.Status
		want   string
	}{
		"QUOTA-68 while the first list of HierarchicalResourceQuotas fails after a start, no share is deleted, new rights wait, and the " +
			"tenant's BudgetEnforced tells why": {watchset.Status{State: watchset.Degraded, Err: errors.New("etcd is away")}, "etcd is away"},
		"QUOTA-69 while there is no room for the watch of HierarchicalResourceQuotas, no share is deleted, new rights wait, and the " +
			"tenant's BudgetEnforced names informers.maxInformers": {watchset.Status{State: watchset.Pending, Err: watchset.ErrLimit},
			"informers.maxInformers"},
	} {
		t.Run(name, func(t *testing.T) {
			r := blindness(t, tt.limits)
			if _, err := r.Reconcile(t.Context(), requestFor("org")); err != nil {
				t.Fatal(err)
			}
			if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(shareOf("1", "", 3)), &corev1.ResourceQuota{}); err != nil {
				t.Errorf("the share of web: %v: nothing limits web", err)
			}
			(&view.Feed{View: r.View}).TakeNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "new",
				ResourceVersion: "4", Labels: map[string]string{v1alpha1.LabelParent: "org"}}})
			if !r.AwaitsShare("new") {
				t.Error("it isn't known which limits there are, and rights in a new namespace don't wait")
			}
			is := &v1alpha1.LNamespace{}
			if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "org"}, is); err != nil {
				t.Fatal(err)
			}
			enforced := v1alpha1.FindCondition(is.Status.Conditions, v1alpha1.ConditionBudgetEnforced)
			if enforced == nil || enforced.Status != metav1.ConditionFalse || enforced.Reason != string(v1alpha1.ReasonNotObserved) ||
				!strings.Contains(enforced.Message, tt.want) {
				t.Errorf("got %+v, which doesn't tell that rights wait because of %q", enforced, tt.want)
			}
			r.sinkOfLimits().Replace("", "9", nil)
			r.sinkOfLimits().State("", watchset.Status{State: watchset.Synced})
			if _, err := r.Reconcile(t.Context(), requestFor("org")); err != nil {
				t.Fatal(err)
			}
			if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "org"}, is); err != nil {
				t.Fatal(err)
			}
			if v1alpha1.FindCondition(is.Status.Conditions, v1alpha1.ConditionBudgetEnforced) != nil || r.AwaitsShare("new") {
				t.Error("the list has shown that there is no limit, and rights wait, or the condition stays")
			}
		})
	}
}

func TestReportThatTheCacheDoesNotShowYetIsTakenBack(t *testing.T) {
	t.Run("QUOTA-125 a report that the operator's cache does not show yet is taken back when it is no longer true", func(t *testing.T) {
		r := blindness(t, watchset.Status{State: watchset.Degraded, Err: errors.New("etcd is away")})
		before := &v1alpha1.LNamespace{}
		if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "org"}, before); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(t.Context(), requestFor("org")); err != nil {
			t.Fatal(err)
		}
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
				if lns, is := into.(*v1alpha1.LNamespace); is {
					before.DeepCopyInto(lns)
					return nil
				}
				return api.Get(ctx, key, into, opts...)
			}})
		r.sinkOfLimits().Replace("", "9", nil)
		r.sinkOfLimits().State("", watchset.Status{State: watchset.Synced})
		if _, err := r.Reconcile(t.Context(), requestFor("org")); err != nil {
			t.Fatal(err)
		}
		is := &v1alpha1.LNamespace{}
		if err := r.Live.Get(t.Context(), client.ObjectKey{Name: "org"}, is); err != nil {
			t.Fatal(err)
		}
		if c := v1alpha1.FindCondition(is.Status.Conditions, v1alpha1.ConditionBudgetEnforced); c != nil {
			t.Errorf("the condition stays: %+v", c)
		}
	})
}

func TestHierarchicalResourceQuotasFillNoMemory(t *testing.T) {
	t.Run("QUOTA-70 of a HierarchicalResourceQuota with 250 kB of annotations, the operator keeps less than 8 kB", func(t *testing.T) {
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		sink := r.sinkOfLimits()
		measure := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		const many = 400
		before := measure()
		for i := range many {
			one := limitOf("plain", fmt.Sprint("h", i), fmt.Sprint(i), fmt.Sprint(i+1))
			one.Annotations = map[string]string{"a": strings.Repeat(fmt.Sprint(i%10), 250<<10)}
			one.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 10000)}}
			sink.Put(sink.(watchset.Trimmer).Trim(one))
		}
		if kept := int64(measure()-before) / many; kept > 8<<10 {
			t.Errorf("it keeps %d bytes of each", kept)
		}
		runtime.KeepAlive(r)
	})
}

func TestALostWriteEndsWhenTheWatchShowsIt(t *testing.T) {
	t.Run("QUOTA-66 after a write whose answer was lost, the watch shows the share, and the failure is no longer "+
		"reported", func(t *testing.T) {
		r := New(Options{})
		r.showShare(shareOf("1", "4", 3))
		flight, _ := r.known.begin("web")
		r.known.recordLost(flight, &budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 8}}, errors.New("connection reset"))
		if q := r.quota(); q.failure == "" || q.lost == nil {
			t.Fatalf("%+v has no failure", q)
		}
		if r.showShare(shareOf("1", "5", 3)); r.quota().failure != "" || len(r.known.writes) > 0 {
			t.Errorf("%+v reports for ever that the share can't be written", r.quota())
		}
	})
}

func TestALostWriteEndsWithItsNamespace(t *testing.T) {
	t.Run("QUOTA-71 a write whose answer was lost is not repeated in another namespace of the name", func(t *testing.T) {
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		r.View.MarkSynced()
		r.followForest()
		flight, _ := r.known.begin("web")
		(&view.Feed{View: r.View}).DropNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-1",
			ResourceVersion: "2"}})
		r.known.recordLost(flight, &budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 8}}, errors.New("connection reset"))
		if q := r.quota(); q != nil {
			t.Errorf("%+v is known of a namespace that is gone", q)
		}
	})
}

// halfway is the tree of org in which b was deleted: c, below it, is halted. Limit team holds in a, above b.
func halfway(t *testing.T) *Reconciler {
	t.Helper()
	v := view.New(forest.Rules{})
	for name, at := range map[string][2]string{"org": {}, "a": {"org", "org/a"}, "c": {"b", "org/a/b/c"}} {
		labels, annotations := map[string]string{v1alpha1.LabelParent: at[0]}, map[string]string{v1alpha1.AnnotationAncestry: at[1]}
		if name == "org" {
			labels, annotations = map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}, nil
		}
		v.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1",
			Labels: labels, Annotations: annotations}})
	}
	r := New(Options{View: v, PatchNamespace: patchNothing})
	r.sinkOfLimits().Replace("", "1", []client.Object{limitOf("a", "team", "1", "1")})
	return r
}

func TestLimitsBelowADeletedParent(t *testing.T) {
	t.Run("QUOTA-72 what a namespace uses whose parent was deleted counts against the limits of the nearest namespace that was above it",
		func(t *testing.T) {
			r := halfway(t)
			share := shareOf("1", "4", 3)
			share.Namespace = "c"
			r.showShare(share)
			gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
			if used := budget.SumUsed(gathered.limits, gathered.rows); len(used) != 1 || used[0].Used["pods"] != 3 {
				t.Errorf("got %v, want 3 pods: part a could use its limit once more", used)
			}
		})
	t.Run("QUOTA-73 a halted namespace whose share doesn't hold a limit makes the limit NotCounted, and not Enforced", func(t *testing.T) {
		for name, share := range map[string]*corev1.ResourceQuota{"no share": nil, "a share that is larger": shareOf("1", "4", 3)} {
			r := halfway(t)
			if share != nil {
				share.Namespace = "c"
				share.Status.Hard = corev1.ResourceList{"pods": resource.MustParse("6")}
				r.showShare(share)
			}
			gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
			verdict := gathered.judge(0, budget.SumUsed(gathered.limits, gathered.rows)[0], state{kind: installed})
			if verdict.reason != v1alpha1.ReasonNotCounted || !strings.Contains(verdict.message, "namespace c") {
				t.Errorf("%s: %s, %q", name, verdict.reason, verdict.message)
			}
		}
	})
}
