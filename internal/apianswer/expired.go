package apianswer

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Continuation returns the token with which an expired list goes on. 410 Expired means that etcd has compacted the resourceVersion of the
// list before the next page was requested. The token leads to the present objects after the last one that was read. expired is false for
// any other error, and for one without a token.
func Continuation(err error) (token string, expired bool) {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return "", false
	}
	token = status.Status().Continue
	return token, token != ""
}
