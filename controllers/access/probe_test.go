package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/internal/grants"
)

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		want   grants.Answer
	}{
		"ACC-C01 knows it":        {http.StatusOK, grants.Yes},
		"ACC-C01 doesn't know it": {http.StatusForbidden, grants.No},
		"ACC-C01 is out of order": {http.StatusInternalServerError, grants.Unknown},
		"has too much to do":      {http.StatusTooManyRequests, grants.Unknown},
		"knows nobody":            {http.StatusUnauthorized, grants.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" || r.Header.Get("Impersonate-User") != "warren:probe" || r.Header.Get("Authorization") != "Bearer ours" {
					t.Errorf("asked %s with %v", r.URL, r.Header)
				}
				w.WriteHeader(c.status)
			}))
			probe, err := newProbe(&rest.Config{Host: server.URL, BearerToken: "ours"})
			if err != nil {
				t.Fatal(err)
			}
			if got := probe(context.Background()); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			server.Close()
			if got := probe(context.Background()); got != grants.Unknown {
				t.Errorf("got %s from nobody, want %s", got, grants.Unknown)
			}
		})
	}
}
