package sudo

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestRequestsAreCountedByReason(t *testing.T) {
	k := newKnown()
	file := func(name string, version string, reason v1alpha1.Reason) *v1alpha1.SudoRequest {
		r := &v1alpha1.SudoRequest{}
		r.ObjectMeta = metav1.ObjectMeta{Namespace: "payments", Name: name, UID: types.UID(name), ResourceVersion: version}
		if reason != "" {
			r.Status.Conditions = []metav1.Condition{{Type: "Active", Reason: string(reason)}}
		}
		return r
	}
	k.requests.List("", "5", []*v1alpha1.SudoRequest{
		file("a", "1", v1alpha1.ReasonPending), file("b", "2", v1alpha1.ReasonPending), file("c", "3", ""),
	})
	k.requests.Show(file("a", "6", v1alpha1.ReasonGranted))
	want := map[string]int{"Pending": 1, "Granted": 1, "": 1, "NotEnded": 0, "TimerMissing": 0, "PolicyMissing": 0}
	if diff := cmp.Diff(want, k.countReasons()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
