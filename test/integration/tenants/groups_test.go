package tenants_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("the group of a tenant's sudoers", Ordered, ContinueOnFailure, SpecPriority(1), func() {
	var w *devcluster.World

	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "r15", "r16", "r17")
	})

	It("ACC-R15 a tenant is removed by force while the operator is stopped; eve, who creates its name anew, gets nothing in a halted "+
		"namespace with the old copy of warren:sudoers", func(ctx SpecContext) {
		f := of(w, "r15")
		payments, mid, web := f.own("payments"), f.own("mid"), f.own("web")
		f.settle(ctx, f.payments())
		f.grow(ctx, payments, mid)
		f.grow(ctx, mid, web)
		secret := build.Secret(web, "kept", "v")
		f.create(ctx, secret)

		By("the tenant goes by force while the operator is away; web stays, halted, with its copy of warren:sudoers")
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		for _, object := range []client.Object{build.SubNamespace(payments, mid), build.SubNamespace(mid, web), build.Tenant(payments).Object()} {
			f.LetGo(ctx, object)
		}
		for _, object := range []client.Object{build.Tenant(payments).Object(), build.Namespace(mid), build.Namespace(payments)} {
			Expect(client.IgnoreNotFound(f.Admin().Delete(ctx, object))).To(Succeed())
			f.Gone(ctx, object)
		}
		f.Exists(ctx, build.RoleBinding(web, "warren:sudoers", ""))
		eve := f.own("eve")
		f.create(ctx, build.Tenant(payments).Users(eve).Managers(eve).Sudoers(eve).Object())
		Expect(w.Operator.Start(ctx)).To(Succeed())

		Eventually(func() any { return f.get(ctx, payments).Status.Namespace }).WithContext(ctx).Should(Equal(payments))
		Eventually(func() any {
			return v1alpha1.FindCondition(f.get(ctx, payments).Status.Conditions, v1alpha1.ConditionAccessReady)
		}).WithContext(ctx).ShouldNot(BeNil())
		Consistently(func(g Gomega) {
			g.Expect(secretsIn(web).send(ctx, f.sudo("eve", "payments"))).To(beDenied())
			g.Expect(podsIn(web).send(ctx, f.as("eve"))).To(beDenied())
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Succeed())
	}, SpecTimeout(8*time.Minute))

	It("ACC-R16 a manager empties and fills the sudoers five times; sudo works each time, and the operator lists no RoleBindings or "+
		"ClusterRoleBindings of the whole cluster", func(ctx SpecContext) {
		f := of(w, "r16")
		payments, bob := f.own("payments"), f.own("bob")
		f.settle(ctx, f.payments())
		Eventually(func() any { return f.get(ctx, payments).Status.SudoGrantedAt }).WithContext(ctx).ShouldNot(BeNil())
		mark := f.Mark(ctx)
		for range 5 {
			f.set(ctx, f.as("mia"), payments, sudoers())
			f.ready(ctx, payments)
			f.set(ctx, f.as("mia"), payments, sudoers(build.Users(bob)...))
			f.ready(ctx, payments)
			allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		}
		requests, err := f.Requests(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		var lists, writes []string
		for _, r := range requests {
			switch {
			case r.User != controlplane.Operator || r.Resource != "rolebindings" && r.Resource != "clusterrolebindings":
			case r.Verb == "list" && r.Namespace == "":
				lists = append(lists, r.String())
			case r.Verb == "update":
				writes = append(writes, r.String())
			}
		}
		Expect(writes).NotTo(BeEmpty(), "the log has what the operator did")
		Expect(lists).To(BeEmpty())
	}, SpecTimeout(8*time.Minute))

	It("ACC-R17 a glob begins to protect the root of a tenant with sudo, and sudo works throughout, without GroupInUse; ACC-D12 a "+
		"deleted tenant with a protected root loses its rights, and its status says is protected; its Namespace stays until the glob is "+
		"removed", func(ctx SpecContext) {
		f := of(w, "r17")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Expect(w.Operator.Configure(ctx, strings.TrimRight(w.OperatorConfig, "\n")+"\nprotectedNamespaces: [\""+f.own("*")+"\"]\n")).To(Succeed())
		stop := throughout(ctx, f.sudo("bob", "payments"), podsIn(payments))
		f.set(ctx, f.as("mia"), payments, map[string]any{"allowCascadingDeletion": true})
		f.says(ctx, payments, v1alpha1.ConditionAccessReady, metav1.ConditionTrue, v1alpha1.ReasonGranted)
		Consistently(func() v1alpha1.Reason {
			c := v1alpha1.FindCondition(f.get(ctx, payments).Status.Conditions, v1alpha1.ConditionAccessReady)
			return v1alpha1.Reason(c.Reason)
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Equal(v1alpha1.ReasonGranted))
		Expect(stop()).To(Succeed())

		By("ACC-D12 the tenant ends: its rights go, the protected Namespace stays until that is taken back")
		root := build.Namespace(payments)
		f.Exists(ctx, root)
		Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
		Eventually(func() string {
			return v1alpha1.FindCondition(f.get(ctx, payments).Status.Conditions, v1alpha1.ConditionNamespaceReady).Message
		}).WithContext(ctx).Should(ContainSubstring("is protected"))
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(payments))
		Consistently(func(g Gomega) {
			g.Expect(f.Read(root)(ctx)).To(Succeed())
			g.Expect(root.DeletionTimestamp).To(BeNil())
		}).WithContext(ctx).WithTimeout(test.Quiet(2 * time.Second)).Should(Succeed())
		Expect(w.Operator.Configure(ctx, w.OperatorConfig)).To(Succeed())
		f.Gone(ctx, build.Tenant(payments).Object(), root)
	}, SpecTimeout(8*time.Minute))
})
