package connection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// longestMessage bounds how much of an answer without a Status is read, in bytes.
const longestMessage = 2 << 10

// LeaveRetries is for the field WrapTransport of a rest.Config. Where an answer has the header Retry-After, client-go sends the request
// again, up to ten times, and its caller is blocked meanwhile. LeaveRetries makes client-go return the error of a refused write at once;
// the error still tells how long to wait. So a worker can do something else, and who tries again can wait longer each time. Reads and
// reviews are repeated by client-go as before.
func LeaveRetries(next http.RoundTripper) http.RoundTripper { return retryLeaver{next} }

type retryLeaver struct{ next http.RoundTripper }

// WrappedRoundTripper lets client-go look through the wrapper.
func (l retryLeaver) WrappedRoundTripper() http.RoundTripper { return l.next }

// RoundTrip implements http.RoundTripper.
func (l retryLeaver) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "reviews") {
		return answer, err
	}
	seconds := secondsToWait(answer)
	if seconds == 0 {
		return answer, nil
	}
	answer.Header.Del("Retry-After")
	if kind := answer.Header.Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "text/") {
		return answer, replaceText(answer, seconds)
	}
	return answer, nil // the API server has sent a Status, which has the seconds
}

// secondsToWait returns how long a refusal asks to wait; 0 if it doesn't ask, or in another unit.
func secondsToWait(answer *http.Response) int {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || answer.StatusCode < http.StatusBadRequest {
		return 0
	}
	return max(seconds, 0)
}

// replaceText replaces a text by the Status that client-go would make of it, with the seconds to wait.
func replaceText(answer *http.Response, seconds int) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestMessage))
	if err != nil {
		return fmt.Errorf("reading the answer %s: %w", answer.Status, err)
	}
	if err := answer.Body.Close(); err != nil {
		return fmt.Errorf("reading the answer %s: %w", answer.Status, err)
	}
	refusal := apierrors.NewGenericServerResponse(answer.StatusCode, strings.ToLower(answer.Request.Method), schema.GroupResource{}, "",
		strings.TrimSpace(string(text)), seconds, true).Status()
	refusal.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status, err := json.Marshal(refusal)
	if err != nil {
		return err
	}
	answer.Header.Set("Content-Type", "application/json")
	answer.Header.Del("Content-Length")
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(status)), int64(len(status))
	return nil
}
