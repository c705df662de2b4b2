package admission_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

// These cases need a configuration of their own: that of component open-access, with settings that would disturb other cases.
var _ = Describe("with open-access", Ordered, func() {
	var open cluster

	BeforeAll(func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{Webhooks: true, Components: []string{"config/components/open-access"}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		open = cluster{words.Cluster{World: w}}
	})

	It("ACC-T01 in the standard overlay carol is denied pods and LNamespaces; in the open one she lists pods, no secrets, and manages "+
		"five LNamespaces; the sixth is refused", func(ctx SpecContext) {
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
		Expect(open.create(ctx, build.Tenant("t01-5").Object(), "--as=carol", "--as-group=system:authenticated")).
			To(refuse("carol has 5 of 5 LNamespaces"))
		Expect(open.create(ctx, build.Tenant("t01-admins").Managers("mia").Sudoers("mia").Object())).To(allow())
	})

	It("ACC-W04 who impersonates warren:sudo:TENANT with its group may create an LNamespace without spec; its lists stay empty, and the "+
		"Warning has that user", func(ctx SpecContext) {
		open.Create(ctx, build.Tenant("w04-payments").Sudoers("bob").SudoerSubjects(build.Group("w04-oncall")).Object())
		var made answer
		Eventually(func() int {
			out, err, code := open.KubectlWith(ctx, "bob", "apiVersion: tenancy.warren.dev/v1alpha1\nkind: LNamespace\nmetadata: {name: w04-x}\n",
				"create", "-f", "-", "--as=warren:sudo:w04-payments", "--as-group=w04-payments-sudoers")
			made = answer{out, err, code}
			return code
		}).WithContext(ctx).Should(BeZero(), "sudo is granted soon")
		Expect(made).To(warn("warren:sudo:w04-payments can't be listed"))
		Expect(open.lns(ctx, "w04-x").Spec.Managers).To(BeEmpty())
		Expect(open.lns(ctx, "w04-x").Spec.Sudoers).To(BeEmpty())
	})

	It("ACC-V03 istio-system and the operator's namespace are refused as reserved; if tenants.reservedNames is empty, only the "+
		"operator's namespace is", func(ctx SpecContext) {
		Expect(open.create(ctx, build.Tenant("istio-system").Managers("mia").Sudoers("mia").Object())).
			To(refuse("istio-system is a reserved name"))
		Expect(open.Operator.Configure(ctx, strings.Replace(open.OperatorConfig, "tenants:\n", "tenants:\n  reservedNames: []\n", 1))).
			To(Succeed())
		Eventually(open.create).WithArguments(ctx, build.Tenant("istio-system").Managers("mia").Sudoers("mia").Object()).Should(allow())
		Expect(open.create(ctx, build.Tenant("warren-system").Managers("mia").Sudoers("mia").Object())).To(refuse("reserved"))
	})

	It("SUB-S6 if the file no longer allows app, the Namespace loses it; the SubNamespace that has it may change, but not that value: "+
		"spec.labels[app]: Forbidden", func(ctx SpecContext) {
		Expect(open.Operator.Configure(ctx, strings.Replace(open.OperatorConfig, "subNamespaces:\n",
			"subNamespaces:\n  labels: [s6-app]\n  annotations: [memo]\n", 1))).To(Succeed())
		open.Create(ctx, build.Root("s6-payments"), build.SubNamespace("s6-payments", "s6-web", "s6-app", "web"))
		Eventually(open.ns("s6-web")).WithContext(ctx).Should(carry("s6-app", "web"))
		Expect(open.Operator.Configure(ctx, strings.Replace(open.OperatorConfig, "subNamespaces:\n", "subNamespaces:\n  annotations: [memo]\n",
			1))).To(Succeed())
		Eventually(open.ns("s6-web")).WithContext(ctx).Should(lack("s6-app"))
		patch := func(fields string) answer {
			return open.kubectl(ctx, "patch", "subnamespace", "s6-web", "-n", "s6-payments", "--type=merge", "-p", `{"spec":`+fields+`}`)
		}
		Expect(patch(`{"annotations":{"memo":"x"}}`)).To(allow())
		Expect(patch(`{"labels":{"s6-app":"new"}}`)).To(refuse("spec.labels[s6-app]: Forbidden"))
	})

	It("SUB-D4 once the configuration allows cascading deletion, a SubNamespace is deleted with all below", func(ctx SpecContext) {
		open.Create(ctx, build.Root("d4-root"))
		open.grow(ctx, "d4-root/d4-sub", "d4-sub/d4-deep1", "d4-sub/d4-deep2")
		Expect(open.kubectl(ctx, "delete", "subnamespace", "d4-sub", "-n", "d4-root")).
			To(refuse("d4-sub has sub-namespaces (d4-deep1, d4-deep2)"))
		Expect(open.Operator.Configure(ctx, strings.Replace(open.OperatorConfig, "subNamespaces:\n",
			"subNamespaces:\n  allowCascadingDeletion: true\n  namingPolicies: [{root: a, match: \"^z-$0\"}]\n", 1))).To(Succeed())
		Eventually(open.kubectl).WithArguments(ctx, "delete", "subnamespace", "d4-sub", "-n", "d4-root", "--wait=false").Should(allow())
		for _, name := range []string{"d4-sub", "d4-deep1", "d4-deep2"} {
			open.Gone(ctx, build.Namespace(name))
		}
	})

	It("SUB-D9 also if the configuration allows cascading deletion, a template "+
		"that a root references is not deleted: is referenced by: r1", func(ctx SpecContext) {
		open.Create(ctx, build.Template("d9-base"), build.Root("d9-r1", v1alpha1.LabelTemplate, "d9-base"))
		Eventually(open.kubectl).WithArguments(ctx, "delete", "namespace", "d9-base", "--dry-run=server").
			Should(refuse("is referenced by: d9-r1"))
		Expect(open.kubectl(ctx, "delete", "namespace", "d9-base")).To(refuse("is referenced by: d9-r1"))
		Expect(open.now(ctx, "d9-base")).To(active())
	})

	It("SUB-N4 if a policy's root a matches root banana several times, "+
		"only the leftmost match counts: ^z-$0 allows z-a, and refuses z-na", func(ctx SpecContext) {
		open.Create(ctx, build.Root("banana"))
		Eventually(open.create).WithArguments(ctx, build.SubNamespace("banana", "z-na"), "--dry-run=server").Should(refuse("must match ^z-a"))
		Expect(open.create(ctx, build.SubNamespace("banana", "z-a"))).To(allow())
	})

	It("HIER-M01 nobody is asked, and no SubjectAccessReview is sent, if spec.parent is unset, does not change, or names the "+
		"parent that x has", func(ctx SpecContext) {
		open.Create(ctx, clusterRoles()...)
		open.Create(ctx, build.Root("m01-org"), build.Child("m01-x", "m01-org"))
		Eventually(open.ns("m01-x")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("m01-org"), "1"))
		open.let(ctx, "m01-user", "author", "m01-x")
		Eventually(open.kubectl).WithArguments(ctx, "auth", "can-i", "create", "hierarchyconfigurations", "-n", "m01-x", "--as=m01-user").
			Should(HaveField("Code", 0))
		since := open.Mark(ctx)
		patch := func(fields string) answer {
			return open.kubectl(ctx, "patch", "hierarchyconfiguration", "hierarchy", "-n", "m01-x", "--as=m01-user", "--type=merge", "-p",
				`{"spec":`+fields+`}`)
		}
		Expect(open.create(ctx, build.Hierarchy("m01-x"), "--as=m01-user")).To(allow())
		Expect(patch(`{"allowCascadingDeletion":true}`)).To(allow())
		Expect(patch(`{"parent":"m01-org"}`)).To(allow())
		Expect(patch(`{"allowCascadingDeletion":false}`)).To(allow())
		requests, err := open.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(ContainElement(HaveField("Resource", "hierarchyconfigurations")))
		Expect(requests).NotTo(ContainElement(And(HaveField("Resource", "subjectaccessreviews"), HaveField("User", controlplane.Operator))))
		// The audit log does show a review when the operator sends one.
		Expect(patch(`{"parent":""}`)).To(refuse(rooted("m01-org").needs))
		requests, err = open.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(ContainElement(And(HaveField("Resource", "subjectaccessreviews"), HaveField("User", controlplane.Operator))))
	})
})
