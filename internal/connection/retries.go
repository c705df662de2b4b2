package connection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// longestRefusal bounds how much of a refusal's body is read, in bytes: a Status is small.
const longestRefusal = 64 << 10

// LeaveRetries is for the field WrapTransport of a rest.Config. Where a refusal has the header Retry-After, client-go sends the request
// again, up to ten times, and its caller is blocked meanwhile. LeaveRetries makes client-go return the error of a refused write at once;
// the error still tells how long to wait. So the worker can do something else, and the caller can wait longer before each try. client-go
// still repeats reads, and the other requests that the operator itself would not repeat: see isLeft.
func LeaveRetries(next http.RoundTripper) http.RoundTripper { return retryLeaver{next} }

type retryLeaver struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go look through the wrapper.
func (l retryLeaver) WrappedRoundTripper() http.RoundTripper { return l.next }

// RoundTrip implements http.RoundTripper.
func (l retryLeaver) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err != nil || !isLeft(r) || answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < http.StatusInternalServerError {
		return answer, err
	}
	seconds, isNumber := readSeconds(answer)
	if !isNumber {
		return answer, nil
	}
	answer.Header.Del("Retry-After")
	if strings.Contains(answer.Header.Get("Content-Type"), "protobuf") {
		return answer, nil // the API server has encoded a Status that has the seconds: it takes the header from there
	}
	return answer, replaceBody(answer, r.Method, seconds)
}

// isLeft reports whether the operator itself repeats a request: it doesn't repeat reads, reviews, Events and writes of the Lease.
func isLeft(r *http.Request) bool {
	if r.Method == http.MethodGet {
		return false
	}
	switch part := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/"); {
	case part[0] == "apis" && len(part) > 1:
		return !slices.Contains([]string{"authorization.k8s.io", "authentication.k8s.io", "coordination.k8s.io", "events.k8s.io"}, part[1])
	default:
		return len(part) < 5 || part[4] != "events" // /api/v1/namespaces/NAMESPACE/events
	}
}

// readSeconds returns how long a refusal asks to wait; false if it doesn't ask, or not in seconds.
func readSeconds(answer *http.Response) (seconds int32, isNumber bool) {
	number, err := strconv.ParseInt(answer.Header.Get("Retry-After"), 10, 32)
	return int32(max(number, 0)), err == nil
}

// replaceBody puts the seconds into the Status of a refusal. A body that is no Status is replaced by the Status that client-go would make
// of it.
func replaceBody(answer *http.Response, method string, seconds int32) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, longestRefusal))
	if err != nil {
		return fmt.Errorf("reading the answer %s: %w", answer.Status, err)
	}
	if err := answer.Body.Close(); err != nil {
		return fmt.Errorf("reading the answer %s: %w", answer.Status, err)
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
		status = apierrors.NewGenericServerResponse(answer.StatusCode, method, schema.GroupResource{}, "", strings.TrimSpace(string(body)),
			int(seconds), true).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = max(status.Details.RetryAfterSeconds, seconds)
	if body, err = json.Marshal(status); err != nil {
		return err
	}
	answer.Header.Set("Content-Type", "application/json")
	answer.Header.Del("Content-Length")
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}
