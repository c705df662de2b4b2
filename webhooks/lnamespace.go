package webhooks

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// tenantValidator checks LNamespaces.
type tenantValidator struct {
	liveView
	ask               authorizer.Asker
	config            *config.OperatorConfiguration
	operatorNamespace string
}

func (v *tenantValidator) rulesForTenants() tenantRules {
	return tenantRules{v.config, v.operatorNamespace}
}

// ValidateCreate implements admission.Validator.
func (v *tenantValidator) ValidateCreate(ctx context.Context, lns *v1alpha1.LNamespace) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	s, err := v.snapshotWith(ctx, append([]string{lns.Name, lns.Spec.Template}, newAccountNamespaces(&v1alpha1.LNamespace{}, lns)...)...)
	if err != nil {
		return nil, err
	}
	if n := s.Namespace(lns.Name); n != nil && !n.Terminating && s.Tenant(lns.Name) != nil {
		return nil, apierrors.NewAlreadyExists(kindLNamespace.groupResource(), lns.Name) // as without a webhook
	}
	var f findings
	checkWithinSight(ctx, v.ask, user, nil, func(g *visibility) { f = checkNewTenant(s, lns, v.rulesForTenants(), g) })
	personal, err := v.checkCreatorRules(ctx, user, lns)
	if err != nil {
		return f.warnings, err
	}
	waited, err := refuseAwaitedRoot(ctx, v.ask, user, s, lns.Name)
	if err != nil {
		return f.warnings, err
	}
	f.addProblems(append(personal, waited...)...)
	return f.warnings, kindLNamespace.refusalOfProblems(lns.Name, f.problems)
}

// checkCreatorRules checks what depends on the user who creates the LNamespace: the billing and the number of
// LNamespaces. Neither limits cluster admins.
func (v *tenantValidator) checkCreatorRules(ctx context.Context, user authenticationv1.UserInfo,
	lns *v1alpha1.LNamespace) (field.ErrorList, error) {
	c := v.config
	var problems field.ErrorList
	if defaults := c.Billing.Defaults; len(defaults) > 0 && lns.Spec.Billing != nil {
		problems = append(problems, billingAllowed(*lns.Spec.Billing, matchingBillingDefaults(defaults, user.Username, user.Groups))...)
	}
	if most := c.Tenants.MaxPerCreator; most > 0 {
		s := v.view.Snapshot()
		who := forest.CountsFor(s, user.Username)
		has, err := v.countTenantsFor(ctx, s, who)
		if err != nil {
			return nil, err
		}
		problems = append(problems, checkTenantCount(who, has, most)...)
	}
	if len(problems) == 0 {
		return nil, nil
	}
	// Only a request that a rule would refuse costs a question to the authorizer.
	if yes, err := v.ask.IsClusterAdmin(ctx, user); yes || err != nil {
		return nil, err
	}
	return problems, nil
}

// countTenantsFor counts the LNamespaces that count for who (see forest.CountsFor). It reads from the API server, so
// that a user who creates many in a row gets hardly more than the limit. Of those created at the same moment, the
// reconciler holds the youngest back.
func (v *tenantValidator) countTenantsFor(ctx context.Context, s *forest.Snapshot, who string) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LNamespaceList"))
	if err := v.live.List(ctx, list); err != nil {
		return 0, readFailedError("the LNamespaces", err)
	}
	count := 0
	for i := range list.Items {
		if creator := list.Items[i].Annotations[v1alpha1.AnnotationCreator]; creator != "" && forest.CountsFor(s, creator) == who {
			count++
		}
	}
	return count, nil
}

// ValidateUpdate implements admission.Validator.
func (v *tenantValidator) ValidateUpdate(ctx context.Context, old, now *v1alpha1.LNamespace) (admission.Warnings, error) {
	s, err := v.snapshotWith(ctx, append([]string{now.Spec.Template}, newAccountNamespaces(old, now)...)...)
	if err != nil {
		return nil, err
	}
	f := checkChangedTenant(s, old, now, v.rulesForTenants())
	return f.warnings, kindLNamespace.refusalOfProblems(now.Name, f.problems)
}

// ValidateDelete implements admission.Validator.
func (v *tenantValidator) ValidateDelete(ctx context.Context, lns *v1alpha1.LNamespace) (admission.Warnings, error) {
	user, err := requestingUser(ctx)
	if err != nil {
		return nil, err
	}
	s := v.view.Snapshot().WithTenant(forest.TenantOf(lns))
	var f findings
	checkWithinSight(ctx, v.ask, user, []string{lns.Name}, func(g *visibility) { f = checkTenantDeletion(s, lns, g) })
	if len(f.problems) > 0 {
		if _, err := v.recheckDeletionLive(ctx, s, lns.Name, f); err != nil {
			return f.warnings, err
		}
	}
	return f.warnings, kindLNamespace.refusalOfProblems(lns.Name, f.problems)
}
