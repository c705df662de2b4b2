package distribute

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// The API server stores no object larger than 1.5 MiB, and the rest of a ResourceDistribution may already take 1.43 MiB.
func TestStatusOfManyTargets(t *testing.T) {
	t.Run("DIST-D71 the largest possible status of 10,000 targets has at most 64 KiB; `make bench-targets` measures time and "+
		"memory", func(t *testing.T) {
		const limit = 64 << 10
		long := strings.Repeat("x", 253)
		template, err := ReadTemplate([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + long + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		d := &Distribution{
			Name: strings.Repeat("d", 63), Generation: 1, Template: template,
			Conflict: v1alpha1.ConflictSkip, Suspend: true,
		}
		verbs := []Verb{Create, Update, Adopt, Overwrite, Delete, Nothing, Nothing}
		review := Review{Checked: true, Admitted: "0123456789abcdef"}
		for i := range 10000 {
			one := Result{Namespace: fmt.Sprintf("n%062d", i), Action: Action{Verb: verbs[i%len(verbs)], State: Current}}
			switch i % 4 {
			case 0:
				one.State, one.Conflict = InConflict, &Obstacle{Reason: v1alpha1.ReasonNotIdentical, By: strings.Repeat("b", byLength)}
			case 1:
				one.State, one.Failure = Missing, &Failure{Reason: v1alpha1.ReasonRejected, Message: strings.Repeat(`"`, 4096), Final: true}
			}
			review.Results = append(review.Results, one)
		}
		review.Named = Named{}
		for i := range 600 {
			name := fmt.Sprintf("g%062d", i)
			review.NotFound, review.Replaced, review.Named[name] = append(review.NotFound, name), append(review.Replaced, name), digestOf(name)
			d.Targets.trees = append(d.Targets.trees, name)
		}
		for _, suspend := range []bool{true, false} {
			d.Suspend = suspend
			data, err := json.Marshal(d.Status(review, &v1alpha1.ResourceDistributionStatus{}))
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > limit {
				t.Errorf("suspended %t: %d bytes, limit %d", suspend, len(data), limit)
			}
			t.Logf("suspended %t: %d bytes", suspend, len(data))
		}
	})
}

func TestConflictNamesTheResource(t *testing.T) {
	t.Run("DIST-D101 for a NetworkPolicy in conflict, the message has the command `kubectl get networkpolicies.networking.k8s.io "+
		"-A`", func(t *testing.T) {
		d := distribution(t, v1alpha1.ConflictFail, v1alpha1.DriftIgnore, v1alpha1.DeletionDelete)
		r := Review{Checked: true, Resource: "networkpolicies.networking.k8s.io", Results: []Result{
			{Namespace: "d1", Action: Action{State: InConflict, Conflict: &Obstacle{Reason: v1alpha1.ReasonUnrelated}}}}}
		s := d.Status(r, &v1alpha1.ResourceDistributionStatus{})
		if got := v1alpha1.FindCondition(s.Conditions, v1alpha1.ConditionConflictFree).Message; !strings.Contains(got,
			"kubectl get networkpolicies.networking.k8s.io -A") {
			t.Error(got)
		}
	})
}

func TestRefusedRemoval(t *testing.T) {
	t.Run("DIST-D118 a copy that the API server refuses to delete: `failed` 0; failedNamespaces has the answer; Ready False/Failed, "+
		"Stalled", func(t *testing.T) {
		d := distribution(t, v1alpha1.ConflictFail, v1alpha1.DriftIgnore, v1alpha1.DeletionDelete)
		denied := &Failure{Reason: v1alpha1.ReasonForbidden, Message: "denied", Final: true}
		s := d.Status(Review{Checked: true, Results: []Result{
			{Namespace: "d1", Action: Action{State: Current}},
			{Namespace: "d2", Action: Action{Verb: Delete}, Failure: denied},
		}}, &v1alpha1.ResourceDistributionStatus{})
		want := []v1alpha1.FailedNamespace{{Name: "d2", Reason: v1alpha1.ReasonForbidden, Message: "denied"}}
		if s.Targets != 1 || s.Current != 1 || s.Failed != 0 || !slices.Equal(s.FailedNamespaces, want) {
			t.Errorf("%+v", s)
		}
		ready := v1alpha1.FindCondition(s.Conditions, v1alpha1.ConditionReady)
		if got := ready.Reason + ": " + ready.Message; got != "Failed: the copy in 1 namespace could not be removed; the first failure, in "+
			"namespace d2: denied" {
			t.Error(got)
		}
		if stalled := v1alpha1.FindCondition(s.Conditions, v1alpha1.ConditionStalled); stalled == nil {
			t.Error("not stalled")
		}
	})
}
