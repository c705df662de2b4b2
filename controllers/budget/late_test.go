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
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/internal/view"
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
		k, all := new(newKnown()), []*v1alpha1.HierarchicalResourceQuota{}
		for i := range 500 {
			all = append(all, limitOf("web-"+strconv.Itoa(i), "team", "1", "1"))
		}
		k.changeLimits(func(t limits) { t.List(mirror.Everywhere, "1", all) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				k.changeLimits(func(t limits) { t.List(mirror.Everywhere, "1", all) })
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
	for name, tt := range map[string]struct {
		shown func(*Reconciler)
		want  bool
	}{
		"QUOTA-48 a share that was deleted before the answer to a write of it came is not taken for one in force": {
			func(r *Reconciler) { r.endShare(shareOf("1", "6", 3)) }, false},
		"QUOTA-48 a share that a list lacked before the answer to a write of it came is not taken for one in force": {
			func(r *Reconciler) { r.listShares("6") }, false},
		"QUOTA-48 a share that was made anew before the answer to a write of the old one came stays as it is": {
			func(r *Reconciler) { r.showShare(shareOf("2", "7", 3)) }, true},
		"QUOTA-67 an answer about the share of a namespace that was made anew since gives the new namespace no share": {
			func(r *Reconciler) { r.known.forgetNamespace("web", "6") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{})
			r.listShares("4", shareOf("1", "4", 3))
			flight, _ := r.known.begin("web")
			tt.shown(r)
			r.changeShares(func(t shares) []shareChange { return listed(t.Answered(flight, shareOf("1", "5", 3))) })
			if r.known.isCounted("web") != tt.want {
				t.Errorf("a share counts as in force: %v, want %v", !tt.want, tt.want)
			}
			if uid := r.known.shares.Mark(placeOfShare("web")).UID; tt.want && uid != "2" {
				t.Error("the share before counts in place of the present one")
			}
		})
	}
}

func TestWhatANamespaceUsesCountsAfterAReadFindsNoShare(t *testing.T) {
	t.Run("QUOTA-46 what a namespace uses counts after a read has found no share", func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		r.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
		r.Live = r.Client
		r.showShare(shareOf("1", "4", 3))
		// The patch is answered with 404: the namespace is being deleted, and its share went first.
		if err := r.writeShare(t.Context(), budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 8}}, ""); err != nil {
			t.Fatal(err)
		}
		if r.usedBy("web") != 3 || r.known.isCounted("web") {
			t.Errorf("%d pods count, want 3", r.usedBy("web"))
		}
	})
}

func TestALateAnswerToAReportBringsNoLimitBack(t *testing.T) {
	for name, tt := range map[string]struct {
		shown func(limits)
		want  types.UID
	}{
		"QUOTA-49 a HierarchicalResourceQuota that is deleted before the answer to a report on it " +
			"came limits nothing": {func(t limits) { t.End(limitOf("web", "team", "1", "3")) }, ""},
		"QUOTA-49 a HierarchicalResourceQuota that is made anew before the answer to a report on the old one came limits": {func(t limits) {
			t.End(limitOf("web", "team", "1", "3"))
			t.Show(limitOf("web", "team", "2", "4"))
		}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			r, of := New(Options{}), limitOf("web", "team", "1", "1")
			r.Client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, is client.Object, _ client.Patch,
					_ ...client.SubResourcePatchOption) error {
					is.SetResourceVersion("2")
					is.SetUID("1")
					r.known.changeLimits(tt.shown) // before the answer is there
					return nil
				},
			}).Build()
			r.known.changeLimits(func(t limits) { t.List(mirror.Everywhere, "1", []*v1alpha1.HierarchicalResourceQuota{of}) })
			if _, err := r.reportLimit(t.Context(), new(keepLimit(of)), verdict{reason: v1alpha1.ReasonEnforced}, time.Now()); err != nil {
				t.Fatal(err)
			}
			is := r.known.limits.Mark(mirror.Place{Namespace: "web", Name: "team"}).UID
			if is != tt.want {
				t.Errorf("the limit with uid %q counts, want that with %q", is, tt.want)
			}
		})
	}
}

func TestALimitThatDoesNotCountKeepsNoRightsBack(t *testing.T) {
	t.Run("QUOTA-50 a HierarchicalResourceQuota that is one too many in its namespace keeps no rights back", func(t *testing.T) {
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		all := []*v1alpha1.HierarchicalResourceQuota{limitOf("org", "z", "z", "1")}
		for i := range mostLimits {
			empty := limitOf("org", "a"+strconv.Itoa(i), strconv.Itoa(i), "1")
			empty.Spec.Hard = nil
			all = append(all, empty)
		}
		r.known.changeLimits(func(t limits) { t.List(mirror.Everywhere, "1", all) })
		if r.AwaitsShare("web") {
			t.Error("rights wait for ever: the ninth limit of a namespace gives no share")
		}
		r.known.changeLimits(func(t limits) { t.End(limitOf("org", "a0", "0", "2")) })
		if !r.AwaitsShare("web") {
			t.Error("the limit counts now, and rights don't wait for the share")
		}
	})
}

func TestRightsWaitUntilLimitsAreKnown(t *testing.T) {
	t.Run("QUOTA-51 right after a start, new rights and copies wait until the HierarchicalResourceQuotas are known", func(t *testing.T) {
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		if !r.AwaitsShare("web") {
			t.Error("no watch has shown yet which limits there are, and rights don't wait")
		}
		r.known.changeLimits(func(t limits) { t.List(mirror.Everywhere, "1", nil) })
		if r.AwaitsShare("web") {
			t.Error("there is no limit, and rights wait")
		}
	})
}

func TestANamespaceWithoutItsParentCounts(t *testing.T) {
	t.Run("QUOTA-52 a namespace whose parent was deleted counts against the budget of its tree", func(t *testing.T) {
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		r.known.changeLimits(func(t limits) { t.Show(limitOf("org", "team", "1", "1")) })
		r.showShare(shareOf("1", "4", 3))
		r.View.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "web", UID: "uid-1", ResourceVersion: "2", Labels: map[string]string{v1alpha1.LabelParent: "gone"},
			Annotations: map[string]string{v1alpha1.AnnotationAncestry: "org/gone/web"}}})
		gathered := r.gatherTree(r.View.Snapshot(), "org", time.Now())
		if used := budget.SumUsed(gathered.limits, gathered.rows); used[0].Used["pods"] != 3 {
			t.Errorf("%d pods count, want 3: the tree could use its limit once more", used[0].Used["pods"])
		}
	})
}
