package watchset

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// Limits of all reviews of a Set together, in reviews a second, and how long one of them may take. Reviews that an event or Poke
// asks for have a limit of their own: a regular check can wait, a right that was just taken can't.
const (
	checksPerSecond = 20
	checksBurst     = 50
	hintsPerSecond  = 400
	hintsBurst      = 400
	reviewTimeout   = 10 * time.Second
	rulesAgain      = time.Hour // so long reviews of rules are not asked for where they were refused, or incomplete
)

// rights asks the server what its identity may do.
type rights struct {
	access  authorizationclient.SelfSubjectAccessReviewInterface
	rules   authorizationclient.SelfSubjectRulesReviewInterface
	checks  *rate.Limiter
	hints   *rate.Limiter
	metrics *metrics
	again   time.Duration // so long after reviews of access were refused they are not asked for

	mu            sync.Mutex
	accessRefused time.Time
	rulesRefused  time.Time
}

// rightsDecision is what reviews say of one part.
type rightsDecision struct {
	missing   []string // of list and watch; empty: both are allowed
	cause     error    // what the authorizer said beside its no
	partial   bool     // list was not asked for
	uncertain bool     // an authorizer reported an error beside its no, which may be wrong then
	err       error    // no review could be had
}

var errReviewsRefused = errors.New("reviews are refused")

func newRights(c *clients, m *metrics, again time.Duration) *rights {
	return &rights{
		access: c.accessReviews, rules: c.rulesReviews, metrics: m, again: again,
		checks: rate.NewLimiter(checksPerSecond, checksBurst), hints: rate.NewLimiter(hintsPerSecond, hintsBurst),
	}
}

// limiter is the one of regular checks, or of what somebody waits for.
func (r *rights) limiter(urgent bool) *rate.Limiter {
	if urgent {
		return r.hints
	}
	return r.checks
}

// ask asks for the rights that a part needs: watch, and then list. Unless all is set, list is only asked for if watch is allowed.
func (r *rights) ask(ctx context.Context, p *part, limiter *rate.Limiter, all bool) rightsDecision {
	var d rightsDecision
	for _, verb := range []string{"watch", "list"} {
		status, err := r.reviewAccess(ctx, p, limiter, verb)
		if err != nil {
			return rightsDecision{err: err}
		}
		if status.Allowed {
			continue
		}
		d.missing = append(d.missing, verb)
		d.uncertain = d.uncertain || status.EvaluationError != ""
		if status.Reason != "" {
			d.cause = errors.New(status.Reason)
		}
		if !all && verb == "watch" {
			d.partial = true
			break
		}
	}
	return d
}

// reviewAccess asks whether the identity may use a verb on all that the part selects. A right may hold for a selector only.
func (r *rights) reviewAccess(ctx context.Context, p *part, limiter *rate.Limiter, verb string) (authorizationv1.SubjectAccessReviewStatus, error) {
	none := authorizationv1.SubjectAccessReviewStatus{}
	if r.isRefused(&r.accessRefused, r.again) {
		return none, errReviewsRefused
	}
	if err := limiter.Wait(ctx); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	selected := p.selecting(metav1.ListOptions{})
	about := &authorizationv1.ResourceAttributes{
		Verb: verb, Group: p.key.resource.Group, Version: p.key.resource.Version, Resource: p.key.resource.Resource,
		Namespace: p.key.namespace, Name: p.key.name,
	}
	if selected.LabelSelector != "" {
		about.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: selected.LabelSelector}
	}
	if selected.FieldSelector != "" {
		about.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: selected.FieldSelector}
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: about}}
	answer, err := r.access.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		r.metrics.reviews.WithLabelValues("error").Inc()
		r.noteRefusal(&r.accessRefused, err)
		return none, err
	}
	r.metrics.reviews.WithLabelValues(map[bool]string{true: "allowed", false: "denied"}[answer.Status.Allowed]).Inc()
	return answer.Status, nil
}

// namespaceRules are all rules that hold for the identity in a namespace.
type namespaceRules struct {
	rules    []authorizationv1.ResourceRule
	complete bool // what they don't allow is denied
}

// askNamespace asks for all rights in a namespace at once. It returns nil where that can't be had.
func (r *rights) askNamespace(ctx context.Context, namespace string, limiter *rate.Limiter) *namespaceRules {
	if r.isRefused(&r.rulesRefused, rulesAgain) || limiter.Wait(ctx) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := r.rules.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		r.metrics.reviews.WithLabelValues("error").Inc()
		r.noteRefusal(&r.rulesRefused, err)
		return nil
	}
	r.metrics.reviews.WithLabelValues("rules").Inc()
	if answer.Status.Incomplete { // an authorizer that can't list its rules won't learn it soon
		r.mu.Lock()
		r.rulesRefused = time.Now()
		r.mu.Unlock()
	}
	return &namespaceRules{rules: answer.Status.ResourceRules, complete: !answer.Status.Incomplete && answer.Status.EvaluationError == ""}
}

// decide says what the rules say of a part; known is false where only a review of the part itself can tell.
func (n *namespaceRules) decide(p *part) (d rightsDecision, known bool) {
	if n == nil {
		return rightsDecision{}, false
	}
	for _, verb := range []string{"watch", "list"} {
		if !slices.ContainsFunc(n.rules, func(rule authorizationv1.ResourceRule) bool { return ruleAllows(rule, p, verb) }) {
			d.missing = append(d.missing, verb)
		}
	}
	return d, n.complete || len(d.missing) == 0
}

func ruleAllows(rule authorizationv1.ResourceRule, p *part, verb string) bool {
	holds := func(allowed []string, wanted string) bool {
		return slices.Contains(allowed, wanted) || slices.Contains(allowed, "*")
	}
	return holds(rule.Verbs, verb) && holds(rule.APIGroups, p.key.resource.Group) && holds(rule.Resources, p.key.resource.Resource) &&
		(len(rule.ResourceNames) == 0 || p.key.kind == objectScope && slices.Contains(rule.ResourceNames, p.key.name))
}

// noteRefusal remembers in since that reviews of one kind are forbidden, or not served.
func (r *rights) noteRefusal(since *time.Time, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		*since = time.Now()
	}
}

func (r *rights) isRefused(since *time.Time, again time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !since.IsZero() && time.Since(*since) < again
}
