package test

import (
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// UntilWebhookAnswers repeats a request that a webhook has not answered in time, so that nothing was stored: where many requests come at
// once on busy cores, an answer can take longer than the webhook's 5 s. After three minutes it returns the error.
func UntilWebhookAnswers(request func() error) error {
	for end := time.Now().Add(3 * time.Minute); ; {
		err := request()
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "context deadline exceeded") || time.Now().After(end) {
			return err
		}
	}
}
