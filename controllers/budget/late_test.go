package budget

import (
	"context"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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

func limitOf(namespace, name, uid, version string) *v1alpha1.HierarchicalResourceQuota {
	limit := &v1alpha1.HierarchicalResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid),
		ResourceVersion: version}}
	limit.Spec.Hard = v1alpha1.Budget{"pods": resource.MustParse("5")}
	return limit
}

// treeOfWeb is the tree of org, in which web is.
func treeOfWeb() *view.View {
	v := view.New(forest.Rules{})
	for i, labels := range []map[string]string{{v1alpha1.LabelType: v1alpha1.TypeRoot}, {v1alpha1.LabelParent: "org"}} {
		v.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: []string{"org", "web"}[i], UID: types.UID("uid-" + strconv.Itoa(i)), ResourceVersion: "1", Labels: labels}})
	}
	return v
}

func shareOf(uid, version string, pods int64) *corev1.ResourceQuota {
	hard := corev1.ResourceList{"pods": resource.MustParse("9")}
	used := corev1.ResourceList{"pods": *resource.NewQuantity(pods, resource.DecimalSI)}
	meta := metav1.ObjectMeta{Namespace: "web", Name: budget.QuotaName, UID: types.UID(uid), ResourceVersion: version}
	return &corev1.ResourceQuota{ObjectMeta: meta,
		Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func TestNoLimitIsMissingWhileANewListIsTakenIn(t *testing.T) {
	t.Run("QUOTA-47 while a new list of HierarchicalResourceQuotas is taken in, no plan misses one of them", func(t *testing.T) {
		k, all := newKnown(), []*v1alpha1.HierarchicalResourceQuota{}
		for i := range 500 {
			all = append(all, limitOf("web-"+strconv.Itoa(i), "team", "1", "1"))
		}
		k.replaceLimits(all)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				k.replaceLimits(all)
			}
		}()
		for {
			select {
			case <-done:
				return
			default:
			}
			if !k.hasLimit("web-499") {
				t.Fatal("for a moment the namespace has no limit, so its share would be deleted")
			}
		}
	})
}

func TestALateAnswerBringsNoShareBack(t *testing.T) {
	t.Run("QUOTA-48 a share that was deleted before the answer to a write of it came is not taken for one in force", func(t *testing.T) {
		k := newKnown()
		k.takeQuota(shareOf("1", "4", 3))
		k.dropQuota(shareOf("1", "6", 3), true)
		if k.takeAnswer(shareOf("1", "5", 3)); k.isCounted("web") {
			t.Error("a share that the watch has shown to be deleted counts as in force, so nobody makes a new one")
		}
		if k.takeAnswer(shareOf("2", "7", 3)); !k.isCounted("web") {
			t.Error("a new share is not known")
		}
	})
	t.Run("QUOTA-48 a share that a list lacked before the answer to a write of it came is not taken for one in force", func(t *testing.T) {
		k := newKnown()
		k.takeQuota(shareOf("1", "4", 3))
		k.replaceQuotas("6", nil, func(string) bool { return true })
		if k.takeAnswer(shareOf("1", "5", 3)); k.isCounted("web") {
			t.Error("a share that is in no list counts as in force")
		}
	})
	t.Run("QUOTA-48 a share that was made anew before the answer to a write of the old one came stays as it is", func(t *testing.T) {
		k := newKnown()
		k.takeQuota(shareOf("1", "4", 3))
		k.takeQuota(shareOf("2", "7", 3))
		if k.takeAnswer(shareOf("1", "5", 3)); k.read("web").uid != "2" {
			t.Error("the share before counts in place of the present one")
		}
	})
}

func TestWhatANamespaceUsesCountsAfterAReadFindsNoShare(t *testing.T) {
	t.Run("QUOTA-46 what a namespace uses counts after a read has found no share", func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		r := New(Options{View: treeOfWeb()})
		r.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
		r.Live = r.Client
		r.known.takeQuota(shareOf("1", "4", 3))
		// The patch is answered with 404: the namespace is being deleted, and its share went first.
		if err := r.writeShare(t.Context(), budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 8}}); err != nil {
			t.Fatal(err)
		}
		if r.usedBy("web") != 3 || r.known.isCounted("web") {
			t.Errorf("%d pods count, want 3", r.usedBy("web"))
		}
	})
}

func TestALateAnswerToAReportBringsNoLimitBack(t *testing.T) {
	for name, tt := range map[string]struct {
		shown func(*known)
		want  types.UID
	}{
		"QUOTA-49 a HierarchicalResourceQuota that is deleted before the answer to a report on it " +
			"came limits nothing": {func(k *known) { k.dropLimit(limitOf("web", "team", "1", "3")) }, ""},
		"QUOTA-49 a HierarchicalResourceQuota that is made anew before the answer to a report on the old one came limits": {func(k *known) {
			k.dropLimit(limitOf("web", "team", "1", "3"))
			k.takeLimit(limitOf("web", "team", "2", "4"))
		}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			r, of := New(Options{}), limitOf("web", "team", "1", "1")
			r.Client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, is client.Object, _ client.Patch,
					_ ...client.SubResourcePatchOption) error {
					is.SetResourceVersion("2")
					tt.shown(&r.known) // before the answer is there
					return nil
				},
			}).Build()
			r.known.takeLimit(of)
			if _, err := r.reportLimit(t.Context(), of, verdict{reason: v1alpha1.ReasonEnforced}, time.Now()); err != nil {
				t.Fatal(err)
			}
			is := types.UID("")
			if limit := r.known.limits["web"]["team"]; limit != nil {
				is = limit.UID
			}
			if is != tt.want {
				t.Errorf("the limit with uid %q counts, want that with %q", is, tt.want)
			}
		})
	}
}

func TestALimitThatDoesNotCountKeepsNoRightsBack(t *testing.T) {
	t.Run("QUOTA-50 a HierarchicalResourceQuota that is one too many in its namespace keeps no rights back", func(t *testing.T) {
		r := New(Options{View: treeOfWeb()})
		for i := range mostLimits {
			empty := limitOf("org", "a"+strconv.Itoa(i), strconv.Itoa(i), "1")
			empty.Spec.Hard = nil
			r.known.takeLimit(empty)
		}
		r.known.takeLimit(limitOf("org", "z", "z", "1"))
		for i := range r.known.watches {
			r.known.watches[i] = watchset.Synced
		}
		if r.AwaitsShare("web") {
			t.Error("rights wait for ever: the ninth limit of a namespace gives no share")
		}
		r.known.dropLimit(limitOf("org", "a0", "0", "1"))
		if !r.AwaitsShare("web") {
			t.Error("the limit counts now, and rights don't wait for the share")
		}
	})
}

func TestRightsWaitUntilLimitsAreKnown(t *testing.T) {
	t.Run("QUOTA-51 right after a start, new rights and copies wait until the HierarchicalResourceQuotas are known", func(t *testing.T) {
		r := New(Options{View: treeOfWeb()})
		if !r.AwaitsShare("web") {
			t.Error("no watch has shown yet which limits there are, and rights don't wait")
		}
		r.known.watches[watchOfLimits] = watchset.Synced
		if r.AwaitsShare("web") {
			t.Error("there is no limit, and rights wait")
		}
	})
}

func TestANamespaceWithoutItsParentCounts(t *testing.T) {
	t.Run("QUOTA-52 a namespace whose parent was deleted counts against the budget of its tree", func(t *testing.T) {
		r := New(Options{View: treeOfWeb()})
		r.known.takeLimit(limitOf("org", "team", "1", "1"))
		r.known.takeQuota(shareOf("1", "4", 3))
		r.View.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "web", UID: "uid-1", ResourceVersion: "2", Labels: map[string]string{v1alpha1.LabelParent: "gone"},
			Annotations: map[string]string{v1alpha1.AnnotationAncestry: "org/gone/web"}}})
		gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
		if used := budget.SumUsed(gathered.limits, gathered.rows); used[0].Used["pods"] != 3 {
			t.Errorf("%d pods count, want 3: the tree could use its limit once more", used[0].Used["pods"])
		}
	})
}
