package apianswer

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Continuation is where a list goes on whose next page was asked for so late that the list's own moment has been compacted away
// (410 Expired): the token that the answer carries gives what is there now, behind the last object that was read. false
// for any other answer.
func Continuation(err error) (token string, expired bool) {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return "", false
	}
	token = status.Status().Continue
	return token, token != ""
}
