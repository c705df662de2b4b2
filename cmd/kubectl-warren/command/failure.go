package command

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// sentence says what went wrong, in one line, to the person who typed the command.
func sentence(err error) string {
	var request *url.Error
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case apierrors.IsUnauthorized(err):
		return "the API server doesn't know who you are (401 Unauthorized): log in again, or choose another --context"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the API server didn't answer in time: try a longer --request-timeout, or check --server and --context"
	case impersonationRefused(err):
		return "you may not impersonate whom --as and --as-group name: " + err.Error()
	case errors.As(err, &request):
		return "can't reach the API server " + host(request) + " (" + request.Err.Error() + "): check --server, --context and the kubeconfig"
	}
	// The API server calls the field <nil> where a rule is about an object as a whole.
	text := strings.ReplaceAll(err.Error(), "<nil>: Invalid value: ", "")
	return strings.Join(strings.Fields(text), " ")
}

// impersonationRefused says that the 403 is about --as and not about what was asked. Only its text tells: where the API server
// checks what may be done under another name, it answers about the resource that was asked for.
func impersonationRefused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate")
}

// refused says that the user lacks the right.
func refused(err error) bool { return apierrors.IsForbidden(err) && !impersonationRefused(err) }

// unavailable says that an optional thing can't be read: the user may not, or it isn't there, or its kind isn't.
func unavailable(err error) bool { return refused(err) || apierrors.IsNotFound(err) }

func host(request *url.Error) string {
	address, err := url.Parse(request.URL)
	if err != nil {
		return request.URL
	}
	return address.Scheme + "://" + address.Host
}
