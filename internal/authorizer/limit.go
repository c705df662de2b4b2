package authorizer

import (
	"context"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// questionsPerSecond is the rate, and questionsAtOnce the burst, of the questions that all admission requests cause. One request asks a
// handful; somebody who floods the webhooks must not flood the API server with SubjectAccessReviews.
const (
	questionsPerSecond = 200
	questionsAtOnce    = 1000
	// namespacesPerRequest bounds the namespaces that one admission request asks about one by one.
	namespacesPerRequest = 50
)

// errTooMany refuses a request whose questions would have to wait for too long; clients retry after one second.
var errTooMany = apierrors.NewTooManyRequests("the operator asks the authorizer about too many requests at the moment; try again", 1)

// limited is an Authorizer that asks no more often than its limiter allows.
type limited struct {
	Authorizer
	limiter *rate.Limiter
}

// Limit returns an Authorizer that limits the questions of all requests together. A question that can't be asked before its context
// ends is answered at once by an APIStatus of code 429.
func Limit(a Authorizer) Authorizer {
	return limited{a, rate.NewLimiter(questionsPerSecond, questionsAtOnce)}
}

// Review implements Authorizer.
func (l limited) Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	if err := l.limiter.Wait(ctx); err != nil {
		return false, errTooMany
	}
	return l.Authorizer.Review(ctx, spec)
}
