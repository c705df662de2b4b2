package budget_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/budget"
)

// within fails the test if do takes seconds: Kubernetes' own arithmetic takes hours here.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s is still being calculated", what)
	}
}

func TestLongExponentsAreNotCalculated(t *testing.T) {
	t.Run("QUOTA-110 an Event whose amount has an exponent of ten digits counts as a refusal of a unit, and occupies no replica", func(
		t *testing.T) {
		for _, text := range []string{"1e1000000000", "1e-1000000000", "-1E+1000000000", "1.5e1000000000", "12345678901234567890e1000000000"} {
			within(t, text, func() {
				message := "exceeded quota: " + budget.QuotaName + ", requested: pods=" + text + ", used: pods=0"
				if is := budget.ParseRefusal(message, budget.Amounts{pods: 5}); is[pods] != 1 {
					t.Errorf("%s is read as %v", text, is)
				}
			})
		}
	})
	t.Run("QUOTA-111 a HierarchicalResourceQuota with such an amount that is stored already is left out, and occupies no replica", func(
		t *testing.T) {
		for _, key := range []corev1.ResourceName{"memory", pods, cpu} {
			within(t, string(key), func() {
				vast := resource.MustParse("1e1000000000")
				amounts, problems := budget.Limited(v1alpha1.Budget{key: vast})
				if len(amounts) != 0 || len(problems) != 1 {
					t.Errorf("%s: %v, %q", key, amounts, problems)
				}
				if is := budget.AmountsOf(corev1.ResourceList{key: vast})[key]; is < math.MaxInt64/1024 {
					t.Errorf("%s counts as %d", key, is)
				}
			})
		}
	})
}
