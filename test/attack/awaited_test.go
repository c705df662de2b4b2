package attack_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("with the webhook configuration deleted while the operator runs", func() {
	It("HIER-O12 if x waits for a parent p, LNamespace p that is created while the webhook configuration is deleted stays "+
		"NamespaceConflict, also once that is restored", func(ctx SpecContext) {
		f := &fixture{}
		var err error
		f.World, err = devcluster.Start(ctx, devcluster.Options{
			ControlPlane: controlplane.Options{Users: users()}, Webhooks: true,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(f.Stop)
		f.given(ctx, admin,
			create("clusterrole make-lnamespaces", `{rules: [{apiGroups: [$D], resources: [lnamespaces], verbs: [create]}]}`),
			create("clusterrolebinding make-lnamespaces", bindingTo("make-lnamespaces", "creator")),
			create("namespace awaited", ours("$D/type", "root")), create("namespace waiting", ours("$D/parent", "awaited")))
		Eventually(ctx, f.labelsOf).WithArguments("waiting").Should(HaveKey(v1alpha1.TreeLabel("awaited")))
		f.given(ctx, admin, remove("namespace awaited"))
		f.gone(ctx, "namespace awaited")
		Eventually(ctx, func(ctx context.Context) error { return create("lnamespace awaited", ``).send(ctx, f.caller(creator)) }).
			Should(MatchError(ContainSubstring(`wait for a parent named "awaited"`)), "as soon as the operator knows that it is gone")

		webhooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(f.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, webhooks)).To(Succeed())
		Expect(f.Admin().Delete(ctx, webhooks)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return create("lnamespace awaited", ``).send(ctx, f.caller(creator)) }).
			Should(Succeed(), "the API server asks nobody any more")
		conflict := func(ctx context.Context) (string, error) {
			tenant := build.Tenant("awaited").Object()
			err := f.Admin().Get(ctx, client.ObjectKeyFromObject(tenant), tenant)
			if c := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionNamespaceReady); c != nil {
				return c.Reason, err
			}
			return "", err
		}
		Eventually(ctx, conflict).Should(Equal(string(v1alpha1.ReasonNamespaceConflict)))

		By("the configuration comes back")
		webhooks.ResourceVersion, webhooks.UID = "", ""
		Expect(f.Admin().Create(ctx, webhooks)).To(Succeed())
		f.given(ctx, admin, merge("lnamespace awaited", `{metadata: {annotations: {look: again}}}`))
		f.withheld(ctx, "namespace awaited")
		Expect(conflict(ctx)).To(Equal(string(v1alpha1.ReasonNamespaceConflict)))
	})
})

// labelsOf reads the labels of a Namespace.
func (f *fixture) labelsOf(ctx context.Context, name string) (map[string]string, error) {
	namespace := build.Namespace(name)
	err := f.Admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	return namespace.Labels, err
}
