package watchset

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Limits of all reviews of a Set together, and how long one of them may take.
const (
	reviewsPerSecond = 20
	reviewsBurst     = 50
	reviewTimeout    = 10 * time.Second
)

// rights asks the server what its identity may do.
type rights struct {
	client  authorizationclient.SelfSubjectAccessReviewInterface
	limiter *rate.Limiter
	metrics *metrics
	again   time.Duration // so long after reviews were refused they are not asked for

	mu      sync.Mutex
	refused time.Time
}

// verdict is what reviews said. err says that they could not be had.
type rightsVerdict struct {
	missing []string
	cause   error
	err     error
}

var errReviewsRefused = errors.New("reviews are refused")

func newRights(c *clients, m *metrics, again time.Duration) *rights {
	return &rights{client: c.reviews, limiter: rate.NewLimiter(reviewsPerSecond, reviewsBurst), metrics: m, again: again}
}

// ask asks for the rights that a part needs: watch, and then list. Unless all is set, list is only asked for if watch is allowed.
func (r *rights) ask(ctx context.Context, p *part, all bool) rightsVerdict {
	var v rightsVerdict
	for _, verb := range []string{"watch", "list"} {
		allowed, reason, err := r.may(ctx, p, verb)
		if err != nil {
			return rightsVerdict{err: err}
		}
		if allowed {
			continue
		}
		v.missing = append(v.missing, verb)
		if reason != "" {
			v.cause = errors.New(reason)
		}
		if !all {
			break
		}
	}
	return v
}

func (r *rights) may(ctx context.Context, p *part, verb string) (allowed bool, reason string, err error) {
	if r.areRefused() {
		return false, "", errReviewsRefused
	}
	if err := r.limiter.Wait(ctx); err != nil {
		return false, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: p.key.resource.Group, Version: p.key.resource.Version, Resource: p.key.resource.Resource,
			Namespace: p.key.namespace, Name: p.key.name,
		},
	}}
	answer, err := r.client.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		r.metrics.reviews.WithLabelValues("error").Inc()
		r.noteRefusal(err)
		return false, "", err
	}
	result := map[bool]string{true: "allowed", false: "denied"}[answer.Status.Allowed]
	r.metrics.reviews.WithLabelValues(result).Inc()
	return answer.Status.Allowed, answer.Status.Reason, nil
}

func (r *rights) noteRefusal(err error) {
	if apierrors.IsForbidden(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.refused = time.Now()
	}
}

func (r *rights) areRefused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.refused.IsZero() && time.Since(r.refused) < r.again
}
