package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/paging"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// scanPage is the number of bindings that one request of a scan asks for.
const scanPage = 500

// groups finds foreign bindings of the groups of sudoers: those that the operator didn't write for the present
// LNamespace. In mode Legacy, sudoers also get what their group is bound to already. So a foreign binding stops the
// tenant's first grant of sudo, unless grants.StopsGrant lets it pass, as in the tenant's own tree. A binding that is
// made after that grant stops nothing, because policy sudo-subjects lets only cluster admins bind these groups.
// status.sudoGrantedAt remembers the first grant.
//
// All bindings are listed before a tenant's first grant, in one scan for all tenants that wait when the scan begins.
// Scans are repeated every GroupRetry while foreign bindings of a tenant without its first grant exist. While there are
// none, nothing is read. If the first grant fails, by a conflict for example, it may come long after its scan. So a
// tenant whose scan found nothing waits for another scan when that one ended more than GroupRetry ago.
type groups struct {
	view    View
	timing  Timing
	live    client.Reader
	tenants client.Reader // LNamespaces, from the manager's cache
	loop    *requeue.Loop // runs reviewBindings
	// namesakes is told which bindings only have a name of the operator's. It may be nil.
	namesakes *namesakes
	again     requeue.Source[reconcile.Request]
	// restUntil is when the next review of bindings may begin. Only reviewBindings uses it.
	restUntil time.Time

	mu        sync.Mutex          // guards all below; no request is sent while it is held
	waiting   map[string]bool     // tenants that wait for a scan that has not begun yet
	found     map[string][]holder // by tenant that was never granted sudo: the bindings that the last scan found
	scanned   time.Time           // when the last scan that succeeded ended
	forbidden string              // the API server's message if it refused the last scan; else ""
}

// groupState describes what foreign bindings mean for a tenant's sudo.
type groupState struct {
	// inTheWay are foreign bindings that stop the tenant's first grant in mode Legacy.
	inTheWay []holder
	// pending reports that the scan before the tenant's first grant has not finished. At its end, the scan requeues the
	// tenant.
	pending bool
	// forbidden is the API server's message if it refuses scans to the operator; else "".
	forbidden string
}

// holder is a binding that names the group of a tenant's sudoers, and that the operator didn't write for this
// LNamespace.
type holder struct {
	key grants.Key
	uid types.UID // an Event on the binding needs it
	// leftover reports that the operator wrote the binding for an earlier LNamespace of the same name.
	leftover bool
}

func newGroups(view View, tenants, live client.Reader, timing Timing) *groups {
	g := &groups{view: view, tenants: tenants, live: live, timing: timing, waiting: map[string]bool{}, found: map[string][]holder{}}
	g.loop = &requeue.Loop{Name: "access-groups", Look: g.reviewBindings, RetryMin: timing.RetryMin, RetryMax: timing.RetryMax}
	return g
}

// decideGroupState returns what foreign bindings mean for the tenant's sudo, and requests a scan if its first grant
// needs one. desired is the binding that the tenant's sudoers are to have. actual are the objects that exist.
func (g *groups) decideGroupState(tenant *v1alpha1.LNamespace, desired grants.Object, actual grants.Actual) groupState {
	// Foreign bindings stop only a first grant: without sudoers, or after that grant, no scan is due.
	if len(grants.Subjects(desired)) == 0 || grants.WasGranted(tenant, actual) {
		g.dropTenant(tenant.Name)
		return groupState{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	holders, scanned := g.found[tenant.Name]
	// While a scan found bindings, it is repeated anyway.
	if !scanned || len(holders) == 0 && time.Since(g.scanned) > g.timing.GroupRetry {
		g.waiting[tenant.Name] = true
		g.loop.Now()
		return groupState{pending: true, forbidden: g.forbidden}
	}
	inTree := func(namespace string) bool { return g.view.InTree(namespace, tenant.Name) }
	return groupState{inTheWay: slices.DeleteFunc(slices.Clone(holders), func(h holder) bool {
		return !grants.StopsGrant(tenant.Name, h.key.Namespace, h.leftover, inTree)
	})}
}

// dropTenant drops what a scan found for the tenant, and whether the tenant waits for a scan.
func (g *groups) dropTenant(tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, tenant)
	delete(g.found, tenant)
}

// reviewBindings scans all bindings if a tenant needs that, and requeues the tenants concerned. After a scan comes a
// pause of nine times its duration, so that scans take about a tenth of the time. The pause is at most GroupRetry and,
// after an error, at least RetryMin.
func (g *groups) reviewBindings(ctx context.Context) (again time.Duration, err error) {
	if left := time.Until(g.restUntil); left > 0 {
		return left, nil
	}
	if !g.isScanNeeded() {
		return g.timing.GroupRetry, nil
	}
	began := time.Now()
	concerned, err := g.scanBindings(ctx)
	for _, tenant := range concerned {
		g.again.Add(requestFor(tenant))
	}
	rest := min(9*time.Since(began), g.timing.GroupRetry) // bounded, because a look may hang in an outage
	if err != nil {
		rest = max(rest, g.timing.RetryMin)
	}
	g.restUntil = time.Now().Add(rest)
	return max(rest, g.timing.GroupRetry), err
}

// isScanNeeded reports whether a tenant waits for a scan, or a scan found foreign bindings.
func (g *groups) isScanNeeded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, holders := range g.found {
		if len(holders) > 0 {
			return true
		}
	}
	return len(g.waiting) > 0
}

// scanBindings lists all bindings, and returns the tenants to requeue: those that waited, and those of which it found
// other bindings than the scan before.
func (g *groups) scanBindings(ctx context.Context) ([]string, error) {
	g.mu.Lock()
	waiting := g.waiting
	// A tenant that begins to wait from now on needs the next scan: this one may have read past its bindings.
	g.waiting = map[string]bool{}
	g.mu.Unlock()
	found, err := g.listHolders(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		return g.putBack(waiting, err), err
	}
	g.forbidden, g.scanned = "", time.Now()
	concerned := slices.Collect(maps.Keys(waiting))
	for tenant, holders := range g.found {
		if now := found[v1alpha1.SudoersGroup(tenant)]; !slices.Equal(now, holders) {
			g.found[tenant] = now
			concerned = append(concerned, tenant)
		}
	}
	// Also where the scan found nothing, so that the tenant counts as scanned.
	for tenant := range waiting {
		g.found[tenant] = found[v1alpha1.SudoersGroup(tenant)]
	}
	return concerned, nil
}

// putBack makes the tenants of a failed scan wait for the next one. It returns all of them when the API server begins
// to refuse scans, so that their conditions explain why they wait. The caller holds the lock.
func (g *groups) putBack(waiting map[string]bool, err error) []string {
	begins := apierrors.IsForbidden(err) && g.forbidden == ""
	if apierrors.IsForbidden(err) {
		g.forbidden = err.Error()
	}
	var concerned []string
	for tenant := range waiting {
		g.waiting[tenant] = true
		if begins {
			concerned = append(concerned, tenant)
		}
	}
	return concerned
}

// listHolders returns the foreign bindings that name a group of sudoers, by group.
func (g *groups) listHolders(ctx context.Context) (map[string][]holder, error) {
	found, namesakes := map[string][]holder{}, map[string][]holder{}
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}} {
		err := paging.Each(ctx, g.live, list, scanPage, func(object client.Object) error {
			binding := object.(grants.Object)
			if binding.GetNamespace() == "" {
				addNamesake(namesakes, binding)
			}
			for _, group := range grants.ForeignGroups(binding, g.uidOf(ctx)) {
				found[group.Name] = append(found[group.Name], holder{key: grants.KeyOf(binding), uid: binding.GetUID(), leftover: group.Leftover})
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing bindings to find groups of sudoers: %w", err)
		}
	}
	if g.namesakes != nil {
		g.namesakes.recordFound(ctx, namesakes)
	}
	return found, nil
}

// uidOf returns a function that returns the UID of the LNamespace with a name; "" if there is none.
func (g *groups) uidOf(ctx context.Context) func(tenant string) types.UID {
	return func(name string) types.UID {
		tenant := &v1alpha1.LNamespace{}
		if err := g.tenants.Get(ctx, client.ObjectKey{Name: name}, tenant); err != nil {
			return ""
		}
		return tenant.UID
	}
}
