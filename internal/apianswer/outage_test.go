package apianswer_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

func TestRetryAfterOutage(t *testing.T) {
	t.Run("SUB-S13 while the API server gives no answer for an hour, the wait before the next try grows to 30 s at most", func(t *testing.T) {
		limiter := apianswer.RetryAfterOutage()
		longest := limiter.When(reconcile.Request{})
		for range 50 { // an hour and more
			longest = max(longest, limiter.When(reconcile.Request{}))
		}
		if longest != apianswer.OutageRetryMax {
			t.Errorf("the longest wait is %s, want %s", longest, apianswer.OutageRetryMax)
		}
	})
}
