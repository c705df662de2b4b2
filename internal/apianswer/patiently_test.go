package apianswer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/internal/apianswer"
)

// A controller waits as long as the API server asks for, and goes by its rate limiter otherwise.
func TestPatiently(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		err, want error
		again     time.Duration
	}{
		"no error":         {},
		"an answer's time": {err: fmt.Errorf("writing: %w", apierrors.NewTooManyRequests("busy", 3)), again: 3 * time.Second},
		"no time is said":  {err: broken, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apianswer.Patiently(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, tc.err
			})).Reconcile(t.Context(), reconcile.Request{})
			if got.RequeueAfter != tc.again || !errors.Is(err, tc.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
