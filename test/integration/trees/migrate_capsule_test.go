package trees_test

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var (
	tenantKind  = schema.GroupVersionKind{Group: "capsule.clastix.io", Version: "v1beta2", Kind: "Tenant"}
	quotaKind   = schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}
	rangeKind   = schema.GroupVersionKind{Version: "v1", Kind: "LimitRange"}
	netpolKind  = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}
	bindingKind = rbacKind("RoleBinding")
)

// ownerOf is the ownerReference that Capsule writes.
func (s *migration) ownerOf(ctx context.Context, tenant string, controls bool) []metav1.OwnerReference {
	GinkgoHelper()
	owner := s.object(ctx, tenantKind, "", tenant)
	reference := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: tenant, UID: owner.GetUID()}
	if controls {
		reference.Controller, reference.BlockOwnerDeletion = &controls, &controls
	}
	return []metav1.OwnerReference{reference}
}

// own makes a Tenant the owner of namespaces.
func (s *migration) own(ctx context.Context, tenant string, namespaces ...string) {
	GinkgoHelper()
	for _, name := range namespaces {
		edit(ctx, s.cluster, build.Namespace(name), func(n *corev1.Namespace) {
			n.OwnerReferences = s.ownerOf(ctx, tenant, false)
			n.Labels["capsule.clastix.io/tenant"] = tenant
		})
	}
}

// replicate writes an object of Capsule's into namespaces of a Tenant; fields are those beside metadata.
func (s *migration) replicate(ctx context.Context, kind schema.GroupVersionKind, tenant, name, label string,
	fields map[string]any, into ...string) {
	GinkgoHelper()
	for _, namespace := range into {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		maps.Copy(u.Object, fields)
		u.SetGroupVersionKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		u.SetLabels(map[string]string{"capsule.clastix.io/" + label: "0", "projectcapsule.dev/tenant": tenant,
			"projectcapsule.dev/managed-by": "controller"})
		u.SetOwnerReferences(s.ownerOf(ctx, tenant, true))
		Expect(s.Admin().Create(ctx, u)).To(Succeed())
	}
}

func bindingTo(role, kind, name string) map[string]any {
	return map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name}},
	}
}

// furnish writes what Capsule's controllers write for the Tenants of the fixture.
func (s *migration) furnish(ctx context.Context) {
	GinkgoHelper()
	oil, gas := []string{"c-oil-dev", "c-oil-prod"}, []string{"c-gas", "c-gas-lab"}
	s.own(ctx, "c-oil", oil...)
	s.own(ctx, "c-gas", gas...)
	for _, owner := range [][2]string{{"User", "alice"}, {"Group", "oil-devs"}} {
		s.replicate(ctx, bindingKind, "c-oil", "capsule:managed:"+owner[1], "role-binding", bindingTo("admin", owner[0], owner[1]), oil...)
		s.replicate(ctx, bindingKind, "c-oil", "capsule:managed:"+owner[1]+"-deletes", "role-binding",
			bindingTo("capsule-namespace-deleter", owner[0], owner[1]), oil...)
	}
	s.replicate(ctx, bindingKind, "c-oil", "capsule:managed:readers", "role-binding", bindingTo("view", "Group", "oil-readers"), oil...)
	s.replicate(ctx, bindingKind, "c-gas", "capsule:managed:bob", "role-binding", bindingTo("admin", "User", "bob"), gas...)
	spec := func(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }
	s.replicate(ctx, quotaKind, "c-oil", "capsule-c-oil-0", "resource-quota", spec(map[string]any{"hard": map[string]any{"pods": "10"}}),
		oil...)
	s.replicate(ctx, rangeKind, "c-oil", "capsule-c-oil-0", "limit-range",
		spec(map[string]any{"limits": []any{map[string]any{"type": "Container", "default": map[string]any{"cpu": "500m"}}}}), oil...)
	s.replicate(ctx, netpolKind, "c-oil", "capsule-c-oil-0", "network-policy",
		spec(map[string]any{"podSelector": map[string]any{}, "policyTypes": []any{"Ingress"}}), oil...)
}

// goesWithTenant reports whether an object of that name in a state is deleted with its Tenant, because the LNamespace gives its rights in
// the end.
func goesWithTenant(name string) bool {
	return strings.Contains(name, ":alice") || strings.Contains(name, ":oil-devs") || strings.Contains(name, ":bob")
}

// keeps expects that the objects of before exist and are not being deleted, except those that go with their Tenant.
func (s *migration) keeps(ctx context.Context, before map[string]*metav1.PartialObjectMetadata) {
	GinkgoHelper()
	now := s.state(ctx, "c-")
	for name, object := range before {
		if goesWithTenant(name) {
			continue
		}
		Expect(now).To(HaveKey(name))
		Expect(now[name].UID).To(Equal(object.UID), name)
		Expect(now[name].DeletionTimestamp).To(BeNil(), name)
	}
}

// ownedCount returns the names of the objects that have one of Capsule's objects as owner.
func ownedCount(state map[string]*metav1.PartialObjectMetadata) map[string]bool {
	found := map[string]bool{}
	for name, object := range state {
		for _, reference := range object.OwnerReferences {
			if strings.HasPrefix(reference.APIVersion, "capsule.clastix.io/") {
				found[name] = true
			}
		}
	}
	return found
}

// migratesCapsule are the cases of a cluster that comes from Capsule; they run after those of the other peers.
func migratesCapsule(own *cluster, config *string) {
	var s *migration
	var before map[string]*metav1.PartialObjectMetadata

	// provisioners are those who may make and patch namespaces in the whole cluster, by Capsule's binding.
	provisioners := func(ctx context.Context) []rbacv1.Subject {
		GinkgoHelper()
		binding := build.ClusterRoleBinding("capsule-namespace-provisioner", "")
		Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		return binding.Subjects
	}
	// tree expects the namespaces below their roots.
	tree := func(ctx SpecContext) {
		GinkgoHelper()
		for _, sub := range []string{"c-oil/c-oil-dev", "c-oil/c-oil-prod", "c-gas/c-gas-lab"} {
			parent, name := split(sub)
			Eventually(s.sub(sub)).WithContext(ctx).Should(beReady())
			Eventually(s.ns(name)).WithContext(ctx).Should(And(standing(parent, "1"), carry(v1alpha1.LabelBound, v1alpha1.True)))
		}
	}

	It("MIG-C1 the plan lists every write by phase, and each field without counterpart with its Tenant; "+
		"nothing is written", func(ctx SpecContext) {
		s = own.fill(ctx, "capsule", *config, bindingKind, quotaKind, rangeKind, netpolKind, configMapKind)
		s.furnish(ctx)
		before = s.state(ctx, "c-")
		plan := s.planned(ctx)
		phases := map[string]int{}
		for _, step := range plan.Steps {
			phases[step.Phase]++
			Expect(step.Object.Name).NotTo(Equal("capsule-proxy"), "users go on through it")
		}
		// The 16 steps of finish: the record; 4 namespaces, 2 RoleBindings, 6 others that lose their owner; a source; a mark and an LNamespace
		// that adopts.
		Expect(phases).To(Equal(map[string]int{"rest": 4, "tenants": 1, "sources": 1, "copies": 2, "namespaces": 4, "hierarchy": 3,
			"finish": 16}), "%+v", plan.Steps)
		var gaps []string
		for _, gap := range plan.Gaps {
			gaps = append(gaps, gap.What)
		}
		Expect(gaps).To(ConsistOf("deletion of a Tenant", "limitRanges.items of Tenant c-oil", "networkPolicies.items of Tenant c-oil",
			"resourceQuotas.items[0] of Tenant c-oil", "nodeSelector of Tenant c-oil",
			"namespaceOptions.additionalMetadata of Tenant c-oil", "forceTenantPrefix of CapsuleConfiguration default",
			"GlobalTenantResource c-pull",
			"objects of Role in Namespace c-gas", "objects of RoleBinding in Namespace c-gas", "objects of ConfigMap in Namespace c-gas"))
		Expect(metadataOf(s.state(ctx, "c-"))).To(Equal(metadataOf(before)))
	})

	It("MIG-C2 killed after each write and repeated, --apply keeps UIDs and owners and withholds Capsule's grants; "+
		"--undo restores everything", Label("slow"), func(ctx SpecContext) {
		s.pursue(ctx, "--apply", "--yes")
		tree(ctx)
		s.keeps(ctx, before)
		Expect(provisioners(ctx)).To(BeEmpty(), "nobody answers for the webhooks that kept them in bounds")
		Expect(ownedCount(s.state(ctx, "c-"))).To(Equal(ownedCount(before)), "Capsule could be woken")
		s.pursue(ctx, "--undo", "--yes")
		Eventually(func() map[string]map[string]string { return metadataOf(s.state(ctx, "c-")) }).WithContext(ctx).
			Should(Equal(metadataOf(before)))
		Expect(uidsOf(s.state(ctx, "c-"))).To(Equal(uidsOf(before)))
		Expect(ownedCount(s.state(ctx, "c-"))).To(Equal(ownedCount(before)))
		Expect(provisioners(ctx)).To(HaveLen(1))
		s.isRid(ctx, build.Tenant("c-oil").Object(), build.Tenant("c-gas").Object(),
			subNamespace("c-oil/c-oil-dev"), subNamespace("c-oil/c-oil-prod"), subNamespace("c-gas/c-gas-lab"))
	})

	It("MIG-C2 --undo restores everything, also if the operator deletes a root between two reads of the plugin", func(ctx SpecContext) {
		s.done(ctx, controlplane.Admin, s.args("--apply", "--yes")...)
		tree(ctx)
		oil := build.Tenant("c-oil").Object()
		_, problems, code := s.proxied(ctx, func(answer *http.Response) {
			defer GinkgoRecover()
			isList := answer.Request.Method == http.MethodGet && slices.Contains([]string{"namespaces", "lnamespaces"},
				path.Base(answer.Request.URL.Path))
			now := oil.DeepCopy()
			if isList && s.Admin().Get(ctx, client.ObjectKeyFromObject(oil), now) == nil && now.DeletionTimestamp != nil {
				s.isRid(ctx, oil) // before the other list is read
			}
		}, s.args("--undo", "--yes")...)
		Expect(code).To(BeZero(), problems)
		Eventually(func() map[string]map[string]string { return metadataOf(s.state(ctx, "c-")) }).WithContext(ctx).
			Should(Equal(metadataOf(before)))
		Expect(uidsOf(s.state(ctx, "c-"))).To(Equal(uidsOf(before)))
	})

	It("MIG-C3 after --finish only RoleBindings that the LNamespaces replace are deleted with a Tenant, and owners work in all namespaces; "+
		"MIG-C6 the guide's commands remove the webhooks and definitions of Capsule", func(ctx SpecContext) {
		_, warning, code := s.warren(ctx, controlplane.Admin, s.args("--apply", "--yes")...)
		Expect(code).To(BeZero(), warning)
		Expect(warning).To(ContainSubstring("Warning: deletion of a Tenant: delete no Tenant"))
		s.pursue(ctx, "--finish", "--yes")
		tree(ctx)
		Expect(s.planned(ctx).Steps).To(BeEmpty())
		Expect(s.fails(ctx, controlplane.Admin, s.args("--undo", "--yes")...)).To(ContainSubstring("the last step has been taken"))
		Expect(s.done(ctx, "alice", "create", "c-oil-new", "-n", "c-oil", "--wait")).NotTo(BeEmpty())
		for name := range ownedCount(s.state(ctx, "c-")) {
			Expect(goesWithTenant(name)).To(BeTrue(), name)
		}
		s.keeps(ctx, before)

		By("MIG-C6 the commands of the guide")
		s.cleanUp(ctx, "capsule-system")
		webhooks, _, _ := s.Kubectl(ctx, controlplane.Admin, "get", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "-o", "name")
		Expect(webhooks).NotTo(ContainSubstring("capsule"))
		Eventually(func() map[string]bool { return ownedCount(s.state(ctx, "c-")) }).WithContext(ctx).Should(BeEmpty(),
			"the garbage collector has been there")
		s.keeps(ctx, before)
		for namespace, user := range map[string]string{"c-oil-dev": "alice", "c-oil-new": "alice", "c-gas": "bob", "c-gas-lab": "bob"} {
			Eventually(func() error { return s.As(user).Create(ctx, build.ConfigMap(namespace, "after-"+namespace, "")) }).WithContext(ctx).
				Should(Succeed(), "%s in %s", user, namespace)
		}
		Eventually(func() map[string]string {
			if copied := s.state(ctx, "c-oil-new")["RoleBinding c-oil-new/capsule:managed:readers"]; copied != nil {
				return copied.Labels
			}
			return nil
		}).WithContext(ctx).Should(HaveKeyWithValue(v1alpha1.LabelInheritedFrom, "c-oil"))
		s.isHealthy(ctx)
	})
}
