// Package impersonation asks the API server which forms of impersonation it knows.
package impersonation

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/grants"
)

// probeUser is a user without rights. The operator may impersonate it in the constrained form only, and only to ask for the
// version.
const probeUser = "warren:probe"

// NewProbe returns a function that asks the API server whether it knows constrained impersonation, which neither its version nor
// its feature gates tell. The caller, like the operator, must be allowed to impersonate probeUser in the constrained form and not
// in the legacy one.
func NewProbe(cfg *rest.Config) (func(context.Context) grants.Answer, error) {
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

// NewProbeOfAnybody is NewProbe for callers with any rights. Where the caller's rights make the API server's answer meaningless,
// the answer is Unknown.
func NewProbeOfAnybody(cfg *rest.Config, api client.Client) (func(context.Context) grants.Answer, error) {
	probe, err := NewProbe(cfg)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) grants.Answer {
		constrained, err := may(ctx, api, authenticationv1.GroupName, "impersonate:user-info")
		if err != nil || !constrained {
			return grants.Unknown // the API server would refuse both forms
		}
		if legacy, err := may(ctx, api, "", "impersonate"); err != nil || legacy {
			return grants.Unknown // the API server would allow the legacy form
		}
		return probe(ctx)
	}, nil
}

// may says whether the caller may use a verb on probeUser.
func may(ctx context.Context, api client.Client, group, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: "users", Name: probeUser, Verb: verb},
	}}
	err := api.Create(ctx, review)
	return review.Status.Allowed, err
}
