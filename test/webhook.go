package test

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// UntilWebhookAnswers repeats a request that a webhook has not answered in time, so that nothing was stored: where many requests come at
// once on busy cores, an answer can take longer than the webhook's 5 s.
func UntilWebhookAnswers(request func() error) error {
	for {
		err := request()
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "context deadline exceeded") {
			return err
		}
	}
}
