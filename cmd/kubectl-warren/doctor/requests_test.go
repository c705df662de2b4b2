package doctor

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestSudoOnRequest(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	filed := func(reason v1alpha1.Reason, end time.Duration) []v1alpha1.SudoRequest {
		r := v1alpha1.SudoRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "payments", Name: "r"}}
		r.Status.Conditions = []metav1.Condition{{Type: "Active", Reason: string(reason)}}
		r.Status.EndTime = &metav1.Time{Time: now.Add(end)}
		return []v1alpha1.SudoRequest{r}
	}
	sound := []Check{passOf("policy/sudo-requests", "in force"), passOf("policy/temporary-sudo", "in force")}
	for name, c := range map[string]struct {
		facts   requestFacts
		status  Status
		message string
	}{
		"REQ-D1 doctor says nothing against a cluster without the component": {requestFacts{}, OK, "not installed"},
		"REQ-D1 doctor warns of tenants that set spec.sudoRequests without the component": {requestFacts{users: []string{"payments"}}, Warning,
			"spec.sudoRequests is set for payments"},
		"REQ-D2 doctor reports missing policies of the component as an error": {requestFacts{served: true}, Error,
			"the API server serves SudoRequests, but the policies"},
		"REQ-D2 doctor reports a policy that does not deny": {requestFacts{served: true, policies: []Check{sound[0],
			failOf("policy/temporary-sudo", "no binding of this policy denies", "")}}, Error,
			"policy/temporary-sudo: no binding of this policy denies: nothing is granted"},
		"in order": {requestFacts{served: true, policies: sound, requests: filed(v1alpha1.ReasonGranted, time.Minute)}, OK,
			"in force; 1 of 1 requests are granted now"},
		"a moment late": {requestFacts{served: true, policies: sound, requests: filed(v1alpha1.ReasonGranted, -20*time.Second)}, OK, "in force"},
		"REQ-D3 doctor reports a right that was not ended at its time as an error": {requestFacts{served: true, policies: sound,
			requests: filed(v1alpha1.ReasonGranted, -time.Minute)}, Error, "the time of these is over, and their right was not ended: payments/r"},
		"REQ-D3 doctor reports a right that finalizers hold as an error": {requestFacts{served: true, policies: sound,
			requests: filed(v1alpha1.ReasonNotEnded, -time.Minute)}, Error, "finalizers of others hold the ended right of payments/r"},
		"REQ-D3 doctor warns while the controller manager does not run timers": {requestFacts{served: true, policies: sound,
			requests: filed(v1alpha1.ReasonTimerMissing, 0)}, Warning, "the controller manager doesn't complete the timers of payments/r"},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.now = now
			check := c.facts.judge()
			if check.Status != c.status || !strings.HasPrefix(check.Message, c.message) || (check.Advice == "") != (c.status == OK) {
				t.Errorf("%+v", check)
			}
		})
	}
}
