// Package authorizer asks the API server's authorizer what a user may do. Limit bounds the rate of questions, so that a flood of
// admission requests does not flood the API server. A webhook's question without an answer in time ends with an error.
package authorizer

import (
	"context"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// Authorizer reports whether the user of a SubjectAccessReview may do what the review asks for.
type Authorizer interface {
	Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (allowed bool, err error)
}

// reviews implements Authorizer by SubjectAccessReviews of the API server.
type reviews struct {
	client authorizationclient.SubjectAccessReviewInterface
}

// New returns the Authorizer of the API server that config reaches.
func New(config *rest.Config, http *http.Client) (Authorizer, error) {
	c, err := authorizationclient.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	return reviews{c.SubjectAccessReviews()}, nil
}

// Review implements Authorizer.
func (r reviews) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	review, err := r.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
