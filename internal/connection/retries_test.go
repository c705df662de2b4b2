package connection

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A write that is refused is tried only once, and its error has the time to wait. A read is repeated by client-go.
func TestLeaveRetries(t *testing.T) {
	const status = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Timeout","code":504,"details":{"retryAfterSeconds":1}}`
	for name, answer := range map[string]struct {
		kind, text string
		code       int
	}{
		"text":   {"text/plain", "Too many requests, please try again later.", http.StatusTooManyRequests},
		"status": {"application/json", status, http.StatusGatewayTimeout},
		"a Status without details, as from a server that ends": {"application/json",
			`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"ServiceUnavailable","code":503}`, http.StatusServiceUnavailable},
		"JSON that is no Status": {"application/json", `{"error":"busy"}`, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests[r.Method]++
				if r.Method == http.MethodGet && requests[r.Method] == 2 {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
					return
				}
				w.Header().Set("Content-Type", answer.kind)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(answer.code)
				_, _ = w.Write([]byte(answer.text))
			}))
			defer server.Close()
			cfg := &rest.Config{Host: server.URL}
			cfg.Wrap(LeaveRetries)
			maps := kubernetes.NewForConfigOrDie(cfg).CoreV1().ConfigMaps("n")

			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
			if seconds, says := apierrors.SuggestsClientDelay(err); requests[http.MethodPost] != 1 || !says || seconds != 1 {
				t.Errorf("%d requests, %v", requests[http.MethodPost], err)
			}
			if name == "text" && (!apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "too many requests")) {
				t.Errorf("got %v", err)
			}
			if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil || requests[http.MethodGet] != 2 {
				t.Errorf("%d reads: %v", requests[http.MethodGet], err)
			}
		})
	}
}

func TestIsLeft(t *testing.T) {
	for request, want := range map[string]bool{
		"POST /api/v1/namespaces/a/configmaps":                                    true,
		"POST /api/v1/namespaces":                                                 true,
		"PUT /api/v1/namespaces/events/secrets/events":                            true,
		"DELETE /api/v1/namespaces/code-reviews":                                  true,
		"PATCH /apis/example.com/v1/namespaces/a/reviews/b":                       true,
		"PUT /apis/tenancy.warren.dev/v1alpha1/lnamespaces/a/status":              true,
		"GET /api/v1/namespaces/a/configmaps":                                     false,
		"POST /api/v1/namespaces/a/events":                                        false,
		"PATCH /api/v1/namespaces/a/events/b":                                     false,
		"POST /apis/events.k8s.io/v1/namespaces/a/events":                         false,
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":                 false,
		"POST /apis/authentication.k8s.io/v1/tokenreviews":                        false,
		"PUT /apis/coordination.k8s.io/v1/namespaces/warren-system/leases/warren": false,
		"POST /apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings":       true,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := isLeft(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s: %t", request, got)
		}
	}
}
