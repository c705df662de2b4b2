package guard

import (
	"context"
	"fmt"
	"regexp"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admission "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/internal/manifests"
)

// named finds whom the matchCondition not-the-operator of policy warren-copy exempts.
var named = regexp.MustCompile(`^request\.userInfo\.username != '([^']+)'$`)

// CheckIdentity refuses to go on as somebody whom the policies don't name: they would take every write of ours for a
// tenant's. Without the policy, or where it can't be read, there is nothing to compare with.
func CheckIdentity(ctx context.Context, cfg *rest.Config) error {
	policies, err := admission.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making the client for policies: %w", err)
	}
	found, err := policies.ValidatingAdmissionPolicies().Get(ctx, manifests.Prefix+manifests.Copy, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil // the guard tells of it
	case err != nil:
		return fmt.Errorf("reading policy %s: %w", manifests.Prefix+manifests.Copy, err)
	}
	operator := operatorOf(found)
	if operator == "" {
		return nil
	}
	reviews, err := authentication.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making the client for reviews: %w", err)
	}
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking the API server who this is: %w; --allow-other-identity leaves the question out", err)
	}
	if self := review.Status.UserInfo.Username; self != operator {
		return fmt.Errorf("running as %q, but the policies name %q; use its token or --allow-other-identity", self, operator)
	}
	return nil
}

// operatorOf is the user whom a policy takes for the operator, or "".
func operatorOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	for _, c := range p.Spec.MatchConditions {
		if match := named.FindStringSubmatch(c.Expression); c.Name == manifests.NotTheOperator && match != nil {
			return match[1]
		}
	}
	return ""
}
