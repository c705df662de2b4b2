package sudo

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestTakeOverLooksAtAllRequests(t *testing.T) {
	t.Run("REQ-H6 an operator that takes over looks at each request that it has watched before, old ones too", func(t *testing.T) {
		over := &v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "over", UID: "1", ResourceVersion: "1"}}
		over.Status.Conditions = []metav1.Condition{{Type: "Active", Status: "False", Reason: string(v1alpha1.ReasonTimeOver)}}
		lost := &v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "gone", Name: "lost", UID: "2", ResourceVersion: "2"}}
		timer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-sudo", Name: "3", ResourceVersion: "3"}}

		r := New(Options{})
		r.sinkOfRequests().Replace("", "5", []client.Object{over, lost})
		r.known.timers.List("warren-sudo", "5", []*metav1.PartialObjectMetadata{timer})

		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(queue.ShutDown)
		if err := r.again.Start(t.Context(), queue); err != nil { // as this replica begins to lead
			t.Fatal(err)
		}
		var looked []string
		for queue.Len() > 0 {
			switch first, _ := queue.Get(); first {
			case reconcile.Request{}:
				if _, err := r.Reconcile(t.Context(), first); err != nil {
					t.Fatal(err)
				}
			default:
				looked = append(looked, first.String())
			}
		}
		slices.Sort(looked)
		if diff := cmp.Diff([]string{"gone/lost", "payments/over", "warren-sudo/3"}, looked); diff != "" {
			t.Errorf("looked at (-want +got):\n%s", diff)
		}
	})
}
