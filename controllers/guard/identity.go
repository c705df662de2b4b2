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

// named matches the expression in the matchCondition not-the-operator of policy warren-copy, and finds the user whom it
// exempts.
var named = regexp.MustCompile(`^request\.userInfo\.username != '([^']+)'$`)

// CheckIdentity returns an error if cfg's user is not the one that the policies take for the operator: they would treat
// every write of ours as a tenant's. It returns nil where policy warren-copy is missing, may not be read, or names no
// user.
func CheckIdentity(ctx context.Context, cfg *rest.Config) error {
	policies, err := admission.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("making the client for policies: %w", err)
	}
	found, err := policies.ValidatingAdmissionPolicies().Get(ctx, manifests.Prefix+manifests.Copy, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil // the guard reports it
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
		return fmt.Errorf("asking the API server for the user name of this process: %w; --allow-other-identity skips this check", err)
	}
	if self := review.Status.UserInfo.Username; self != operator {
		return fmt.Errorf("running as %q, but the policies name %q; use its token or --allow-other-identity", self, operator)
	}
	return nil
}

// operatorOf returns the user whom a policy takes for the operator, or "".
func operatorOf(p *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	for _, c := range p.Spec.MatchConditions {
		if match := named.FindStringSubmatch(c.Expression); c.Name == manifests.NotTheOperator && match != nil {
			return match[1]
		}
	}
	return ""
}
