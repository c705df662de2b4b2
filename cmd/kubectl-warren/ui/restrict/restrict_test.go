package restrict_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/restrict"
)

type sent struct {
	requests int
	accept   []string
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	s.accept = r.Header.Values("Accept")
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

const (
	metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	whole    = "application/json, */*"
	subs     = "/apis/tenancy.warren.dev/v1alpha1/namespaces/payments/subnamespaces"
)

func TestTransport(t *testing.T) {
	for name, c := range map[string]struct {
		method, uri, accept string
		passes              bool
	}{
		"discovery":           {"GET", "/apis", whole, true},
		"a list of ours":      {"GET", subs, whole, true},
		"a watch of ours":     {"GET", subs + "?watch=true", whole, true},
		"RBAC":                {"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", whole, true},
		"Events":              {"GET", "/api/v1/namespaces/pay-web/events", whole, true},
		"quotas":              {"GET", "/api/v1/namespaces/pay-web/resourcequotas", whole, true},
		"metadata of Secrets": {"GET", "/api/v1/namespaces/pay-web/secrets", metadata, true},
		"WEB-W6 a list of whole Secrets is not sent":  {"GET", "/api/v1/namespaces/pay-web/secrets", whole, false},
		"WEB-W6 a read of a whole Secret is not sent": {"GET", "/api/v1/namespaces/pay-web/secrets/db", whole, false},
		"metadata of Secrets, else whole":             {"GET", "/api/v1/secrets", metadata + ",application/json", true},
		"WEB-W6 a list of Secrets as a table is not sent": {
			"GET", "/api/v1/secrets", "application/json;as=Table;g=meta.k8s.io;v=v1", false},
		"WEB-W6 a list of Secrets in no form is not sent":       {"GET", "/api/v1/secrets", "", false},
		"WEB-W6 a watch of Secrets by the old path is not sent": {"GET", "/api/v1/watch/secrets", whole, false},
		"WEB-W6 a read of a whole ConfigMap is not sent":        {"GET", "/api/v1/namespaces/warren-system/configmaps/x", whole, false},
		"a pod's logs":                                           {"GET", "/api/v1/namespaces/pay-web/pods/p/log", metadata, false},
		"a service by its proxy":                                 {"GET", "/api/v1/namespaces/pay-web/services/s/proxy/", metadata, false},
		"a review":                                               {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", whole, true},
		"a local review":                                         {"POST", "/apis/authorization.k8s.io/v1/namespaces/pay-web/localsubjectaccessreviews", whole, true},
		"a dry run":                                              {"POST", subs + "?dryRun=All", whole, true},
		"WEB-W7 a creation is not sent":                          {"POST", subs, whole, false},
		"WEB-W7 an update is not sent":                           {"PUT", subs + "/pay-x", whole, false},
		"WEB-W7 a patch is not sent":                             {"PATCH", "/apis/tenancy.warren.dev/v1alpha1/lnamespaces/payments", whole, false},
		"WEB-W7 a deletion is not sent":                          {"DELETE", subs + "/pay-x", whole, false},
		"WEB-W7 a deletion of all is not sent":                   {"DELETE", subs, whole, false},
		"WEB-W7 a creation with an empty dryRun is not sent":     {"POST", subs + "?dryRun=", whole, false},
		"WEB-W7 a creation with dryRun All and None is not sent": {"POST", subs + "?dryRun=All&dryRun=None", whole, false},
		"WEB-W7 a request for a ServiceAccount's token is not sent": {
			"POST", "/api/v1/namespaces/ci/serviceaccounts/deployer/token", whole, false},
		"WEB-W7 a subresource of a review is not sent": {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x/status", whole, false},
		"WEB-W7 a creation in another group with " +
			"the name of a review is not sent": {"POST", "/apis/tenancy.warren.dev/v1alpha1/selfsubjectaccessreviews", whole, false},
	} {
		t.Run(name, func(t *testing.T) {
			next := &sent{}
			r, err := http.NewRequestWithContext(t.Context(), c.method, "https://127.0.0.1"+c.uri, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if c.accept != "" {
				r.Header.Set("Accept", c.accept)
			}
			err = send(restrict.NewTransport(next, ""), r)
			var refused *restrict.RefusedError
			if c.passes != (err == nil) || c.passes != (next.requests == 1) || err != nil && !errors.As(err, &refused) {
				t.Errorf("passes: %v, sent: %d: %v", err == nil, next.requests, err)
			}
		})
	}
	t.Run("WEB-W6 a list of Secrets as metadata or whole is sent as metadata alone", func(t *testing.T) {
		next := &sent{}
		r, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1/api/v1/secrets", nil)
		r.Header.Set("Accept", metadata+",application/json")
		if err := send(restrict.NewTransport(next, ""), r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{metadata}, next.accept); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("WEB-W6 a list of whole Secrets is not sent to a server behind a path", func(t *testing.T) {
		for _, path := range []string{"/k8s/c1/api/v1/secrets", "/api/v1/secrets"} {
			r, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1"+path, nil)
			if err := send(restrict.NewTransport(&sent{}, "/k8s/c1"), r); err == nil {
				t.Errorf("%s was sent", path)
			}
		}
	})
	t.Run("a change of protocol", func(t *testing.T) {
		r, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1"+subs, nil)
		r.Header.Set("Upgrade", "websocket")
		if err := send(restrict.NewTransport(&sent{}, ""), r); err == nil {
			t.Error("it was sent")
		}
	})
}

// send sends a request, and ignores the body of the answer.
func send(transport http.RoundTripper, r *http.Request) error {
	answer, err := transport.RoundTrip(r)
	if answer != nil && answer.Body != nil {
		_ = answer.Body.Close()
	}
	return err
}

func TestConfirmed(t *testing.T) {
	confirmed := restrict.Change{Method: http.MethodPost, URI: subs + "?fieldManager=x", Body: []byte(`{"a":1}`)}
	for name, c := range map[string]struct {
		method, uri, body string
		passes            bool
	}{
		"WEB-C5 Run sends the stored request":       {"POST", subs + "?fieldManager=x", `{"a":1}`, true},
		"WEB-C5 Run does not send another method":   {"PUT", subs + "?fieldManager=x", `{"a":1}`, false},
		"WEB-C5 Run does not send another address":  {"POST", subs + "/y?fieldManager=x", `{"a":1}`, false},
		"WEB-C5 Run does not send another query":    {"POST", subs, `{"a":1}`, false},
		"WEB-C5 Run does not send another body":     {"POST", subs + "?fieldManager=x", `{"a":2}`, false},
		"WEB-C5 Run does not send a longer body":    {"POST", subs + "?fieldManager=x", `{"a":1} `, false},
		"WEB-C5 Run does not send an empty body":    {"POST", subs + "?fieldManager=x", ``, false},
		"reads go on while a change is confirmed":   {"GET", subs, ``, true},
		"reviews go on while a change is confirmed": {"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			next := &sent{}
			ctx := restrict.Confirm(context.Background(), confirmed)
			r, err := http.NewRequestWithContext(ctx, c.method, "https://127.0.0.1"+c.uri, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			err = send(restrict.NewTransport(next, ""), r)
			if c.passes != (err == nil && next.requests == 1) {
				t.Errorf("passes: %v, sent: %d: %v", err == nil, next.requests, err)
			}
		})
	}
}

func TestDropAnnotations(t *testing.T) {
	all := func() map[string]string {
		return map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"aHVudGVyMg=="}}`,
			"tenancy.warren.dev/source-hash":                   "x", "tenancy.warren.dev.evil.test/y": "hunter2", "example.com/team": "neco",
		}
	}
	for name, c := range map[string]struct {
		kind, version string
		want          map[string]string
	}{
		"WEB-W6 of a Secret, all " +
			"annotations except Warren's are dropped": {"Secret", "v1", map[string]string{"tenancy.warren.dev/source-hash": "x"}},
		"a Namespace": {"Namespace", "v1", map[string]string{"tenancy.warren.dev/source-hash": "x", "tenancy.warren.dev.evil.test/y": "hunter2", "example.com/team": "neco"}},
		"WEB-W6 of another group's Namespace, all annotations except Warren's are dropped": {
			"Namespace", "evil.test/v1", map[string]string{"tenancy.warren.dev/source-hash": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: c.kind, APIVersion: c.version}, ObjectMeta: metav1.ObjectMeta{Annotations: all()}}
			if diff := cmp.Diff(c.want, restrict.DropAnnotations(object).GetAnnotations()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// If an API server, or a program in its place, answers with a redirect, no request is sent to the new address.
func TestNoRedirectIsFollowed(t *testing.T) {
	t.Run("WEB-W10 the plugin follows no redirect of the API server, of any kind", func(t *testing.T) {
		var elsewhere atomic.Int64
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		defer other.Close()
		for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			server := httptest.NewServer(http.RedirectHandler(other.URL+"/api", status))
			client := &http.Client{Transport: restrict.NewTransport(http.DefaultTransport, "")}
			answer, err := client.Get(server.URL + "/api")
			var refused *restrict.RefusedError
			if err == nil || !errors.As(err, &refused) {
				_ = answer.Body.Close()
				t.Errorf("%d: %v", status, err)
			} else if !strings.Contains(err.Error(), "does not follow the redirect of GET /api") {
				t.Errorf("%d: the request was sent, but the message is %q", status, err)
			}
			server.Close()
		}
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("%d requests went elsewhere", n)
		}
	})
}
