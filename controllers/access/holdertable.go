package access

import (
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// holderTable is what looks at RoleBindings have found about the groups of sudoers, and which tenants wait for a look.
type holderTable struct {
	// wake has a value when a tenant waits for a look.
	wake chan struct{}

	mu        sync.Mutex          // guards all below; no request is sent while it is held
	asked     map[string]bool     // tenants that wait for a look that has not begun yet
	known     map[string]bool     // tenants that had sudoers when the last look began
	found     map[string][]holder // group → RoleBindings that name it, as of the last look
	stopped   map[string][]holder // tenant → RoleBindings that its first grant waits for
	forbidden string              // why the last look was refused; empty if it was not
}

func newHolderTable() *holderTable {
	return &holderTable{
		wake: make(chan struct{}, 1), asked: map[string]bool{}, known: map[string]bool{}, found: map[string][]holder{}, stopped: map[string][]holder{},
	}
}

// judgeTenant says what others' bindings mean for the sudo of a tenant that lists sudoers: clusterWide, and the RoleBindings that the last
// look found. It notes which of these the first grant waits for, and wants a look if none has been finished for the tenant.
func (t *holderTable) judgeTenant(tenant string, granted bool, clusterWide []holder, forest Forest) groupState {
	t.mu.Lock()
	defer t.mu.Unlock()
	inTree := func(namespace string) bool { return forest.InTree(namespace, tenant) }
	var state groupState
	for _, h := range append(clusterWide, t.found[v1alpha1.SudoersGroup(tenant)]...) {
		switch {
		case granted && h.givesMore(tenant, forest):
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
func (h holder) givesMore(tenant string, forest Forest) bool {
	return !h.leftover && (h.key.Namespace == "" || !forest.BelongsTo(h.key.Namespace, tenant))
}

// requestLook wants a look for the tenant. The caller holds the lock.
func (t *holderTable) requestLook(tenant string) {
	t.asked[tenant] = true
	select {
	case t.wake <- struct{}{}:
	default: // one is due already
	}
}

// forgetTenant forgets what was found about the tenant's group: its next sudoer counts as the first.
func (t *holderTable) forgetTenant(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.asked, tenant)
	delete(t.known, tenant)
	delete(t.stopped, tenant)
}

// beginLook returns the tenants that wait for the look that begins. The look is needless where no tenant has a sudoer.
func (t *holderTable) beginLook() (asked map[string]bool, needless bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked, t.asked = t.asked, map[string]bool{}
	return asked, len(asked) == 0 && len(t.known) == 0
}

// noteFailedLook lets those who asked wait for the next look. It returns the tenants that have to say now why they wait.
func (t *holderTable) noteFailedLook(asked map[string]bool, err error) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	concerned := map[string]bool{}
	refused := apierrors.IsForbidden(err) && t.forbidden == ""
	for tenant := range asked {
		t.asked[tenant] = true
		concerned[tenant] = refused // so that they can say why they wait
	}
	if apierrors.IsForbidden(err) {
		t.forbidden = err.Error()
	}
	return trueKeys(concerned)
}

// noteLook replaces what earlier looks have found. It returns the tenants that waited, and those for which something has changed.
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

// dropHolder forgets a binding that names the group no longer.
func (t *holderTable) dropHolder(group string, gone holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found[group] = slices.DeleteFunc(slices.Clone(t.found[group]), func(other holder) bool { return other == gone })
}

// inTheWay lists by tenant the RoleBindings that its first grant waits for.
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
