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

// probeUser is nobody. The operator may become it in the constrained form alone, and only to ask for the version.
const probeUser = "warren:probe"

// unavailable is what keeps mode Constrained from being in force.
const unavailable = "the API server doesn't offer constrained impersonation, which needs Kubernetes 1.36 with feature gate ConstrainedImpersonation"

// newProbe returns a question to the API server that it answers with yes if it knows constrained impersonation: neither the
// version nor the feature gates would tell.
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
