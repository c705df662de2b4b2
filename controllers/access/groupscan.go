package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/access"
)

// scanPage is how many RoleBindings one request of a look asks for.
const scanPage = 500

// scans looks at RoleBindings from the start of the controller to its end, and asks for the tenants that it concerns.
func (g *groups) scans() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go g.run(ctx, asking(queue))
		return nil
	})
}

// asking is how a source of the controller asks for a tenant.
func asking(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) func(tenant string) {
	return func(tenant string) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: tenant}})
	}
}

// run makes one look for all tenants that have asked meanwhile, and one every GroupScan. What stands in a tenant's way is
// looked at again every GroupRetry.
func (g *groups) run(ctx context.Context, enqueue func(tenant string)) {
	full := time.NewTicker(g.timing.GroupScan)
	defer full.Stop()
	again := time.NewTicker(g.timing.GroupRetry)
	defer again.Stop()
	failing := g.backoff()
	var retry <-chan time.Time
	for {
		look := g.scan
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
			if retry != nil {
				continue // the next try is due soon, and answers this one as well
			}
		case <-retry:
		case <-full.C:
		case <-again.C:
			look = g.recheck
		}
		concerned, err := look(ctx)
		for _, tenant := range concerned {
			enqueue(tenant)
		}
		if err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).Info("looking at RoleBindings; trying again", "error", err.Error())
			retry = time.After(failing.Step())
			continue
		}
		retry, failing = nil, g.backoff()
	}
}

func (g *groups) backoff() *wait.Backoff {
	return &wait.Backoff{Duration: g.timing.RetryMin, Cap: g.timing.RetryMax, Factor: 2, Jitter: 0.2, Steps: 32}
}

// scan lists all RoleBindings. It returns the tenants that waited for it, and those for which something has changed.
func (g *groups) scan(ctx context.Context) ([]string, error) {
	g.mu.Lock()
	asked := g.asked
	g.asked = map[string]bool{}
	needless := len(asked) == 0 && len(g.known) == 0
	g.mu.Unlock()
	if needless {
		return nil, nil // no tenant has a sudoer
	}

	found, err := g.list(ctx)

	g.mu.Lock()
	defer g.mu.Unlock()
	concerned := map[string]bool{}
	if err != nil {
		refused := apierrors.IsForbidden(err) && g.forbidden == ""
		for tenant := range asked {
			g.asked[tenant] = true
			concerned[tenant] = refused // so that they can say why they wait
		}
		if apierrors.IsForbidden(err) {
			g.forbidden = err.Error()
		}
		return names(concerned), err
	}
	g.forbidden = ""
	for tenant := range asked {
		g.known[tenant], concerned[tenant] = true, true
	}
	for tenant := range g.known {
		group := v1alpha1.SudoersGroup(tenant)
		if !slices.Equal(g.found[group], found[group]) {
			concerned[tenant] = true
		}
	}
	g.found = found
	return names(concerned), nil
}

// list finds the RoleBindings that name a group of sudoers, by group. The operator's own copies are left out: one in a
// namespace that has just left its tree goes by itself.
func (g *groups) list(ctx context.Context) (map[string][]holder, error) {
	found := map[string][]holder{}
	page := &rbacv1.RoleBindingList{}
	for {
		if err := g.live.List(ctx, page, client.Limit(scanPage), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("listing RoleBindings to find groups of sudoers: %w", err)
		}
		for i := range page.Items {
			binding := &page.Items[i]
			for _, group := range groupsOfSudoers(binding) {
				if !isCopyOfOurs(binding, group) {
					found[group] = append(found[group], holderOf(binding))
				}
			}
		}
		if page.Continue == "" {
			return found, nil
		}
		page = &rbacv1.RoleBindingList{ListMeta: page.ListMeta}
	}
}

func isCopyOfOurs(binding *rbacv1.RoleBinding, group string) bool {
	labels := binding.Labels
	return binding.Name == access.SudoersBinding && labels[v1alpha1.LabelInheritedFrom] != "" &&
		labels[v1alpha1.LabelAccess] == v1alpha1.AccessSudoers && v1alpha1.SudoersGroup(labels[v1alpha1.LabelTenant]) == group
}

// recheck looks again at the RoleBindings that stand in the way of a tenant, and returns the tenants that are rid of one.
func (g *groups) recheck(ctx context.Context) ([]string, error) {
	var concerned []string
	var errs []error
	for tenant, holders := range g.inTheWay() {
		group := v1alpha1.SudoersGroup(tenant)
		for _, h := range holders {
			binding, err := read(ctx, g.live, h.key)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if binding != nil && slices.Contains(groupsOfSudoers(binding), group) {
				continue
			}
			g.mu.Lock()
			g.found[group] = slices.DeleteFunc(slices.Clone(g.found[group]), func(other holder) bool { return other == h })
			g.mu.Unlock()
			concerned = append(concerned, tenant)
		}
	}
	return concerned, errors.Join(errs...)
}

// inTheWay lists by tenant the RoleBindings of its group outside of its tree.
func (g *groups) inTheWay() map[string][]holder {
	g.mu.Lock()
	defer g.mu.Unlock()
	result := map[string][]holder{}
	for tenant := range g.known {
		for _, h := range g.found[v1alpha1.SudoersGroup(tenant)] {
			if !g.forest.InTree(h.key.Namespace, tenant) {
				result[tenant] = append(result[tenant], h)
			}
		}
	}
	return result
}

// names lists the keys that are true.
func names(set map[string]bool) []string {
	var result []string
	for name, ok := range set {
		if ok {
			result = append(result, name)
		}
	}
	slices.Sort(result)
	return result
}
