package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestQueue(t *testing.T) {
	x := New(forest.Rules{})
	for name, labels := range map[string]map[string]string{
		"acme": {v1alpha1.LabelType: v1alpha1.TypeRoot}, "a1": {v1alpha1.LabelParent: "acme"}, "a2": {v1alpha1.LabelParent: "a1"},
		"a3":    {v1alpha1.LabelParent: "acme"},
		"other": {v1alpha1.LabelType: v1alpha1.TypeRoot}, "o1": {v1alpha1.LabelParent: "other"},
	} {
		x.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			ResourceVersion: "1", Labels: labels}})
	}
	x.MarkSynced()
	for name, test := range map[string]struct{ added, handedOut string }{
		"SUB-S15 of requests about many namespaces of some trees, trees take turns": {
			"acme a1 a2 a3 o1 other", "acme o1 a1 other a2 a3"},
		"SUB-S15 a namespace that is in no tree has a turn of its own": {"acme a1 x y a2", "acme x y a1 a2"},
		"SUB-S15 a request that comes twice is handled once":           {"a1 a2 a1 o1 a2", "a1 o1 a2"},
	} {
		t.Run(name, func(t *testing.T) {
			limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Millisecond)
			q := x.Queue(Named, nil)("test", limiter)
			defer q.ShutDown()
			for namespace := range strings.FieldsSeq(test.added) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
			}
			var got []string
			for q.Len() > 0 {
				request, _ := q.Get()
				got = append(got, request.Name)
				q.Done(request)
			}
			if order := strings.Join(got, " "); order != test.handedOut {
				t.Errorf("the order is %s, want %s", order, test.handedOut)
			}
		})
	}
	t.Run("HIER-R6 a request that has its turn to be placed comes before all others of its tree, though it is queued; other "+
		"trees keep their turns", func(t *testing.T) {
		hurried := ""
		q := x.Queue(Named, func(r reconcile.Request) bool { return r.Name == hurried })("test",
			workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Millisecond))
		defer q.ShutDown()
		var got []string
		for namespace := range strings.FieldsSeq("acme a1 a2 a3 o1") {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
		}
		hurried = "a3"
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a3"}})
		for q.Len() > 0 {
			request, _ := q.Get()
			got = append(got, request.Name)
			q.Done(request)
		}
		if order := strings.Join(got, " "); order != "a3 o1 acme a1 a2" {
			t.Errorf("the order is %s", order)
		}
	})
	t.Run("SUB-S15 a request that failed is handled again after its delay", func(t *testing.T) {
		q := x.Queue(InNamespace, nil)("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond,
			time.Millisecond))
		defer q.ShutDown()
		failed := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a1", Name: "x"}}
		q.AddRateLimited(failed)
		if got, _ := q.Get(); got != failed {
			t.Errorf("%v was handed out", got)
		}
	})
	t.Run("SUB-S15 no request is handled any more when the controller stops", func(t *testing.T) {
		q := x.Queue(Named, nil)("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Second))
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a1"}})
		q.ShutDown()
		if got, shutdown := q.Get(); !shutdown {
			t.Errorf("%v was handed out", got)
		}
	})
}

// If a source does not sync, controller-runtime prints it with %v. String keeps that from reading the view while it changes.
func TestNameInErrors(t *testing.T) {
	if got := fmt.Sprint(New(forest.Rules{}).Source(nil)); got != "view of the forest" {
		t.Error(got)
	}
}
