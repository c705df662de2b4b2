package budget

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
	"github.com/warren-tenancy/warren/internal/view"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// limited returns the operator of tenant org, whose manager is mia. Of its 9 pods, namespace web has all as its share, and uses 3.
func limited(t *testing.T) *Reconciler {
	t.Helper()
	r := blindness(t, watchset.Status{State: watchset.Synced})
	r.sinkOfLimits().Replace("", "9", nil)
	(&view.Feed{View: r.View}).TakeTenant(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "org", UID: "tenant"},
		Spec: v1alpha1.LNamespaceSpec{Managers: []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "mia"}},
			Limits: &v1alpha1.Limits{Hard: v1alpha1.Budget{"pods": resource.MustParse("9")}}}})
	return r
}

// refuse records that web was refused an object that needs so many pods, and reconciles. It returns the share of web after that.
func (r *Reconciler) refuse(t *testing.T, pods int64) *corev1.ResourceQuota {
	t.Helper()
	needed := budget.Amounts{"pods": pods}.List()
	if _, refused := r.known.takeRefusal("web", budget.FormatRefusal(needed, needed, needed), time.Now()); !refused {
		t.Fatal("the Event counts as no refusal")
	}
	if _, err := r.Reconcile(t.Context(), requestFor("org")); err != nil {
		t.Fatal(err)
	}
	is := &corev1.ResourceQuota{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: budget.QuotaName}, is); err != nil {
		t.Fatal(err)
	}
	return is
}

func TestAShareTellsWhyItCannotGrow(t *testing.T) {
	const full = "pods: tenant org had used 3 of 9 when 7 was needed: delete something, or ask a manager (User mia) or a cluster admin to " +
		"raise spec.limits.hard"
	t.Run("QUOTA-75 the share of a namespace that needs more than is free tells which limit lacks it, and who can help", func(t *testing.T) {
		if got := limited(t).refuse(t, 7).Annotations[v1alpha1.AnnotationLacking]; got != full {
			t.Errorf("got  %q\nwant %q", got, full)
		}
	})
	t.Run("QUOTA-102 each write of a share tells, for each resource, of the limit above it that has least free", func(t *testing.T) {
		told := budget.ReadTold(limited(t).refuse(t, 7).Annotations[v1alpha1.AnnotationLimits])
		if told == nil || told.Used.Pods().Value() != 3 || told.Hard.Pods().Value() != 9 || told.At.IsZero() {
			t.Errorf("got %+v", told)
		}
		row := &budget.Row{Under: []int{0, 1}}
		limits := []budget.Limit{{Hard: budget.Amounts{"pods": 9, "secrets": 5}}, {Hard: budget.Amounts{"pods": 8}}}
		used := []budget.Sum{{Used: budget.Amounts{"pods": 2}}, {Used: budget.Amounts{"pods": 2}}}
		told = budget.ReadTold(budget.Tell(row, limits, used, time.Now()))
		if told.Hard.Pods().Value() != 8 || !told.Hard["secrets"].Equal(resource.MustParse("5")) {
			t.Errorf("got %+v", told)
		}
	})
	t.Run("QUOTA-75 what a share tells is written once, and again at most every ten seconds, whatever is asked for", func(t *testing.T) {
		r := limited(t)
		before := r.refuse(t, 7).ResourceVersion
		for _, pods := range []int64{7, 8, 9} {
			if now := r.refuse(t, pods).ResourceVersion; now != before {
				t.Errorf("a request for %d pods has led to a write", pods)
			}
		}
	})
	t.Run("QUOTA-75 a share that changes no longer tells of a limit that lacked something", func(t *testing.T) {
		r := limited(t)
		r.refuse(t, 7)
		if err := r.writeShare(t.Context(), budget.Share{Namespace: "web", Hard: budget.Amounts{"pods": 10}}, ""); err != nil {
			t.Fatal(err)
		}
		if q := r.quota(); q.lacking != "" || q.spec["pods"] != 10 {
			t.Errorf("%+v", q)
		}
	})
	t.Run("QUOTA-75 a namespace that needs no more than is free is told nothing", func(t *testing.T) {
		if got := limited(t).refuse(t, 6).Annotations; len(got) > 0 {
			t.Error(got)
		}
	})
}
