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

// Limits of all reviews of a Set together, in reviews a second, and how long one review may take. Reviews because of a
// hint have a limit of their own: a regular check can wait, but the loss of a right must show at once.
const (
	checksPerSecond = 20
	checksBurst     = 50
	hintsPerSecond  = 400
	hintsBurst      = 400
	reviewTimeout   = 10 * time.Second
	rulesAgain      = time.Hour // for this long no SelfSubjectRulesReview is made after one was refused or incomplete
)

// rights asks the API server what the Set's identity may do.
type rights struct {
	access  authorizationclient.SelfSubjectAccessReviewInterface
	rules   authorizationclient.SelfSubjectRulesReviewInterface
	checks  *rate.Limiter
	hints   *rate.Limiter
	metrics *metrics
	again   time.Duration // for this long no SelfSubjectAccessReview is made after one was refused

	mu            sync.Mutex
	accessRefused time.Time
	rulesRefused  time.Time
}

// rightsDecision is the result of reviews about one part.
type rightsDecision struct {
	missing   []string // list or watch or both, if they are denied; empty if none is
	cause     error    // the authorizer's reason for a denial, if it gave one
	partial   bool     // watch is denied, and list was not asked about
	uncertain bool     // an authorizer reported an error together with the denial, so the denial may be wrong
	err       error    // why no review could be made; the other fields are empty then
}

var errReviewsRefused = errors.New("access reviews are refused")

func newRights(c *clients, m *metrics, again time.Duration) *rights {
	return &rights{
		access: c.accessReviews, rules: c.rulesReviews, metrics: m, again: again,
		checks: rate.NewLimiter(checksPerSecond, checksBurst), hints: rate.NewLimiter(hintsPerSecond, hintsBurst),
	}
}

// rateLimiterFor returns the rate limiter of hints if urgent, else that of regular checks.
func (r *rights) rateLimiterFor(urgent bool) *rate.Limiter {
	if urgent {
		return r.hints
	}
	return r.checks
}

// askRightsOfPart asks for the rights that a part needs: watch, and then list. Unless all is set, list is asked about
// only if watch is allowed.
func (r *rights) askRightsOfPart(ctx context.Context, sel *selection, limiter *rate.Limiter, all bool) rightsDecision {
	var d rightsDecision
	for _, verb := range []string{"watch", "list"} {
		status, err := r.reviewAccessTo(ctx, sel, limiter, verb)
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

// reviewAccessTo asks whether the identity may use a verb on the objects that the part selects. The review names the
// selection's selectors, because an authorizer may allow a verb for one selector only.
func (r *rights) reviewAccessTo(ctx context.Context, sel *selection, limiter *rate.Limiter,
	verb string) (authorizationv1.SubjectAccessReviewStatus, error) {
	none := authorizationv1.SubjectAccessReviewStatus{}
	if r.isRefusedRecently(&r.accessRefused, r.again) {
		return none, errReviewsRefused
	}
	if err := limiter.Wait(ctx); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	selected := sel.withSelectors(metav1.ListOptions{})
	about := &authorizationv1.ResourceAttributes{
		Verb: verb, Group: sel.targetResource().Group, Version: sel.targetResource().Version, Resource: sel.targetResource().Resource,
		Namespace: sel.key.namespace, Name: sel.onlyName(),
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
		r.recordRefusal(&r.accessRefused, err)
		return none, err
	}
	r.metrics.reviews.WithLabelValues(map[bool]string{true: "allowed", false: "denied"}[answer.Status.Allowed]).Inc()
	return answer.Status, nil
}

// namespaceRules are all rules that hold for the identity in a namespace.
type namespaceRules struct {
	rules    []authorizationv1.ResourceRule
	complete bool // verbs that the rules don't allow are denied
}

// askNamespaceRules asks for all rights in a namespace by one SelfSubjectRulesReview. It returns nil where the review
// fails, or is not tried because one was refused or incomplete within rulesAgain.
func (r *rights) askNamespaceRules(ctx context.Context, namespace string, limiter *rate.Limiter) *namespaceRules {
	if r.isRefusedRecently(&r.rulesRefused, rulesAgain) || limiter.Wait(ctx) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	answer, err := r.rules.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		r.metrics.reviews.WithLabelValues("error").Inc()
		r.recordRefusal(&r.rulesRefused, err)
		return nil
	}
	r.metrics.reviews.WithLabelValues("rules").Inc()
	if answer.Status.Incomplete { // an authorizer that can't list its rules, such as a webhook, will not be able to soon
		r.mu.Lock()
		r.rulesRefused = time.Now()
		r.mu.Unlock()
	}
	return &namespaceRules{rules: answer.Status.ResourceRules, complete: !answer.Status.Incomplete && answer.Status.EvaluationError == ""}
}

// decideFromRules returns the decision that the rules allow about a part. known is false if n is nil, or if n is
// incomplete and doesn't allow list and watch. Then only a review of the part itself can decide.
func (n *namespaceRules) decideFromRules(sel *selection) (d rightsDecision, known bool) {
	if n == nil {
		return rightsDecision{}, false
	}
	for _, verb := range []string{"watch", "list"} {
		if !slices.ContainsFunc(n.rules, func(rule authorizationv1.ResourceRule) bool { return ruleAllowsVerb(rule, sel, verb) }) {
			d.missing = append(d.missing, verb)
		}
	}
	return d, n.complete || len(d.missing) == 0
}

func ruleAllowsVerb(rule authorizationv1.ResourceRule, sel *selection, verb string) bool {
	holds := func(allowed []string, wanted string) bool {
		return slices.Contains(allowed, wanted) || slices.Contains(allowed, "*")
	}
	// A rule with resourceNames allows the list and watch of objects of one name only.
	return holds(rule.Verbs, verb) && holds(rule.APIGroups, sel.targetResource().Group) &&
		holds(rule.Resources, sel.targetResource().Resource) &&
		(len(rule.ResourceNames) == 0 || sel.onlyName() != "" && slices.Contains(rule.ResourceNames, sel.onlyName()))
}

// recordRefusal sets *since to now if err reports that reviews of one kind are forbidden or not served.
func (r *rights) recordRefusal(since *time.Time, err error) {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		*since = time.Now()
	}
}

func (r *rights) isRefusedRecently(since *time.Time, again time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !since.IsZero() && time.Since(*since) < again
}
