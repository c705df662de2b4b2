// Package failure says to the user of a kubectl plugin what went wrong between the plugin and the API server.
package failure

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// defaultServer is the API server that client-go asks if no kubeconfig names one.
const defaultServer = "http://localhost:8080"

// Describe describes what went wrong, in one line, to the person who typed the command.
func Describe(err error) string {
	var request *url.Error
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case apierrors.IsUnauthorized(err):
		return "the API server doesn't know who you are (401 Unauthorized): log in again, or choose another --context"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the API server didn't answer in time: try a longer --request-timeout, or check --server and --context"
	case ImpersonationRefused(err):
		return "you may not impersonate the user or group of --as and --as-group: " + err.Error()
	case errors.As(err, &request) && hostOf(request) == defaultServer:
		return "no API server is named: there is no kubeconfig, or its context names no cluster; set KUBECONFIG or --kubeconfig (kubectl " +
			"would ask " + defaultServer + ", and nothing answers there)"
	case errors.As(err, &request):
		return "can't reach the API server " + hostOf(request) + " (" + request.Err.Error() +
			"): check --server, --context and the kubeconfig"
	}
	// For a rule about the object as a whole, the API server's message has <nil> in place of a field's name.
	text := strings.ReplaceAll(err.Error(), "<nil>: Invalid value: ", "")
	return strings.Join(strings.Fields(text), " ")
}

// ImpersonationRefused reports whether a 403 is about --as and not about the request itself. Only the text of the 403
// shows that: with constrained impersonation, its other fields name the requested resource.
func ImpersonationRefused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate")
}

// Refused reports whether the error is a 403 for the request itself, not for --as.
func Refused(err error) bool { return apierrors.IsForbidden(err) && !ImpersonationRefused(err) }

// Unavailable reports whether an optional object can't be read: the user may not read it, or the API server answers
// 404, because it has no such object or doesn't serve the kind.
func Unavailable(err error) bool { return Refused(err) || apierrors.IsNotFound(err) }

// Unlistable reports whether objects can't be listed for a reason that another try doesn't change: the user may not list
// them, or the API server no longer serves the kind, or serves it without lists.
func Unlistable(err error) bool {
	return Unavailable(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// IsTransient reports whether the same read may succeed in a moment: the API server was not reached, for example while
// it restarts, or it answered with 429 or a status of 500 and above.
func IsTransient(err error) bool {
	var status apierrors.APIStatus
	var request *url.Error
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &status):
		return status.Status().Code == http.StatusTooManyRequests || status.Status().Code >= http.StatusInternalServerError
	}
	return errors.As(err, &request)
}

func hostOf(request *url.Error) string {
	address, err := url.Parse(request.URL)
	if err != nil {
		return request.URL
	}
	return address.Scheme + "://" + address.Host
}
