package authorizer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
)

// askTimeout bounds the time for the questions of one call of AskAll, IsClusterAdmin or May.
const askTimeout = 5 * time.Second

// reviewsTotal counts the questions to the authorizer by result: allowed, denied, error.
var reviewsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "warren_hierarchy_authority_reviews_total", Help: "Questions to the API server's authorizer about who may move a namespace; " +
		"result is allowed, denied or error.",
}, []string{"result"})

func init() { metrics.Registry.MustRegister(reviewsTotal) }

// errUnanswered refuses a request because the authorizer gave no answer.
var errUnanswered = apierrors.NewInternalError(errors.New("could not ask the authorizer"))

// Asker puts the questions of package authority to an Authorizer. Where the authorizer gives no answer, the error is an APIStatus
// that can be the answer to an admission request: code 500, or 429 where too many questions are asked.
type Asker struct {
	Authorizer Authorizer
	// HasHierarchy reads from the API server, not from a cache, whether a namespace has a HierarchyConfiguration.
	HasHierarchy func(ctx context.Context, namespace string) (bool, error)
}

// AskAll asks all questions at the same time, and equal questions only once. The answers are in the order of the questions.
func (a Asker) AskAll(ctx context.Context, user authenticationv1.UserInfo, questions []authority.Question) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	yes, errs := make([]bool, len(questions)), make([]error, len(questions))
	type right struct {
		authority.Right
		namespace string
	}
	first := map[right]int{}
	var group sync.WaitGroup
	for i, question := range questions {
		of := right{question.Right, question.Namespace}
		if _, asked := first[of]; asked {
			continue
		}
		first[of] = i
		group.Go(func() { yes[i], errs[i] = a.askOne(ctx, user, question) })
	}
	group.Wait()
	for i, question := range questions {
		yes[i] = yes[first[right{question.Right, question.Namespace}]]
	}
	return yes, unanswered(ctx, errors.Join(errs...))
}

// unanswered returns the error that answers a request whose questions to the authorizer ended with err; nil where err is nil.
func unanswered(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooMany):
		return errTooMany
	}
	log.FromContext(ctx).Error(err, "could not ask the authorizer")
	return errUnanswered
}

func (a Asker) askOne(ctx context.Context, user authenticationv1.UserInfo, q authority.Question) (bool, error) {
	switch q.Right {
	case authority.UpdateNamespaces:
		return a.reviewRequest(ctx, user, authorizationv1.ResourceAttributes{Verb: "update", Resource: "namespaces"})
	case authority.ChangeTenant:
		update := inGroup("update", "lnamespaces", "")
		update.Name = q.Namespace
		return a.mayOrAdministers(ctx, user, update)
	case authority.DoEverything:
		return a.mayOrAdministers(ctx, user, authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*", Namespace: q.Namespace})
	case authority.CreateNamespaces:
		return a.reviewRequest(ctx, user, authorizationv1.ResourceAttributes{Verb: "create", Resource: "namespaces"})
	case authority.CreateSubNamespaces:
		return a.reviewRequest(ctx, user, inGroup("create", "subnamespaces", q.Namespace))
	case authority.CreateHierarchy:
		return a.reviewRequest(ctx, user, inGroup("create", "hierarchyconfigurations", q.Namespace))
	}
	update := inGroup("update", "hierarchyconfigurations", q.Namespace)
	update.Name = v1alpha1.HierarchyConfigurationName
	if yes, err := a.reviewRequest(ctx, user, update); yes || err != nil {
		return yes, err
	}
	// The right to create the HierarchyConfiguration gives the same authority, but only while the namespace has none.
	found, err := a.HasHierarchy(ctx, q.Namespace)
	if err != nil || found {
		return false, err
	}
	return a.reviewRequest(ctx, user, inGroup("create", "hierarchyconfigurations", q.Namespace))
}

// mayOrAdministers asks whether user may make a request. If not, it asks whether user may update all namespaces, because that right
// includes the right to label them.
func (a Asker) mayOrAdministers(ctx context.Context, user authenticationv1.UserInfo,
	attributes authorizationv1.ResourceAttributes) (bool, error) {
	if yes, err := a.reviewRequest(ctx, user, attributes); yes || err != nil {
		return yes, err
	}
	return a.askOne(ctx, user, authority.OverAll)
}

// inGroup returns the attributes of a request for one of Warren's own resources.
func inGroup(verb, resource, namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.Domain, Resource: resource, Namespace: namespace}
}

// reviewRequest asks the authorizer whether user may make a request, and counts the answer.
func (a Asker) reviewRequest(ctx context.Context, user authenticationv1.UserInfo,
	attributes authorizationv1.ResourceAttributes) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attributes, User: user.Username, UID: user.UID, Groups: user.Groups,
		Extra: make(map[string]authorizationv1.ExtraValue, len(user.Extra)),
	}
	for key, value := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	allowed, err := a.Authorizer.Review(ctx, spec)
	result := "denied"
	switch {
	case err != nil:
		result = "error"
	case allowed:
		result = "allowed"
	}
	reviewsTotal.WithLabelValues(result).Inc()
	return allowed, err
}

// IsClusterAdmin reports whether the user may update every LNamespace.
func (a Asker) IsClusterAdmin(ctx context.Context, user authenticationv1.UserInfo) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	yes, err := a.reviewRequest(ctx, user, inGroup("update", "lnamespaces", ""))
	return yes, unanswered(ctx, err)
}

// HasAuthority reports whether the user has authority over all namespaces of the cluster, or over each of those named. For more than
// namespacesPerRequest namespaces, it asks only for authority over all.
func (a Asker) HasAuthority(ctx context.Context, user authenticationv1.UserInfo, namespaces []string) (bool, error) {
	if len(namespaces) > namespacesPerRequest {
		yes, err := a.AskAll(ctx, user, []authority.Question{authority.OverAll})
		return err == nil && yes[0], err
	}
	yes, err := a.AskAll(ctx, user, append(authority.OverEach(namespaces), authority.OverAll))
	if err != nil {
		return false, err
	}
	each, all := yes[:len(namespaces)], yes[len(namespaces)]
	return all || !slices.Contains(each, false), nil
}

// mostAtOnce bounds the questions about namespaces that are asked at the same time for one request.
const mostAtOnce = 16

// May reports, for each of namespaces, whether the user may make requests with verb for all objects of the resource. The namespace ""
// stands for all namespaces together.
func (a Asker) May(ctx context.Context, user authenticationv1.UserInfo, verb, group, resource string, namespaces []string) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	yes := make([]bool, len(namespaces))
	var asking errgroup.Group
	asking.SetLimit(mostAtOnce)
	for i, namespace := range namespaces {
		asking.Go(func() (err error) {
			yes[i], err = a.reviewRequest(ctx, user, authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource,
				Namespace: namespace})
			return err
		})
	}
	return yes, unanswered(ctx, asking.Wait())
}
