package rights

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// allowed returns the rights that the lists of a tenant give.
func allowed(tenant *v1alpha1.LNamespace) map[right]bool {
	all := map[right]bool{}
	if tenant == nil || tenant.DeletionTimestamp != nil {
		return all
	}
	for _, list := range grants.Lists() {
		for _, s := range list.Of(tenant) {
			all[right{tenant.Name, string(list), string(s.Kind) + " " + s.Name}] = true
		}
	}
	return all
}

// check checks what a request has changed: FLT-M14 to FLT-M16.
func (h *history) check(p *pass, step grants.Step, before grants.Actual) {
	key := grants.KeyOf(step.Desired)
	had, has := rightsIn(before), rightsIn(h.server.objects)
	isGrant := false
	for r := range has {
		if had[r] {
			continue
		}
		isGrant = true
		versions := h.tenants[p.tenant.Name][p.since:]
		if !slices.ContainsFunc(versions, func(t *v1alpha1.LNamespace) bool { return allowed(t)[r] }) {
			fail("FLT-M14", "%s gives %+v, which nobody has granted since the pass began", key, r)
		}
	}
	if binding, is := h.server.objects[key].(*rbacv1.ClusterRoleBinding); is && before[key] == nil {
		if excess := excessOf(h.server.objects, binding); excess != "" {
			fail("FLT-M14", "%s is made: %s", key, excess)
		}
		h.checkSelf(p, binding)
	}
	if isGrant && !step.Revokes { // one PUT of a list may both revoke and grant
		h.checkOrder(p, key)
	}
	h.checkShared(p, key, before)
}

// checkSelf: FLT-M14. A pair by which a user may impersonate themselves is made only for a sudoer.
func (h *history) checkSelf(p *pass, binding *rbacv1.ClusterRoleBinding) {
	isSelf := slices.Contains(selfIn(grants.Actual{grants.KeyOf(binding): binding}), binding.Name)
	isWanted := slices.ContainsFunc(h.tenants[p.tenant.Name][p.since:], func(t *v1alpha1.LNamespace) bool {
		return slices.Contains(selfAllowedBy(t), binding.Name)
	})
	if isSelf && !isWanted {
		fail("FLT-M14", "%s is made for tenant %s, which does not list this sudoer", binding.Name, p.tenant.Name)
	}
}

// excessIn returns, by object, the rights that the lists of a tenant do not give.
func excessIn(objects grants.Actual, tenant *v1alpha1.LNamespace) map[grants.Key]map[right]bool {
	all := map[grants.Key]map[right]bool{}
	for key, object := range objects {
		all[key] = rightsIn(grants.Actual{key: object})
		maps.DeleteFunc(all[key], func(r right, _ bool) bool { return allowed(tenant)[r] })
	}
	return all
}

// checkOrder: FLT-M15. Nothing is granted while an object still gives a right that is in the pass's excess.
func (h *history) checkOrder(p *pass, key grants.Key) {
	for other, excess := range p.excess {
		if h.server.objects[other] == nil {
			continue
		}
		for r := range rightsIn(grants.Actual{other: h.server.objects[other]}) {
			if excess[r] {
				fail("FLT-M15", "%s gives rights while %s still gives %+v", key, other, r)
			}
		}
	}
}

// checkShared: FLT-M16. An object of several tenants stays as long as one of them, beside the one of the pass, owns it.
func (h *history) checkShared(p *pass, key grants.Key, before grants.Actual) {
	existing := before[key]
	role := before[grants.Key{Kind: "ClusterRole", Name: key.Name}]
	isForeign := role != nil && role.GetLabels()[v1alpha1.LabelAccess] == "" // bindings to somebody else's role are deleted for all tenants
	if existing == nil || h.server.objects[key] != nil || !grants.Shared(existing) || isForeign {
		return
	}
	for _, o := range grants.Owners(existing) {
		if o.Name != p.tenant.Name && h.exists(o.UID) {
			fail("FLT-M16", "%s is deleted for tenant %s, and tenant %s owns it, too", key, p.tenant.Name, o.Name)
		}
	}
}

// mostPasses bounds the work after all faults have ended.
const mostPasses = 12

// settle ends all faults, lets the operator work until nothing is left to do, and compares the rights with the lists: FLT-M17.
func (h *history) settle() {
	h.faulty, h.passes = false, map[string]*pass{}
	for _, key := range h.server.keys() { // objects that the operator has not made or marked are deleted: nothing is in its way then
		if object := h.server.objects[key]; !h.server.ours[object.GetUID()] || object.GetLabels()[v1alpha1.LabelAccess] == "" {
			h.server.put(key, nil)
		}
	}
	for range mostPasses {
		before := h.server.version
		for h.server.collect(h.exists) {
		}
		for _, name := range tenantNames {
			for h.begin(name, 0, 0); h.passes[name] != nil; {
				h.goOn(name)
			}
		}
		if h.server.version == before {
			break
		}
	}
	h.checkEnd()
}

func (h *history) checkEnd() {
	want := map[right]bool{}
	for _, name := range tenantNames {
		maps.Copy(want, allowed(h.newest(name)))
		if h.begin(name, 0, 0); h.passes[name] != nil && len(h.passes[name].steps) > 0 {
			step := h.passes[name].steps[0]
			fail("FLT-M17", "the work of tenant %s does not end: %s %s", name, step.Verb, grants.KeyOf(step.Desired))
		}
	}
	h.checkRules("FLT-M17")
	if got, want := selfIn(h.server.objects), selfOf(h.newest("acme"), h.newest("zeta")); !slices.Equal(got, want) {
		fail("FLT-M17", "users may impersonate themselves by %v, and the lists say %v", got, want)
	}
	if got := rightsIn(h.server.objects); !maps.Equal(got, want) {
		fail("FLT-M17", "the rights are %v, and the lists say %v", got, want)
	}
}
