package budget

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/internal/view"
)

// showShare applies what a watch shows of a share.
func (r *Reconciler) showShare(q *corev1.ResourceQuota) {
	r.known.changeShares(always, func(t shares) []shareChange { return listed(t.Show(q)) })
}

// endShare applies that a watch shows a share no longer.
func (r *Reconciler) endShare(q *corev1.ResourceQuota) {
	r.known.changeShares(always, func(t shares) []shareChange { return listed(t.End(q)) })
}

// listShares applies a list.
func (r *Reconciler) listShares(version string, all ...*corev1.ResourceQuota) {
	r.known.changeShares(always, func(t shares) []shareChange { return t.List(mirror.Everywhere, version, all) })
}

func always(string) bool { return true }

// quota returns what is known of the share of namespace web; nil if nothing is.
func (r *Reconciler) quota() *quota {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	return r.known.quotaOf("web")
}

// lossy is an API server that carries each patch out, shows it to the watch if isFast, and answers with failure unless that is nil.
func lossy(t *testing.T, failure *error, isFast bool) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := New(Options{})
	share := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: budget.QuotaName, UID: "1"}}
	share.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("4")}
	r.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(share).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
			if apierrors.IsTooManyRequests(*failure) {
				return *failure
			}
			is, patched := object.(*corev1.ResourceQuota), &corev1.ResourceQuota{}
			if data, err := patch.Data(object); err != nil || json.Unmarshal(data, patched) != nil {
				t.Fatal(string(data), err)
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil {
				return err
			}
			if !equality.Semantic.DeepEqual(is.Spec, patched.Spec) { // a real API server stores nothing if nothing changes
				if err := c.Patch(ctx, is, patch); err != nil {
					return err
				}
			}
			if isFast {
				r.showShare(is)
			}
			return *failure
		},
	}).Build()
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(share), share); err != nil {
		t.Fatal(err)
	}
	r.showShare(share)
	return r
}

func TestALostWriteCountsUntilItIsDecided(t *testing.T) {
	for name, isFast := range map[string]bool{
		"QUOTA-66 a write whose answer is lost counts as carried out until the answer to its repetition comes": false,
		"QUOTA-66 a write whose answer is lost is decided when the watch shows a newer version of the share":   true,
	} {
		t.Run(name, func(t *testing.T) {
			failure := errors.New("connection reset")
			r, share := lossy(t, &failure, isFast), budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 8}}
			if err := r.writeShare(t.Context(), share, ""); !errors.Is(err, failure) {
				t.Fatalf("got %v, want the lost answer", err)
			}
			if q := r.quota(); (q.lost == nil) != isFast || q.row().Spec["pods"] != 8 {
				t.Fatalf("%+v: the write counts as lost, or doesn't count", q)
			}
			failure = nil
			if err := r.writeShare(t.Context(), share, ""); err != nil {
				t.Fatal(err)
			}
			if q := r.quota(); q.lost != nil || q.failure != "" || q.spec["pods"] != 8 {
				t.Errorf("%+v waits for an answer for ever", q)
			}
		})
	}
}

func TestARefusalOfTheRepetitionSaysNothingAboutALostWrite(t *testing.T) {
	failure := errors.New("connection reset")
	r, share := lossy(t, &failure, false), budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 8}}
	_ = r.writeShare(t.Context(), share, "")
	failure = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests}}
	if err := r.writeShare(t.Context(), share, ""); !errors.Is(err, failure) {
		t.Fatalf("got %v, want the refusal", err)
	}
	if q := r.quota(); q.lost == nil {
		t.Errorf("%+v forgets a write that may be carried out yet", q)
	}
}

func TestWhoHasUsedUpWhatItGotCountsAsRefusedAgain(t *testing.T) {
	r := New(Options{})
	k := &r.known
	take := func(version string, share, used int64) {
		list := func(n int64) corev1.ResourceList { return budget.Amounts{"pods": n}.List() }
		meta := metav1.ObjectMeta{Namespace: "web", Name: budget.QuotaName, UID: "1", ResourceVersion: version}
		r.showShare(&corev1.ResourceQuota{ObjectMeta: meta,
			Spec:   corev1.ResourceQuotaSpec{Hard: list(share)},
			Status: corev1.ResourceQuotaStatus{Hard: list(share), Used: list(used)}})
	}
	isAgain := func() bool {
		gathered := &tree{refusals: map[string]budget.Refusal{}}
		k.addRefusal(gathered, "web", k.quotaOf("web"), time.Now())
		return gathered.refusals["web"].Again
	}
	take("1", 1, 1)
	requested := corev1.ResourceList{"pods": resource.MustParse("1")}
	if _, refused := k.takeRefusal("web", budget.FormatRefusal(requested, requested, requested), time.Now()); !refused || isAgain() {
		t.Fatal("the first refusal is none, or counts as a repetition")
	}
	if take("2", 15, 1); isAgain() {
		t.Error("it has used nothing of what it got")
	}
	if take("3", 15, 15); !isAgain() {
		t.Error("it has used up what it got")
	}
	if take("4", 30, 15); !isAgain() {
		t.Error("what it got since is forgotten")
	}
}

// usedBy returns how many pods of a namespace count; -1 if nothing is known.
func (r *Reconciler) usedBy(namespace string) int64 {
	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if is := r.known.quotaOf(namespace); is != nil {
		return is.used["pods"]
	}
	return -1
}

func TestShareThatIsDeleted(t *testing.T) {
	share := func(uid string, pods int64) *corev1.ResourceQuota { return shareOf(uid, uid, pods) }
	for name, drop := range map[string]func(*Reconciler){
		"QUOTA-46 what a namespace uses counts after its share is deleted, until it has a new one": func(r *Reconciler) {
			r.endShare(shareOf("1", "3", 4))
		},
		"QUOTA-46 what a namespace uses counts after a list lacks its share, until it has a new one": func(r *Reconciler) {
			r.listShares("2")
			r.listShares("3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{})
			r.showShare(share("1", 4))
			if drop(r); r.usedBy("web") != 4 || r.known.isCounted("web") {
				t.Errorf("%d pods count", r.usedBy("web"))
			}
			if r.showShare(share("4", 3)); r.usedBy("web") != 3 || !r.known.isCounted("web") {
				t.Errorf("after a new share, %d pods count", r.usedBy("web"))
			}
		})
	}
	t.Run("QUOTA-46 nothing of a namespace counts, and nothing is remembered, when it is gone", func(t *testing.T) {
		// No controller runs, as on a replica that doesn't lead.
		r := New(Options{View: treeOfWeb(), PatchNamespace: patchNothing})
		r.View.MarkSynced()
		r.followForest()
		r.showShare(share("1", 9))
		if _, refused := r.known.takeRefusal("web", "exceeded quota: "+budget.QuotaName+", requested: pods=1, used: pods=9, limited: pods=9",
			time.Now()); !refused {
			t.Fatal("no refusal")
		}
		r.endShare(shareOf("1", "2", 9))
		(&view.Feed{View: r.View}).DropNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-1",
			ResourceVersion: "2"}})
		if r.usedBy("web") != -1 || len(r.known.refusals) > 0 {
			t.Errorf("%d pods count; refusals %v", r.usedBy("web"), r.known.refusals)
		}
		r.showShare(share("5", 4))
		r.changeShares(func(t shares) []shareChange { return listed(t.End(shareOf("5", "6", 4))) })
		if r.usedBy("web") != -1 {
			t.Errorf("of a namespace that is gone, %d pods count", r.usedBy("web"))
		}
	})
}

func patchNothing(context.Context, *forest.Namespace, forest.Change) (string, error) { return "", nil }
