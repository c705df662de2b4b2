package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Withdraw takes back everything that was granted to a tenant that is being deleted: sudo first, by an update, then the shared
// pairs, of which those without another owner are deleted, then the tenant's own objects. It may be called again at any time, and
// then writes only what is left. remaining names the objects that still exist because of a foreign finalizer, or because another
// tenant's worker is writing them, so that the caller calls again. Foreign objects under such names are never touched, and never in
// remaining.
func (r *Reconciler) Withdraw(ctx context.Context, tenant *v1alpha1.LNamespace) (remaining []string, err error) {
	r.leaving.recordTenant(tenant)
	objects := grants.For(tenant, planInput(r.View, tenant, tenant.Status.ServiceAccounts, r.Config, r.modes.currentMode()))
	actual, err := r.readActual(ctx, tenant, objects)
	if err != nil {
		return nil, fmt.Errorf("withdrawing the access of LNamespace %s: %w", tenant.Name, err)
	}
	plan := grants.PlanFor(tenant.Name, objects, grants.Withheld{Everything: true}, actual)
	done := r.steps.runSteps(ctx, tenant, plan, actual)
	r.announcer.announceChanges(tenant, false, done.changes, actual)
	for _, step := range plan.Steps {
		key := grants.KeyOf(step.Desired)
		if existing := actual[key]; step.Deed == grants.DeedRemove && existing != nil {
			remaining = append(remaining, key.String())
		}
	}
	for _, key := range done.busy {
		remaining = append(remaining, key.String())
	}
	if err := done.err(); err != nil {
		return remaining, fmt.Errorf("withdrawing the access of LNamespace %s: %w", tenant.Name, err)
	}
	r.groups.forgetTenant(tenant.Name)
	r.blocked.set(tenant.Name, nil)
	slices.Sort(remaining)
	return remaining, nil
}

// err joins all errors of the outcome but conflicts and busy objects, for a caller that treats them alike.
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
