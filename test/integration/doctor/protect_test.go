package doctor_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("kubectl warren protect", func() {
	admin := controlplane.Admin

	It("sets and takes off the label, and says so", func(ctx SpecContext) {
		create(ctx, build.Namespace("argocd"))
		for _, step := range []struct{ line, says, value string }{
			{"warren protect argocd --dry-run=client", "namespace/argocd protected (dry run)\n", ""},
			{"warren protect argocd --dry-run=server", "namespace/argocd protected (server dry run)\n", ""},
			{"warren protect argocd", "namespace/argocd protected\n", "true"},
			{"warren protect argocd", "namespace/argocd unchanged\n", "true"},
			{"warren protect argocd --off -o name", "namespace/argocd\n", ""},
			{"warren protect argocd --off", "namespace/argocd unchanged\n", ""},
		} {
			Expect(kubectl(ctx, admin, step.line)).To(Equal(step.says), step.line)
			namespace := build.Namespace("argocd")
			Expect(world.Admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			Expect(namespace.Labels[v1alpha1.LabelProtected]).To(Equal(step.value), step.line)
		}
	})

	It("refuses a namespace of a tree, one that isn't there, and a user who may not", func(ctx SpecContext) {
		create(ctx, build.Root("p-root"), build.Child("p-child", "p-root"), build.Namespace("p-plain"),
			build.RoleBinding("p-plain", "carol", "cluster-admin", build.RBACUser("carol")))
		for line, message := range map[string]string{
			"warren protect p-root":  "namespace p-root belongs to a tree",
			"warren protect p-child": "namespace p-child belongs to a tree",
			"warren protect nosuch":  `namespaces "nosuch" not found`,
			"warren protect A":       `invalid namespace name "A"`,
			"warren protect":         "name one namespace, not 0",
		} {
			Expect(kubectl(ctx, admin, line)).To(SatisfyAll(HavePrefix("error: "), ContainSubstring(message)), line)
		}
		Eventually(ctx, func() string { return kubectl(ctx, "carol", "warren protect p-plain") }).
			Should(ContainSubstring("only the operator and cluster administrators may change these keys"))
	})
})
