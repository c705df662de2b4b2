package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// revocation is the longest time for which a sudoer who was taken off the list may still use sudo, in mode Legacy.
const revocation = time.Second

// sudoer is a sudoer of every tenant, so all tenants share one self pair.
const sudoer = "bob"

func tenantName(i int) string { return fmt.Sprintf("bench-t%03d", i) }

// accessBench measures what it costs to keep the rights of many tenants.
type accessBench struct{ *bench }

// measureAccess measures section 2.6 of docs/behaviour/access.md with many tenants: how soon a sudoer who was taken off the list is
// refused, and how many writes the operator makes after an edit and at rest. Then it measures sudo on request in the same tenants.
func measureAccess(ctx context.Context, on *bench) ([]result, error) {
	b := accessBench{on}
	tenants := 200
	if b.scale.small {
		tenants = 20
	}
	if err := b.startOperator(ctx); err != nil {
		return nil, err
	}
	if err := b.plantTenants(ctx, tenants); err != nil {
		return nil, err
	}
	var results []result
	for _, e := range budgetedEdits(tenants) {
		r, err := b.writesOf(ctx, e)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	rest, err := b.writesAtRest(ctx, tenants)
	if err != nil {
		return nil, err
	}
	taken, err := b.timeRevocations(ctx, tenants)
	if err != nil {
		return nil, err
	}
	asked, err := b.measureRequests(ctx, tenants, taken)
	return append(append(results, rest, judgeRevocations(taken)), asked...), err
}

// plantTenants makes tenants with a user, a manager and the one sudoer, and waits until the rights of all of them are granted.
func (b accessBench) plantTenants(ctx context.Context, tenants int) error {
	err := inParallel(ctx, tenants, func(ctx context.Context, i int) error {
		return b.Admin().Create(ctx, build.Tenant(tenantName(i)).Users("alice").Managers("mia").Sudoers(sudoer).Object())
	})
	if err != nil {
		return err
	}
	err = waitFor(ctx, "tenants that are Ready", func(ctx context.Context) (bool, error) {
		list := &v1alpha1.LNamespaceList{}
		err := b.Admin().List(ctx, list)
		ready := 0
		for _, lns := range list.Items {
			if c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
				ready++
			}
		}
		return ready == tenants, err
	})
	if err != nil {
		return err
	}
	return b.waitForIdle(ctx)
}

// edit is a change of one list of one tenant, and the change back.
type edit struct {
	id, name, list string
	budget         int
	// with and without are the list after the change and before it.
	with, without []v1alpha1.Subject
}

// budgetedEdits returns the edits that have a budget of writes.
func budgetedEdits(tenants int) []edit {
	one := func(subjects ...v1alpha1.Subject) []v1alpha1.Subject { return append(build.Users(sudoer), subjects...) }
	shared := func(s v1alpha1.Subject) string {
		return fmt.Sprintf("writes when a %s comes to or leaves the sudoers, of %d tenants", s.Kind, tenants)
	}
	carol, group := build.Users("carol")[0], build.Group("pay-oncall")
	return []edit{
		{"W1", "writes when somebody comes to or leaves the users", "users", 1, build.Users("alice", "dave"), build.Users("alice")},
		{"W2", "writes when somebody comes to or leaves the managers", "managers", 1, build.Users("mia", "dave"), build.Users("mia")},
		{"W3", shared(carol), "sudoers", 3, one(carol), one()},
		{"W4", shared(group), "sudoers", 2, one(group), one()},
	}
}

// writesOf makes an edit in several tenants, one after the other, and takes it back, so that a pair is made, shared, left and deleted.
// The result is the largest number of writes after one edit. Writes to a status don't count.
func (b accessBench) writesOf(ctx context.Context, e edit) (result, error) {
	const tenants = 3
	r := result{id: e.id, counted: true}
	most, list := 0, ""
	for _, subjects := range [][]v1alpha1.Subject{e.with, e.without} {
		for i := range tenants {
			mark, err := b.Mark(ctx)
			if err != nil {
				return r, err
			}
			if err := b.setList(ctx, tenantName(i), e.list, subjects); err != nil {
				return r, err
			}
			if err := b.waitForReport(ctx, tenantName(i)); err != nil {
				return r, err
			}
			all, err := b.Writes(ctx, mark)
			if err != nil {
				return r, err
			}
			writes := slices.DeleteFunc(all, func(w audit.Request) bool { return w.Subresource == "status" })
			if len(writes) > most {
				most, list = len(writes), ""
				for _, w := range writes {
					list += "\n   " + w.String()
				}
			}
		}
	}
	r.text, r.passed = fmt.Sprintf("%s: %d budget %d", e.name, most, e.budget), most <= e.budget && most > 0
	if !r.passed {
		r.text += list + "\n  "
	}
	return r, nil
}

// setList replaces one list of a tenant.
func (b *bench) setList(ctx context.Context, tenant, list string, subjects []v1alpha1.Subject) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{list: subjects}})
	if err != nil {
		return err
	}
	return b.Admin().Patch(ctx, build.Tenant(tenant).Object(), client.RawPatch(types.MergePatchType, patch))
}

// waitForReport waits until the operator has reported on the last edit of a tenant, and is idle.
func (b accessBench) waitForReport(ctx context.Context, tenant string) error {
	if err := b.waitForAccess(ctx, tenant); err != nil {
		return err
	}
	return b.waitForIdle(ctx)
}

// waitForAccess waits until the operator has reported on the last edit of a tenant.
func (b accessBench) waitForAccess(ctx context.Context, tenant string) error {
	return waitFor(ctx, "a report on "+tenant, func(ctx context.Context) (bool, error) {
		lns := &v1alpha1.LNamespace{}
		if err := b.Admin().Get(ctx, client.ObjectKey{Name: tenant}, lns); err != nil {
			return false, err
		}
		c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady)
		return c != nil && c.ObservedGeneration == lns.Generation && c.Status == metav1.ConditionTrue, nil
	})
}

func (b accessBench) writesAtRest(ctx context.Context, tenants int) (result, error) {
	r := result{id: "W5", counted: true}
	mark, err := b.Mark(ctx)
	if err != nil {
		return r, err
	}
	select {
	case <-time.After(b.scale.idle):
	case <-ctx.Done():
		return r, ctx.Err()
	}
	writes, err := b.Writes(ctx, mark)
	r.text, r.passed = fmt.Sprintf("writes in %s at rest, %d tenants: %d budget 0", b.scale.idle, tenants, len(writes)), len(writes) == 0
	return r, err
}

// buildAsk returns a function that asks the API server, with sudo of a tenant.
func (b *bench) buildAsk(tenant string) func(context.Context) error {
	as := b.Sudo(sudoer, tenant)
	return func(ctx context.Context) error { return as.List(ctx, &corev1.PodList{}, client.InNamespace(tenant)) }
}

// timeRevocations takes the sudoer off the list of one tenant after the other, and asks with sudo until the answer is a refusal.
func (b accessBench) timeRevocations(ctx context.Context, tenants int) (all []time.Duration, err error) {
	for i := range tenants {
		tenant := tenantName(i)
		ask := b.buildAsk(tenant)
		if err := ask(ctx); err != nil {
			return nil, fmt.Errorf("sudo of %s before the sudoer is taken off: %w", tenant, err)
		}
		begin := time.Now()
		if err := b.setList(ctx, tenant, "sudoers", []v1alpha1.Subject{}); err != nil {
			return nil, err
		}
		if err := untilRefused(ctx, ask); err != nil {
			return nil, fmt.Errorf("sudo of %s after the sudoer was taken off: %w", tenant, err)
		}
		all = append(all, time.Since(begin))
	}
	return all, nil
}

func judgeRevocations(all []time.Duration) result {
	slowest := slices.Max(all)
	return result{id: "S1", passed: slowest < revocation,
		text: fmt.Sprintf("sudoer taken off until refused, %d tenants, one after the other: p50 %.0fms max %.0fms budget %.0fms",
			len(all), ms(medianOf(all)), ms(slowest), ms(revocation))}
}

// untilRefused asks again and again, without a pause, for a minute at most.
func untilRefused(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		switch err := ask(ctx); {
		case apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return err
		}
	}
}
