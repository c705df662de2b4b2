package access

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/internal/grants"
)

// probeUser is a user without rights. The operator may impersonate it in the constrained form only, and only to ask for the
// version.
const probeUser = "warren:probe"

// newProbe returns a function that asks the API server whether it offers constrained impersonation, because neither its version nor its
// feature gates show that. The user of cfg must be allowed, as the operator is, to impersonate probeUser in the constrained form and not
// in the legacy form.
func newProbe(cfg *rest.Config) (func(context.Context) grants.Answer, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: probeUser}
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the client that asks for constrained impersonation: %w", err)
	}
	return func(ctx context.Context) grants.Answer {
		var code int
		client.RESTClient().Get().AbsPath("/version").Timeout(5 * time.Second).MaxRetries(0).Do(ctx).StatusCode(&code)
		switch code {
		case http.StatusOK:
			return grants.Yes
		case http.StatusForbidden:
			return grants.No
		}
		return grants.Unknown
	}, nil
}
