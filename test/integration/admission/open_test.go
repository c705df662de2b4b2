package admission_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// These need a configuration of their own: that of the component open-access, and what only one case can bear.
var _ = Describe("with open-access", Ordered, func() {
	var open cluster

	BeforeAll(func(ctx SpecContext) {
		w, err := test.Start(ctx, test.Options{Webhooks: true, Components: []string{"config/components/open-access"}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		open = cluster{w}
	})

	It("ACC-T01 everybody may look, and make as many LNamespaces as the configuration says", func(ctx SpecContext) {
		by := func(c cluster, args ...string) answer {
			out, err, code := c.Kubectl(ctx, "carol", args...)
			return answer{out, err, code}
		}
		Expect(by(shared, "get", "pods", "-n", "default")).To(refuse("Forbidden"))
		Expect(by(shared, "auth", "can-i", "create", "lnamespaces")).To(HaveField("Code", 1))

		Expect(by(open, "get", "pods", "-n", "default")).To(HaveField("Code", 0))
		Expect(by(open, "get", "secrets", "-n", "default")).To(refuse("Forbidden"))
		for i := range 5 {
			name := fmt.Sprintf("t01-%d", i)
			Expect(open.create(ctx, build.Tenant(name).Object(), "--as=carol", "--as-group=system:authenticated")).To(allow())
			Expect(open.lns(ctx, name).Spec.Managers).To(Equal(build.Users("carol")))
		}
		Expect(open.create(ctx, build.Tenant("t01-5").Object(), "--as=carol", "--as-group=system:authenticated")).To(refuse("carol has 5 of 5 LNamespaces"))
		Expect(open.create(ctx, build.Tenant("t01-admins").Managers("mia").Sudoers("mia").Object())).To(allow())
	})

	// SUB-D4 for the configuration.
	It("and a configuration that has just allowed it, what is below goes along", func(ctx SpecContext) {
		open.put(ctx, build.Root("d4-root"))
		open.grow(ctx, "d4-root/d4-sub", "d4-sub/d4-deep1", "d4-sub/d4-deep2")
		Expect(open.kubectl(ctx, "delete", "subnamespace", "d4-sub", "-n", "d4-root")).To(refuse("d4-sub has sub-namespaces (d4-deep1, d4-deep2)"))
		Expect(open.Operator.WriteConfig(strings.Replace(open.OperatorConfig, "subNamespaces:\n",
			"subNamespaces:\n  allowCascadingDeletion: true\n  namingPolicies: [{root: a, match: \"^z-$0\"}]\n", 1))).To(Succeed())
		Eventually(open.kubectl).WithArguments(ctx, "delete", "subnamespace", "d4-sub", "-n", "d4-root", "--wait=false").Should(allow())
		for _, name := range []string{"d4-sub", "d4-deep1", "d4-deep2"} {
			Eventually(open.gone(build.Namespace(name))).WithContext(ctx).Should(Succeed())
		}
	})

	It("SUB-D9 and cascading in the configuration, a template that is referenced stays", func(ctx SpecContext) {
		open.put(ctx, build.Template("d9-base"), build.Root("d9-r1", v1alpha1.LabelTemplate, "d9-base"))
		Eventually(open.kubectl).WithArguments(ctx, "delete", "namespace", "d9-base", "--dry-run=server").Should(refuse("is referenced by: d9-r1"))
		Expect(open.kubectl(ctx, "delete", "namespace", "d9-base")).To(refuse("is referenced by: d9-r1"))
		Expect(open.now(ctx, "d9-base")).To(active())
	})

	It("SUB-N4 and a policy that matches a root's name twice, the leftmost match counts", func(ctx SpecContext) {
		open.put(ctx, build.Root("banana"))
		Eventually(open.create).WithArguments(ctx, build.SubNamespace("banana", "z-na"), "--dry-run=server").Should(refuse("must match ^z-a"))
		Expect(open.create(ctx, build.SubNamespace("banana", "z-a"))).To(allow())
	})
})
