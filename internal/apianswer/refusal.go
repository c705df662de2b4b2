// Package apianswer interprets the API server's answers for all controllers: what an error means, whether a kind is still served,
// whether a cache can answer yet.
//
// A refusal is an answer that the same request will get again. An object is gone if it does not exist, or if its namespace does not exist
// or is being deleted.
package apianswer

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// tooLargeForEtcd is the text of the API server's answer if etcd does not store an object because of its size. Its code is 500.
const tooLargeForEtcd = "etcdserver: request is too large"

// IsRefusal reports whether the API server refuses a request because of its content (4xx, or an object too large for etcd), so that the
// same request will be refused again. Code 429 is no refusal: it reports that the server is busy.
func IsRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	if code >= 500 {
		return strings.Contains(err.Error(), tooLargeForEtcd)
	}
	return code >= 400 && !apierrors.IsTooManyRequests(err)
}

// IsQuotaExceeded reports whether a ResourceQuota refuses a write. Only the text of the API server's answer shows that.
func IsQuotaExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}

// IsGone reports whether a write failed because the object or its namespace does not exist, or because the namespace is being deleted.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
