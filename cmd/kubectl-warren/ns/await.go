package ns

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

const (
	// statusWaits is the exit status for a request that is stored, but not carried out.
	statusWaits = 2
	// answerPatience bounds the wait for the operator's answer to a request.
	answerPatience = 30 * time.Second
	// lookEvery is the time between two reads. The command polls, because a user may have the right to get an object and not to watch it.
	lookEvery = 300 * time.Millisecond
)

// await waits for the operator's answer to the request. It returns an error if the namespace doesn't have the place that was asked for.
func (p *placement) await(ctx context.Context, generation int64) error {
	patient, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	answer := fmt.Errorf("the operator has not answered within %s: is it running? kubectl warren doctor", answerPatience)
	err := wait.PollUntilContextCancel(patient, lookEvery, true, func(ctx context.Context) (done bool, err error) {
		hc, err := gather.ReadHierarchy(ctx, p.api, p.name)
		switch {
		case err != nil:
			return false, err
		case hc == nil:
			return false, fmt.Errorf("the HierarchyConfiguration that held the request was deleted")
		case hc.Status.ObservedGeneration < generation:
			return false, nil
		}
		answer = whyNotThere(hc)
		// For a moment, the answer may be older than the mark or than the label that made the parent a root.
		return answer == nil || p.marked == nil && !p.madeRoot, nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !wait.Interrupted(err) && patient.Err() == nil: // whether the request is carried out, or still stored, is not known
		return fmt.Errorf("waiting for the operator's answer to the request of namespace %s: %w", p.name, err)
	case answer == nil:
		return nil
	}
	return invocation.StatusError{Status: statusWaits, Err: fmt.Errorf("the request of namespace %s is stored, but not carried out: %w",
		p.name, answer)}
}

// whyNotThere returns why a namespace doesn't have the place that its HierarchyConfiguration asks for, or is halted in it; nil if all
// is well.
func whyNotThere(hc *v1alpha1.HierarchyConfiguration) error {
	applied := v1alpha1.FindCondition(hc.Status.Conditions, v1alpha1.ConditionParentApplied)
	halted := v1alpha1.FindCondition(hc.Status.Conditions, v1alpha1.ConditionHalted)
	switch {
	case applied == nil:
		return fmt.Errorf("the operator has not reported on the request yet")
	case applied.Status != metav1.ConditionTrue:
		return fmt.Errorf("%s: %s", applied.Reason, applied.Message)
	case halted != nil && halted.Status == metav1.ConditionTrue:
		return fmt.Errorf("%s: %s", halted.Reason, halted.Message)
	}
	return nil
}
