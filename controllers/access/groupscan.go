package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// scanPage is the number of RoleBindings that one request of a look asks for.
const scanPage = 500

// scanUntilDone runs looks as long as the controller runs, and requeues the tenants that they concern.
func (g *groups) scanUntilDone() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go g.runLook(ctx, asking(queue))
		return nil
	})
}

// asking returns a function that adds a tenant to the controller's queue.
func asking(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) func(tenant string) {
	return func(tenant string) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: tenant}})
	}
}

// runLook makes one look for all tenants that have asked since the last one, and one every GroupScan. RoleBindings that stop a
// tenant's first grant are read again every GroupRetry, and when a watch reports that one has changed. Looks that tenants ask for
// take a tenth of the time at most, however often they ask.
func (g *groups) runLook(ctx context.Context, enqueue func(tenant string)) {
	full := time.NewTicker(g.timing.GroupScan)
	defer full.Stop()
	again := time.NewTicker(g.timing.GroupRetry)
	defer again.Stop()
	failing := g.backoff()
	var retry <-chan time.Time
	var rested time.Time // the earliest time of the next look that a tenant asks for
	for {
		look, scanning := g.scanBindings, true
		select {
		case <-ctx.Done():
			return
		case <-g.table.wake:
			if retry != nil {
				continue // the next try is due soon, and serves this request as well
			}
			if rest := time.Until(rested); rest > 0 {
				retry = time.After(rest)
				continue
			}
		case <-retry:
		case <-full.C:
		case <-again.C:
			look, scanning = g.recheckObstacles, false
		case <-g.recheck:
			look, scanning = g.recheckObstacles, false
		}
		began := time.Now()
		concerned, err := look(ctx)
		rested = time.Now().Add(9 * time.Since(began))
		for _, tenant := range concerned {
			enqueue(tenant)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			ctrllog.FromContext(ctx).Info("looking at RoleBindings; trying again", "error", err.Error())
			if scanning {
				retry = time.After(failing.Step())
			}
		case scanning:
			retry, failing = nil, g.backoff()
		}
	}
}

func (g *groups) backoff() *wait.Backoff {
	return &wait.Backoff{Duration: g.timing.RetryMin, Cap: g.timing.RetryMax, Factor: 2, Jitter: 0.2, Steps: 32}
}

// scanBindings lists all RoleBindings. It returns the tenants that waited for a look, and those for which something has changed.
func (g *groups) scanBindings(ctx context.Context) ([]string, error) {
	asked, needless := g.table.beginLook()
	if needless {
		return nil, nil // no tenant has a sudoer
	}
	found, err := g.listBindings(ctx)
	if err != nil {
		return g.table.noteFailedLook(asked, err), err
	}
	return g.table.noteLook(asked, found), nil
}

// listBindings returns the RoleBindings that name a group of sudoers, by group. The operator's own copies are left out, unless they
// were written for an earlier LNamespace of the same name.
func (g *groups) listBindings(ctx context.Context) (map[string][]holder, error) {
	found := map[string][]holder{}
	page := &rbacv1.RoleBindingList{}
	for {
		if err := g.live.List(ctx, page, client.Limit(scanPage), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("listing RoleBindings to find groups of sudoers: %w", err)
		}
		for i := range page.Items {
			binding := &page.Items[i]
			for _, group := range groupsOfSudoers(binding) {
				h := holderOf(binding)
				if grants.IsSudoersCopy(binding, group) {
					if h.leftover = g.ofAnother(ctx, binding); !h.leftover {
						continue
					}
				}
				found[group] = append(found[group], h)
			}
		}
		if page.Continue == "" {
			return found, nil
		}
		page = &rbacv1.RoleBindingList{ListMeta: page.ListMeta}
	}
}

// ofAnother says whether a copy was written for another LNamespace than the one that bears the tenant's name now.
func (g *groups) ofAnother(ctx context.Context, binding *rbacv1.RoleBinding) bool {
	tenant := &v1alpha1.LNamespace{}
	if err := g.ours.Get(ctx, client.ObjectKey{Name: binding.Labels[v1alpha1.LabelTenant]}, tenant); err != nil {
		return false // no LNamespace has the name, so the copy gives nobody anything
	}
	return binding.Annotations[v1alpha1.AnnotationLNamespaceUID] != string(tenant.UID)
}

// recheckObstacles reads again the RoleBindings that stop a tenant's first grant, and returns the tenants for which one of them is
// gone.
func (g *groups) recheckObstacles(ctx context.Context) ([]string, error) {
	var concerned []string
	var errs []error
	for tenant, holders := range g.table.inTheWay() {
		group := v1alpha1.SudoersGroup(tenant)
		for _, h := range holders {
			binding, err := readObject(ctx, g.live, h.key)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if binding != nil && slices.Contains(groupsOfSudoers(binding), group) && binding.GetUID() == h.uid {
				continue
			}
			g.table.dropHolder(group, h)
			concerned = append(concerned, tenant)
		}
	}
	return concerned, errors.Join(errs...)
}
