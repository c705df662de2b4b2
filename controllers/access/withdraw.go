package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Withdraw revokes everything that was granted to a tenant that is being deleted. It revokes sudo first: by an update
// of the sudo binding, and by the deletion of sole pairs. It then gives up the shared pairs, and deletes those without
// another owner. The tenant's own objects come last. It may be called again at any time, and then writes only what is
// left. The caller calls it again for the objects that remaining names: they still exist because of a foreign
// finalizer, or another tenant's worker is writing them. A foreign object with the name of an access object is never
// touched, and never in remaining.
func (r *Reconciler) Withdraw(ctx context.Context, tenant *v1alpha1.LNamespace) (remaining []string, err error) {
	// First, so that a pass of this tenant that is under way grants nothing from now on.
	r.leaving.recordTenant(tenant)
	objects := grants.For(tenant, planInput(r.View, tenant, r.Config))
	actual, err := r.readActual(ctx, tenant, objects)
	if err != nil {
		return nil, fmt.Errorf("withdrawing the access of LNamespace %s: %w", tenant.Name, err)
	}
	plan := grants.PlanFor(tenant.Name, objects, grants.Withheld{Everything: true}, actual)
	done := r.steps.runSteps(ctx, tenant, plan, actual)
	r.announcer.announceChanges(tenant, false, done.changes, actual)
	for _, step := range plan.Steps {
		key := grants.KeyOf(step.Desired)
		if existing := actual[key]; step.Verb == grants.VerbRemove && existing != nil {
			remaining = append(remaining, key.String())
		}
	}
	for _, key := range done.busy {
		remaining = append(remaining, key.String())
	}
	if err := done.err(); err != nil {
		return remaining, fmt.Errorf("withdrawing the access of LNamespace %s: %w", tenant.Name, err)
	}
	r.groups.dropTenant(tenant.Name)
	r.blocked.setKeys(tenant.Name, nil)
	slices.Sort(remaining)
	return remaining, nil
}

// err joins all errors of the outcome, also those of refused and contended objects, but not conflicts and busy objects.
func (o *outcome) err() error {
	errs := o.errs
	for _, message := range o.forbidden {
		errs = append(errs, errors.New(message))
	}
	for _, key := range o.contended {
		errs = append(errs, fmt.Errorf("writing %s: %w", key, errContended))
	}
	return errors.Join(errs...)
}
