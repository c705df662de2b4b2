// Package apianswer interprets the API server's answers for all controllers: what an error means, whether a kind is still served,
// whether a cache can answer yet.
//
// A refusal is an answer that the same request will get again. A gone object is one that is deleted or being deleted.
package apianswer

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsRefusal reports whether the API server refuses a request because of its content (4xx), so that the same request will be refused
// again. Code 429 is no refusal: it reports that the server is busy.
func IsRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err)
}

// IsQuotaExceeded reports whether a ResourceQuota refuses a write. The API server's answer says so in its text alone.
func IsQuotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}

// IsGone reports whether a write failed because the object, or its namespace, is deleted or being deleted.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
