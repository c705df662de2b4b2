package access

import (
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// holderTable holds what looks at RoleBindings have found about the groups of sudoers (see groups), and which tenants wait for a
// look.
type holderTable struct {
	// wake has a value while a tenant waits for a look.
	wake chan struct{}

	mu        sync.Mutex          // guards all below; no request is sent while it is held
	asked     map[string]bool     // tenants that wait for a look that has not begun yet
	known     map[string]bool     // tenants for which a look has finished since they listed their first sudoer
	found     map[string][]holder // group → RoleBindings that name it, as of the last look
	stopped   map[string][]holder // tenant → RoleBindings that stop its first grant
	forbidden string              // the API server's message if it refused the last look; else ""
}

func newHolderTable() *holderTable {
	return &holderTable{
		wake: make(chan struct{}, 1), asked: map[string]bool{}, known: map[string]bool{}, found: map[string][]holder{}, stopped: map[string][]holder{},
	}
}

// judgeTenant returns what foreign bindings mean for the sudo of a tenant that lists sudoers: those of clusterWide, and the
// RoleBindings that the last look found. It records the RoleBindings that stop the first grant, and requests a look if none has
// finished for the tenant.
func (t *holderTable) judgeTenant(tenant string, granted bool, clusterWide []holder, view View) groupState {
	t.mu.Lock()
	defer t.mu.Unlock()
	inTree := func(namespace string) bool { return view.InTree(namespace, tenant) }
	var state groupState
	for _, h := range append(clusterWide, t.found[v1alpha1.SudoersGroup(tenant)]...) {
		switch {
		case granted && h.givesMore(tenant, view):
			state.gifts = append(state.gifts, h)
		case !granted && grants.StopsGrant(tenant, h.key.Namespace, h.leftover, inTree):
			state.inTheWay = append(state.inTheWay, h)
		}
	}
	t.stopped[tenant] = slices.DeleteFunc(slices.Clone(state.inTheWay), func(h holder) bool { return h.key.Namespace == "" })
	if !t.known[tenant] {
		t.requestLook(tenant)
		if !granted {
			state.pending, state.forbidden = true, t.forbidden
		}
	}
	return state
}

// givesMore says whether a binding gives the tenant's sudoers something outside of their tree.
func (h holder) givesMore(tenant string, view View) bool {
	return !h.leftover && (h.key.Namespace == "" || !view.BelongsTo(h.key.Namespace, tenant))
}

// requestLook requests a look for the tenant. The caller holds the lock.
func (t *holderTable) requestLook(tenant string) {
	t.asked[tenant] = true
	select {
	case t.wake <- struct{}{}:
	default: // a look is due already
	}
}

// forgetTenant forgets what is known about the tenant's group: its next sudoer counts as the first.
func (t *holderTable) forgetTenant(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asked, tenant)
	delete(t.known, tenant)
	delete(t.stopped, tenant)
}

// beginLook returns the tenants that wait for the look that begins now. The look is needless where no tenant has a sudoer.
func (t *holderTable) beginLook() (asked map[string]bool, needless bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, t.asked = t.asked, map[string]bool{}
	return asked, len(asked) == 0 && len(t.known) == 0
}

// noteFailedLook makes the tenants of asked wait for the next look. It returns the tenants to requeue, so that their conditions say
// why they wait: all of asked when the API server begins to refuse looks, otherwise none.
func (t *holderTable) noteFailedLook(asked map[string]bool, err error) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	concerned := map[string]bool{}
	refused := apierrors.IsForbidden(err) && t.forbidden == ""
	for tenant := range asked {
		t.asked[tenant] = true
		concerned[tenant] = refused
	}
	if apierrors.IsForbidden(err) {
		t.forbidden = err.Error()
	}
	return trueKeys(concerned)
}

// noteLook replaces what earlier looks have found. It returns the tenants that waited for the look, and those for which something
// has changed.
func (t *holderTable) noteLook(asked map[string]bool, found map[string][]holder) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	concerned := map[string]bool{}
	t.forbidden = ""
	for tenant := range asked {
		t.known[tenant], concerned[tenant] = true, true
	}
	for tenant := range t.known {
		group := v1alpha1.SudoersGroup(tenant)
		if !slices.Equal(t.found[group], found[group]) {
			concerned[tenant] = true
		}
	}
	t.found = found
	return trueKeys(concerned)
}

// dropHolder forgets a binding that no longer names the group.
func (t *holderTable) dropHolder(group string, gone holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found[group] = slices.DeleteFunc(slices.Clone(t.found[group]), func(other holder) bool { return other == gone })
}

// inTheWay returns, by tenant, the RoleBindings that stop its first grant.
func (t *holderTable) inTheWay() map[string][]holder {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.stopped)
}

// trueKeys lists the keys that are true.
func trueKeys(set map[string]bool) []string {
	var result []string
	for name, ok := range set {
		if ok {
			result = append(result, name)
		}
	}
	slices.Sort(result)
	return result
}
