package access

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/internal/paging"
	"github.com/warren-tenancy/warren/internal/requeue"
)

// namesakes finds ClusterRoleBindings that have the name of a tenant's access object without its labels. The cache of
// access objects doesn't hold them, yet they may grant the rights of a sudoer or a manager, also of a tenant that is
// made later. They are reported and not deleted, because cluster admins may make such bindings: no policy says that
// only the operator could have.
//
// A look lists the ClusterRoleBindings: at the start, every Namesakes, every GroupRetry while there is one, and before the
// first report on a tenant without sudoers. Any other tenant waits for the scan before its first grant (see groups), which
// reads them, too.
type namesakes struct {
	live   client.Reader
	timing Timing
	events record.EventRecorder
	loop   *requeue.Loop                     // runs lookForNamesakes
	again  requeue.Source[reconcile.Request] // requeues the tenants whose namesakes have changed

	// restUntil is when the next look may begin. Only lookForNamesakes uses it.
	restUntil time.Time

	mu      sync.Mutex          // guards what follows; no request is sent while it is held
	found   map[string][]holder // by tenant, existing or not, in the order of their names; nil before the first look
	asked   map[string]bool     // tenants to requeue after a look that has not begun yet
	covered map[string]bool     // new tenants for which a look has begun and ended since they asked
}

func newNamesakes(live client.Reader, events record.EventRecorder, timing Timing) *namesakes {
	n := &namesakes{live: live, timing: timing, events: events, asked: map[string]bool{}, covered: map[string]bool{}}
	n.loop = &requeue.Loop{Name: "access-namesakes", Look: n.lookForNamesakes, RetryMin: timing.RetryMin, RetryMax: timing.RetryMax}
	return n
}

// ofTenant returns the namesakes of a tenant's access objects. Before the first look they are not known: then that look
// requeues the tenant, so that no report says for a moment that there are none.
func (n *namesakes) ofTenant(tenant string) (found []holder, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.found == nil {
		n.asked[tenant] = true
	}
	return n.found[tenant], n.found != nil
}

// ofNewTenant is ofTenant for a tenant that was never reported on: its namesakes are known once a look has ended that
// began after the tenant was there. All tenants that come during one look wait for the next one.
func (n *namesakes) ofNewTenant(tenant string) (found []holder, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.found == nil || !n.covered[tenant] {
		n.asked[tenant] = true
		n.loop.Now()
		return nil, false
	}
	return n.found[tenant], true
}

// dropTenant is called when a tenant has been reported on, or is gone.
func (n *namesakes) dropTenant(tenant string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.asked, tenant)
	delete(n.covered, tenant)
}

// lookForNamesakes makes one look. After it comes a pause of nine times its duration, at most GroupRetry, so that looks
// take about a tenth of the time however many tenants are made.
func (n *namesakes) lookForNamesakes(ctx context.Context) (again time.Duration, err error) {
	if left := time.Until(n.restUntil); left > 0 {
		return left, nil
	}
	began := time.Now()
	defer func() { n.restUntil = time.Now().Add(min(9*time.Since(began), n.timing.GroupRetry)) }()
	n.mu.Lock()
	asked := n.asked
	n.asked = map[string]bool{}
	n.mu.Unlock()
	defer n.endLook(asked)
	found := map[string][]holder{}
	err = paging.Each(ctx, n.live, &rbacv1.ClusterRoleBindingList{}, scanPage, func(object client.Object) error {
		addNamesake(found, object)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("listing ClusterRoleBindings to find those that only have a name of the operator's: %w", err)
	}
	n.recordFound(ctx, found)
	if len(found) > 0 {
		return n.timing.GroupRetry, nil
	}
	return n.timing.Namesakes, nil
}

// addNamesake adds a binding to found if it is a namesake of a tenant's access object.
func addNamesake(found map[string][]holder, binding client.Object) {
	if tenant, is := grants.NamesakeOf(binding); is {
		found[tenant] = append(found[tenant], holder{key: grants.KeyOf(binding), uid: binding.GetUID()})
	}
}

// recordFound takes what a complete list of ClusterRoleBindings has shown. It reports new namesakes, and requeues the
// tenants concerned.
func (n *namesakes) recordFound(ctx context.Context, found map[string][]holder) {
	for _, holders := range found {
		slices.SortFunc(holders, func(a, b holder) int { return strings.Compare(a.key.Name, b.key.Name) })
	}
	n.mu.Lock()
	before := n.found
	n.found = found
	n.mu.Unlock()
	if len(found) > 0 && len(before) == 0 {
		n.loop.Now() // a scan may have found them, and their end must be seen soon
	}
	for tenant, holders := range found {
		for _, h := range holders {
			if !slices.Contains(before[tenant], h) {
				n.reportNamesake(ctx, tenant, h)
			}
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(found)) {
		if !slices.Equal(before[tenant], found[tenant]) {
			n.again.Add(requestFor(tenant))
		}
	}
	for tenant := range before {
		if found[tenant] == nil {
			n.again.Add(requestFor(tenant))
		}
	}
}

// endLook lets the tenants report that asked before the look began, also after a look that failed: a list that the API
// server can't answer holds up no report for ever.
func (n *namesakes) endLook(asked map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.found == nil {
		n.found = map[string][]holder{}
	}
	for tenant := range asked {
		n.covered[tenant] = true
		n.again.Add(requestFor(tenant))
	}
	for tenant := range n.asked { // of these, the new ones ask again
		n.again.Add(requestFor(tenant))
	}
}

func (n *namesakes) reportNamesake(ctx context.Context, tenant string, h holder) {
	ctrllog.FromContext(ctx).Info("a binding has a name of the operator's, but not its labels: see whom it binds, and delete it",
		"binding", h.key.Name, "tenant", tenant)
	object := &corev1.ObjectReference{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: h.key.Kind, Name: h.key.Name, UID: h.uid}
	n.events.Eventf(object, corev1.EventTypeWarning, string(v1alpha1.ReasonAccessConflict),
		"this binding has a name of the operator's for LNamespace %s, but not its labels, so no list asks for what it grants: see whom it "+
			"binds, and delete it", tenant)
}
