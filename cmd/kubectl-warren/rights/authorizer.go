package rights

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rightDecision is an answer, and the API server's reason where it gave one.
type rightDecision struct {
	answer Answer
	reason string
}

// review is a way to ask the API server's authorizer.
type review struct {
	kind   string // the resource to create, which the caller may have no right to
	object client.Object
	status *authorizationv1.SubjectAccessReviewStatus
}

// asker asks the API server's authorizer, with the caller's rights. Its only state is the report's memory.
type asker struct {
	read *reader
}

// askWhetherMay reports whether an identity may do something: by the API server's authorizer, else by the RBAC objects
// that can be read.
func (a *asker) askWhetherMay(ctx context.Context, id Identity, q Question) (rightDecision, error) {
	ways, err := a.reviewsForQuestion(ctx, id, q)
	if err != nil {
		return rightDecision{}, err
	}
	for _, way := range ways {
		if _, barred := a.read.memory.barred.findRemembered(way.kind); barred {
			continue
		}
		err := a.read.api.Create(ctx, way.object)
		switch {
		case err == nil && way.status.Allowed:
			return rightDecision{Yes, way.status.Reason}, nil
		case err == nil:
			return rightDecision{No, way.status.Reason}, nil
		case !a.read.refused(err):
			return rightDecision{}, fmt.Errorf("ask the API server whether a subject may %s: %w", q, err)
		}
		a.read.memory.barred.rememberValue(way.kind, true)
	}
	a.read.memory.unread.recordGap("create subjectaccessreviews")
	return a.decideByRules(ctx, id, q)
}

// reviewsForQuestion returns the reviews that can answer the question, to be tried in order: SubjectAccessReview,
// LocalSubjectAccessReview (which a namespace's admin may create) and, about the caller, SelfSubjectAccessReview.
func (a *asker) reviewsForQuestion(ctx context.Context, id Identity, q Question) ([]review, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: id.User, Groups: id.Groups,
		ResourceAttributes: q.resourceAttributes()}
	anybody := &authorizationv1.SubjectAccessReview{Spec: spec}
	ways := []review{{"subjectaccessreviews", anybody, &anybody.Status}}
	if q.Namespace != "" {
		local := &authorizationv1.LocalSubjectAccessReview{Spec: spec}
		local.Namespace = q.Namespace
		ways = append(ways, review{"localsubjectaccessreviews in " + q.Namespace, local, &local.Status})
	}
	me, err := a.read.readCaller(ctx)
	if err == nil && id.equalsIdentity(me) {
		self := q.selfReview()
		ways = append(ways, review{"selfsubjectaccessreviews", self, &self.Status})
	}
	return ways, err
}

// decideByRules returns what the API server's RBAC authorizer would answer, as far as the caller may read the RBAC
// objects.
func (a *asker) decideByRules(ctx context.Context, id Identity, q Question) (rightDecision, error) {
	if slices.Contains(id.Groups, user.SystemPrivilegedGroup) {
		return rightDecision{Yes, "group " + user.SystemPrivilegedGroup + " may do everything"}, nil
	}
	all, err := a.read.bindingsHolding(ctx, q.Namespace)
	switch {
	case err != nil:
		return rightDecision{}, err
	case len(all.thoseGranting(q, id)) > 0:
		return rightDecision{answer: Yes}, nil
	case all.partial:
		return rightDecision{answer: Unknown}, nil
	}
	return rightDecision{answer: No}, nil
}

// findAllowingBindings returns the bindings that allow the request to an identity; if the caller can read none, the
// authorizer's reason. It returns nothing if v, the decision, is not yes.
func (a *asker) findAllowingBindings(ctx context.Context, id Identity, q Question, v rightDecision) ([]Via, error) {
	if v.answer != Yes {
		return nil, nil
	}
	all, err := a.read.bindingsHolding(ctx, q.Namespace)
	if err != nil {
		return nil, err
	}
	return bindingsOrReason(all.thoseGranting(q, id), v), nil
}

func bindingsOrReason(found []Via, v rightDecision) []Via {
	switch {
	case len(found) > 0:
		return found
	case v.reason != "":
		return []Via{{Reason: v.reason}}
	}
	return []Via{{Reason: "the API server's authorizer, without a reason"}}
}
