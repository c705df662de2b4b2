package tenants_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// ofOne is payments with mia as its one manager and its one sudoer.
func (f *fixture) ofOne() *build.LNamespace {
	return build.Tenant(f.own("payments")).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("mia"))
}

// bindings returns the names of the tenant's ClusterRoleBindings.
func (f *fixture) bindings(ctx context.Context, tenant string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &rbacv1.ClusterRoleBindingList{}
		err := f.Admin().List(ctx, list, client.HasLabels{v1alpha1.LabelAccess})
		var names []string
		for i := range list.Items {
			for _, owner := range list.Items[i].OwnerReferences {
				if owner.Name == f.own(tenant) && owner.UID != grants.Marked {
					names = append(names, list.Items[i].Name)
				}
			}
		}
		return names, err
	}
}

// lists sets both lists of payments.
func (f *fixture) lists(ctx context.Context, managers, sudoers []v1alpha1.Subject) {
	GinkgoHelper()
	f.set(ctx, f.Admin(), f.own("payments"), map[string]any{"managers": managers, "sudoers": sudoers})
	f.ready(ctx, f.own("payments"))
}

var _ = Describe("a tenant of one person", func() {
	inBothModes("ACC-R20 the tenant of mia alone has one ClusterRoleBinding; she edits it and uses sudo, and gets no pods without sudo, "+
		"no other tenant, no nodes and no other user", "r20", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.ofOne(), f.shop())
		payments, shop, mia := f.own("payments"), f.own("shop"), f.own("mia")
		Eventually(f.bindings(ctx, "payments")).WithContext(ctx).Should(ConsistOf("warren:sole:" + payments + ":" + mia))
		allowed(ctx, f.as("mia"), readTenant(payments))
		allowed(ctx, f.sudo("mia", "payments"), podsIn(payments), secretsIn(payments), readTenant(payments))
		denied(ctx, f.as("mia"), podsIn(payments))
		denied(ctx, f.sudo("mia", "payments"), podsIn(shop), listing(&corev1.NodeList{}, "nodes"))
		denied(ctx, f.sudo("mia", "shop"), podsIn(shop))
		denied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		denied(ctx, f.becoming("mia", f.own("bob"), payments+"-sudoers"), podsIn(payments))
		denied(ctx, f.becoming("mia", mia, "system:masters"), podsIn(payments))
		denied(ctx, f.becoming("bob", mia), readTenant(payments))
	})

	inBothModes("ACC-R21 bob joins and leaves both lists, and mia's rights work throughout; if he replaces her, hers end soon; if he "+
		"leaves the sudoers, only warren:edit is left", "r21", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.ofOne())
		payments, mia, bob := f.own("payments"), build.Users(f.own("mia")), build.Users(f.own("bob"))
		soleOf := func(person string) string { return "warren:sole:" + payments + ":" + f.own(person) }
		allowed(ctx, f.sudo("mia", "payments"), podsIn(payments))
		allowed(ctx, f.as("mia"), readTenant(payments))
		sudo, edit := throughout(ctx, f.sudo("mia", "payments"), podsIn(payments)), throughout(ctx, f.as("mia"), readTenant(payments))

		f.lists(ctx, append(mia, bob...), append(mia, bob...))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Eventually(f.bindings(ctx, "payments")).WithContext(ctx).Should(ConsistOf("warren:sudo:"+payments, "warren:edit:"+payments,
			"warren:self:"+mia[0].Name, "warren:self:"+bob[0].Name))

		f.lists(ctx, mia, mia)
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		soonDenied(ctx, f.as("bob"), readTenant(payments))
		Eventually(f.bindings(ctx, "payments")).WithContext(ctx).Should(ConsistOf(soleOf("mia")))
		Expect(sudo()).To(Succeed())
		Expect(edit()).To(Succeed())

		f.lists(ctx, bob, bob)
		soonDenied(ctx, f.sudo("mia", "payments"), podsIn(payments))
		soonDenied(ctx, f.as("mia"), readTenant(payments))
		Eventually(f.bindings(ctx, "payments")).WithContext(ctx).Should(ConsistOf(soleOf("bob")))

		f.lists(ctx, bob, []v1alpha1.Subject{})
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		allowed(ctx, f.as("bob"), readTenant(payments))
		Eventually(f.bindings(ctx, "payments")).WithContext(ctx).Should(ConsistOf("warren:edit:" + payments))
	})

	It("ACC-R22 pairs of an earlier version become the sole pair without a gap or an Event; after a removal by force, the sole pair is "+
		"deleted", func(ctx SpecContext) {
		f := of(ownWorld(ctx, devcluster.Options{}, "r22"), "r22")
		payments, mia := f.own("payments"), f.own("mia")
		f.settle(ctx, f.ofOne())
		f.Exists(ctx, build.ClusterRoleBinding("warren:sole:"+payments+":"+mia, ""))
		f.Gone(ctx, pair("warren:edit:"+payments)...)
		Expect(f.Operator.Stop()).To(BeZero())

		lns := f.get(ctx, payments)
		objects := grants.For(lns, grants.Facts{Forms: grants.FormsOf(v1alpha1.SudoLegacy)})
		for _, pair := range append([]grants.Pair{objects.Sudo, objects.Edit}, objects.Self...) { // as the earlier version wrote them
			f.create(ctx, pair.Role, pair.Binding)
		}
		for _, object := range pair("warren:sole:" + payments + ":" + mia) {
			Expect(f.Admin().Delete(ctx, object)).To(Succeed())
		}
		allowed(ctx, f.sudo("mia", "payments"), podsIn(payments))
		sudo, edit := throughout(ctx, f.sudo("mia", "payments"), podsIn(payments)), throughout(ctx, f.as("mia"), readTenant(payments))
		Expect(f.Operator.Start(ctx)).To(Succeed())
		Eventually(f.bindings(ctx, "payments")).WithContext(ctx).Should(ConsistOf("warren:sole:" + payments + ":" + mia))
		f.Gone(ctx, append(append(pair("warren:sudo:"+payments), pair("warren:edit:"+payments)...), pair("warren:self:"+mia)...)...)
		Expect(sudo()).To(Succeed())
		Expect(edit()).To(Succeed())
		Expect(f.Messages(build.Tenant(payments).Object(), v1alpha1.ReasonDriftRepaired)(ctx)).To(BeEmpty(), "nobody changed anything")
		Expect(f.Messages(build.Tenant(payments).Object(), v1alpha1.ReasonAccessRevoked)(ctx)).To(BeEmpty(), "nobody lost anything")

		// The deletion is forced: the finalizer is removed, so that nothing is withdrawn before the LNamespace is gone.
		Expect(f.Operator.Stop()).To(BeZero())
		bare, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": nil}})
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Admin().Delete(ctx, lns)).To(Succeed())
		Expect(client.IgnoreNotFound(f.Admin().Patch(ctx, lns, client.RawPatch("application/merge-patch+json", bare)))).To(Succeed())
		Expect(f.Operator.Start(ctx)).To(Succeed())
		f.Gone(ctx, pair("warren:sole:"+payments+":"+mia)...)
		soonDenied(ctx, f.as("mia"), readTenant(payments))
	})
})
