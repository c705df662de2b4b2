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
	// statusWaits is the exit status for a request that is stored, but not carried out, or whose namespace is halted in
	// its new place.
	statusWaits = 2
	// answerPatience bounds the wait for the operator's answer to a request.
	answerPatience = 30 * time.Second
)

// waitForAnswer waits for the operator's answer to the request. It returns an error if the namespace doesn't have the
// place that was asked for.
func (p *placement) waitForAnswer(ctx context.Context, generation int64) error {
	patient, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	answer := p.notCarriedOut(fmt.Sprintf("the operator has not answered within %s: is it running? kubectl warren doctor", answerPatience))
	err := gather.PollUntil(patient, func(ctx context.Context) (done bool, err error) {
		hc, err := gather.ReadHierarchy(ctx, p.api, p.name)
		switch {
		case err != nil:
			return false, err
		case hc == nil:
			return false, fmt.Errorf("the HierarchyConfiguration that held the request was deleted")
		case hc.Status.ObservedGeneration < generation:
			return false, nil
		}
		answer = p.whyNotSettled(hc)
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
	return invocation.StatusError{Status: statusWaits, Err: answer}
}

func (p *placement) notCarriedOut(why string) error {
	return fmt.Errorf("the request of namespace %s is stored, but not carried out: %s", p.name, why)
}

// whyNotSettled returns why the namespace doesn't have the place that its HierarchyConfiguration asks for, or is halted
// in it; nil if all is well.
func (p *placement) whyNotSettled(hc *v1alpha1.HierarchyConfiguration) error {
	applied := v1alpha1.FindCondition(hc.Status.Conditions, v1alpha1.ConditionParentApplied)
	halted := v1alpha1.FindCondition(hc.Status.Conditions, v1alpha1.ConditionHalted)
	switch {
	case applied == nil:
		return p.notCarriedOut("the operator has not reported on it yet")
	case applied.Status != metav1.ConditionTrue:
		return p.notCarriedOut(applied.Reason + ": " + applied.Message)
	case halted != nil && halted.Status == metav1.ConditionTrue:
		return fmt.Errorf("namespace %s has the place that was asked for, but is halted there: %s: %s", p.name,
			halted.Reason, halted.Message)
	}
	return nil
}
