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

// scanPage is how many RoleBindings one request of a look asks for.
const scanPage = 500

// scanUntilDone looks at RoleBindings from the start of the controller to its end, and asks for the tenants that it concerns.
func (g *groups) scanUntilDone() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go g.runLook(ctx, asking(queue))
		return nil
	})
}

// asking is how a source of the controller asks for a tenant.
func asking(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) func(tenant string) {
	return func(tenant string) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: tenant}})
	}
}

// runLook makes one look for all tenants that have asked meanwhile, and one every GroupScan. What stands in a tenant's way is
// looked at again every GroupRetry, and when a watch says that it has changed. Looks that tenants ask for take a tenth of the time at most, however often they ask.
func (g *groups) runLook(ctx context.Context, enqueue func(tenant string)) {
	full := time.NewTicker(g.timing.GroupScan)
	defer full.Stop()
	again := time.NewTicker(g.timing.GroupRetry)
	defer again.Stop()
	failing := g.backoff()
	var retry <-chan time.Time
	var rested time.Time // when the next look may begin
	for {
		look, scanning := g.scanBindings, true
		select {
		case <-ctx.Done():
			return
		case <-g.table.wake:
			if retry != nil {
				continue // the next try is due soon, and answers this one as well
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

// scanBindings lists all RoleBindings. It returns the tenants that waited for it, and those for which something has changed.
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

// listBindings finds the RoleBindings that name a group of sudoers, by group. The operator's own copies are left out, unless they are of
// an earlier LNamespace of the name.
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

// ofAnother says whether the LNamespace that has the name of a copy's tenant is not the one that the copy is of.
func (g *groups) ofAnother(ctx context.Context, binding *rbacv1.RoleBinding) bool {
	tenant := &v1alpha1.LNamespace{}
	if err := g.ours.Get(ctx, client.ObjectKey{Name: binding.Labels[v1alpha1.LabelTenant]}, tenant); err != nil {
		return false // there is none, whom it could give anything
	}
	return binding.Annotations[v1alpha1.AnnotationLNamespaceUID] != string(tenant.UID)
}

// recheckObstacles looks again at the RoleBindings that stand in the way of a tenant, and returns the tenants that are rid of one.
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
