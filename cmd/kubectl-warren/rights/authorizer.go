package rights

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verdict is an answer, and the API server's reason where it gave one.
type verdict struct {
	answer Answer
	reason string
}

// review is a way to ask the API server's authorizer.
type review struct {
	kind   string // what a caller may be refused
	object client.Object
	status *authorizationv1.SubjectAccessReviewStatus
}

// asker asks the API server's authorizer, with the caller's rights. Its only state is the report's memory.
type asker struct {
	read *reader
}

// askWhetherMay says whether an identity may do something: by the API server's authorizer, else by the RBAC objects that can be read.
func (a *asker) askWhetherMay(ctx context.Context, id Identity, q Question) (verdict, error) {
	ways, err := a.reviewsOf(ctx, id, q)
	if err != nil {
		return verdict{}, err
	}
	for _, way := range ways {
		if _, barred := a.read.memory.barred.find(way.kind); barred {
			continue
		}
		err := a.read.api.Create(ctx, way.object)
		switch {
		case err == nil && way.status.Allowed:
			return verdict{Yes, way.status.Reason}, nil
		case err == nil:
			return verdict{No, way.status.Reason}, nil
		case !a.read.refused(err):
			return verdict{}, fmt.Errorf("ask whether one may %s: %w", q, err)
		}
		a.read.memory.barred.keep(way.kind, true)
	}
	a.read.memory.unread.note("create subjectaccessreviews")
	return a.byRules(ctx, id, q)
}

// reviewsOf returns the reviews that can answer the question, to be tried in order: SubjectAccessReview, LocalSubjectAccessReview
// (which a namespace's admin may create) and, about the caller, SelfSubjectAccessReview.
func (a *asker) reviewsOf(ctx context.Context, id Identity, q Question) ([]review, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: id.User, Groups: id.Groups, ResourceAttributes: q.attributes()}
	anybody := &authorizationv1.SubjectAccessReview{Spec: spec}
	ways := []review{{"subjectaccessreviews", anybody, &anybody.Status}}
	if q.Namespace != "" {
		local := &authorizationv1.LocalSubjectAccessReview{Spec: spec}
		local.Namespace = q.Namespace
		ways = append(ways, review{"localsubjectaccessreviews in " + q.Namespace, local, &local.Status})
	}
	me, err := a.read.readCaller(ctx)
	if err == nil && id.equal(me) {
		self := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: q.attributes()}}
		ways = append(ways, review{"selfsubjectaccessreviews", self, &self.Status})
	}
	return ways, err
}

// byRules returns what the API server's RBAC authorizer would answer, as far as the caller may read the RBAC objects.
func (a *asker) byRules(ctx context.Context, id Identity, q Question) (verdict, error) {
	if slices.Contains(id.Groups, user.SystemPrivilegedGroup) {
		return verdict{Yes, "group " + user.SystemPrivilegedGroup + " may do everything"}, nil
	}
	all, err := a.read.bindingsHolding(ctx, q.Namespace)
	switch {
	case err != nil:
		return verdict{}, err
	case len(all.thoseGranting(q, id)) > 0:
		return verdict{answer: Yes}, nil
	case all.partial:
		return verdict{answer: Unknown}, nil
	}
	return verdict{answer: No}, nil
}

// findReasons returns the bindings that allow the request to an identity; if the caller can read none, the authorizer's reason.
func (a *asker) findReasons(ctx context.Context, id Identity, q Question, v verdict) ([]Via, error) {
	if v.answer != Yes {
		return nil, nil
	}
	all, err := a.read.bindingsHolding(ctx, q.Namespace)
	if err != nil {
		return nil, err
	}
	return orReason(all.thoseGranting(q, id), v), nil
}

func orReason(found []Via, v verdict) []Via {
	switch {
	case len(found) > 0:
		return found
	case v.reason != "":
		return []Via{{Reason: v.reason}}
	}
	return []Via{{Reason: "the API server's authorizer, without a reason"}}
}
