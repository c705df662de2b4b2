package components_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// distribute creates, as a user, a ResourceDistribution of a Secret to one namespace. It is a dry run.
func distribute(ctx context.Context, user, namespace string) error {
	rd := &v1alpha1.ResourceDistribution{}
	rd.Name = user + "s"
	rd.Spec.Resource = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"given"}}`)}
	rd.Spec.Targets.IncludedNamespaces = []v1alpha1.NamespaceReference{{Name: v1alpha1.NamespaceName(namespace)}}
	return world.As(user).Create(ctx, rd, client.DryRunAll)
}

// distributing are the CRD of ResourceDistributions, its policy and the binding, as rendered with these components.
func distributing(components ...string) devcluster.Manifests {
	GinkgoHelper()
	all, err := devcluster.RenderWith("config/overlays/standard", components...)
	Expect(err).NotTo(HaveOccurred())
	var manifests devcluster.Manifests
	for _, u := range all {
		if u.GetName() == "warren-distribution" || u.GetName() == "resourcedistributions."+v1alpha1.Domain {
			manifests = append(manifests, u)
		}
	}
	Expect(manifests).To(HaveLen(3), "CRD, policy, binding")
	return manifests
}

var _ = Describe("components distribution and hierarchy-authority", func() {
	It("SEC-H3 carol, whose ResourceDistribution has plain as its only target: refused, `may not create secrets cluster-wide, as this "+
		"ResourceDistribution requires`; a cluster admin may; SEC-H3 without component hierarchy-authority, the policies allow it, and the "+
		"webhook decides", func(ctx SpecContext) {
		world.Create(ctx, build.Namespace("h3-plain"), build.RoleBinding("h3-plain", "carol", "cluster-admin", build.RBACUser("carol")),
			build.ClusterRole("h3-writer", build.Rule(v1alpha1.Domain, "resourcedistributions", "create")),
			build.ClusterRoleBinding("h3-writer", "h3-writer", build.RBACUser("carol")))
		Expect(devcluster.Apply(ctx, world.Config(controlplane.Admin), distributing("config/components/distribution"))).To(Succeed())
		Eventually(distribute).WithContext(ctx).WithArguments("carol", "h3-plain").Should(Succeed(), "left to the webhook")

		Expect(devcluster.Apply(ctx, world.Config(controlplane.Admin),
			distributing("config/components/distribution", "config/components/hierarchy-authority"))).To(Succeed())
		eventuallyRefused(ctx, `user "carol" may not create secrets cluster-wide, as this ResourceDistribution requires`,
			func() error { return distribute(ctx, "carol", "h3-plain") })
		Expect(distribute(ctx, controlplane.Admin, "h3-plain")).To(Succeed())
	})
})
