package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/live"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
)

func TestNamesInAddresses(t *testing.T) {
	follower, err := live.New(&rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &server{
		inv: &invocation.Invocation{Flags: genericclioptions.NewConfigFlags(false)}, settings: &settings{}, follower: follower,
		guard: protect.New(func(string) {}, time.Now),
	}
	v.templates = parseTemplates(v.settings)
	for _, path := range []string{"/tenants/a%1b%5D0;x%07", "/namespaces/a%1b%5D0;x", "/objects/a%1bb/secrets/x", "/a%1bb"} {
		t.Run("WEB-W12 a page that doesn't exist repeats no control character of its address: "+path, func(t *testing.T) {
			answer := httptest.NewRecorder()
			v.newHandler(t.Context()).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			if answer.Code != http.StatusNotFound || strings.ContainsAny(answer.Body.String(), "\x1b\x07") {
				t.Errorf("status %d, %q", answer.Code, answer.Body)
			}
		})
	}
}
