package webhooks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Authorizer says whether a review's user may do what the review asks for.
type Authorizer interface {
	Review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (allowed bool, err error)
}

// reviews asks the API server.
type reviews struct {
	client authorizationclient.SubjectAccessReviewInterface
}

// NewReviews returns an Authorizer that asks the API server.
func NewReviews(config *rest.Config, http *http.Client) (Authorizer, error) {
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

// askTimeout is for all questions of one request.
const askTimeout = 5 * time.Second

// errUnanswered refuses a request about which the authorizer could not be asked.
var errUnanswered = apierrors.NewInternalError(errors.New("could not ask the authorizer"))

// asker puts the questions of package authority to the authorizer.
type asker struct {
	authorizer Authorizer
	live       client.Reader
}

// answers asks everything at once; the answers are in the order of the questions.
func (a asker) answers(ctx context.Context, user authenticationv1.UserInfo, questions []authority.Question) ([]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	yes, errs := make([]bool, len(questions)), make([]error, len(questions))
	var group sync.WaitGroup
	for i, question := range questions {
		group.Go(func() { yes[i], errs[i] = a.one(ctx, user, question) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		log.FromContext(ctx).Error(err, "could not ask the authorizer")
		return nil, errUnanswered
	}
	return yes, nil
}

// one asks one question.
func (a asker) one(ctx context.Context, user authenticationv1.UserInfo, q authority.Question) (bool, error) {
	switch q.Right {
	case authority.UpdateNamespaces:
		return a.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "update", Resource: "namespaces"})
	case authority.CreateNamespaces:
		return a.may(ctx, user, authorizationv1.ResourceAttributes{Verb: "create", Resource: "namespaces"})
	case authority.CreateSubNamespaces:
		return a.may(ctx, user, ours("create", "subnamespaces", q.Namespace))
	case authority.CreateHierarchy:
		return a.may(ctx, user, ours("create", "hierarchyconfigurations", q.Namespace))
	}
	update := ours("update", "hierarchyconfigurations", q.Namespace)
	update.Name = v1alpha1.HierarchyConfigurationName
	if yes, err := a.may(ctx, user, update); yes || err != nil {
		return yes, err
	}
	// Who may make the object has the same authority, but only as long as there is none.
	found, err := hierarchyOf(ctx, a.live, q.Namespace)
	if err != nil || found != nil {
		return false, err
	}
	return a.may(ctx, user, ours("create", "hierarchyconfigurations", q.Namespace))
}

func ours(verb, resource, namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verb, Group: v1alpha1.Domain, Resource: resource, Namespace: namespace}
}

func (a asker) may(ctx context.Context, user authenticationv1.UserInfo, attributes authorizationv1.ResourceAttributes) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &attributes, User: user.Username, UID: user.UID, Groups: user.Groups,
		Extra: make(map[string]authorizationv1.ExtraValue, len(user.Extra)),
	}
	for key, value := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(value)
	}
	allowed, err := a.authorizer.Review(ctx, spec)
	result := "denied"
	switch {
	case err != nil:
		result = "error"
	case allowed:
		result = "allowed"
	}
	authorityReviews.WithLabelValues(result).Inc()
	return allowed, err
}

// clusterAdmin says whether the user may update every LNamespace.
func (a asker) clusterAdmin(ctx context.Context, user authenticationv1.UserInfo) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	yes, err := a.may(ctx, user, ours("update", "lnamespaces", ""))
	if err != nil {
		log.FromContext(ctx).Error(err, "could not ask the authorizer")
		return false, errUnanswered
	}
	return yes, nil
}

// over says whether the user has authority over all namespaces, or over each of these.
func (a asker) over(ctx context.Context, user authenticationv1.UserInfo, namespaces []string) (bool, error) {
	yes, err := a.answers(ctx, user, append(authority.OverEach(namespaces), authority.OverAll))
	if err != nil {
		return false, err
	}
	each, all := yes[:len(namespaces)], yes[len(namespaces)]
	return all || !slices.Contains(each, false), nil
}

// waited refuses a name that namespaces wait for to whoever has no authority over them.
func (a asker) waited(ctx context.Context, user authenticationv1.UserInfo, s *forest.Snapshot, name string) (field.ErrorList, error) {
	waiting, why := authority.Waiting(s, name)
	if len(waiting) == 0 {
		return nil, nil
	}
	if yes, err := a.over(ctx, user, waiting); yes || err != nil {
		return nil, err
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), why)}, nil
}
