package tenants_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("a limit of LNamespaces for each maker", SpecPriority(1), func() {
	It("ACC-T03 of LNamespaces sent at once, restored, or of service accounts, three of each creator are Ready; the others have neither "+
		"Namespace nor edit pair, and follow when one goes; ACC-T04 who becomes warren:sudo:TENANT by a tenant that carol created is "+
		"refused, because the LNamespace would count for her", func(ctx SpecContext) {
		const most = 3
		options := devcluster.Options{Webhooks: true}
		options.Operator.Config = sudoMode("").text() + fmt.Sprintf("tenants: {maxPerCreator: %d}\n", most)
		f := of(ownWorld(ctx, options, "t03"), "t03")
		role, ci, carol := f.own("creator"), f.own("ci"), f.own("carol")
		f.create(ctx, build.ClusterRole(role, build.Rule(v1alpha1.Domain, "lnamespaces", "create")),
			build.ClusterRoleBinding(role, role, build.RBACUser(carol), build.RBACGroup("system:authenticated")))
		allowed(ctx, f.as("carol"), making(build.Tenant(f.own("hers-first")).Object(), "LNamespace"))
		first, second := f.with(f.serviceAccount(ctx, ci, "first"), ""), f.with(f.serviceAccount(ctx, ci, "second"), "")

		var together sync.WaitGroup
		send := func(c client.Client, name string) {
			together.Go(func() {
				defer GinkgoRecover()
				err := test.UntilWebhookAnswers(func() error { return c.Create(ctx, build.Tenant(f.own(name)).Object()) })
				if err != nil {
					Expect(err).To(MatchError(ContainSubstring(" of 3 LNamespaces")))
				}
			})
		}
		for n := range 11 {
			send(f.as("carol"), fmt.Sprintf("hers-%02d", n))
		}
		for n := range 5 {
			send(first, fmt.Sprintf("ci-first-%d", n))
			send(second, fmt.Sprintf("ci-second-%d", n))
		}
		together.Wait()
		for n := range 3 {
			restored := build.Tenant(f.own(fmt.Sprintf("hers-restored-%d", n))).Sudoers(carol).Object()
			f.create(ctx, build.Annotated(restored, v1alpha1.AnnotationCreator, carol))
		}
		Eventually(f.made(ctx, "hers-")).WithContext(ctx).Should(And(HaveField("Ready", HaveLen(most)), HaveField("Held", Not(BeEmpty())),
			HaveField("Rest", BeEmpty())))
		Eventually(f.made(ctx, "ci-")).WithContext(ctx).Should(And(HaveField("Ready", HaveLen(most)), HaveField("Rest", BeEmpty())))
		of, err := f.made(ctx, "hers-")()
		Expect(err).NotTo(HaveOccurred())
		for _, held := range of.Held {
			f.Gone(ctx, build.Namespace(held), &rbacv1.ClusterRole{ObjectMeta: build.Namespace("warren:edit:" + held).ObjectMeta})
		}

		By("one of hers goes")
		Expect(test.UntilWebhookAnswers(func() error { return f.Admin().Delete(ctx, build.Tenant(of.Ready[0]).Object()) })).To(Succeed())
		f.Gone(ctx, build.Tenant(of.Ready[0]).Object())
		Eventually(f.made(ctx, "hers-")).WithContext(ctx).Should(And(HaveField("Ready", HaveLen(most)), HaveField("Rest", BeEmpty())))

		By("a service account of a tenant of hers")
		inside := f.with(f.serviceAccount(ctx, of.Ready[1], "robot"), "")
		Expect(test.UntilWebhookAnswers(func() error { return inside.Create(ctx, build.Tenant(f.own("inside")).Object()) })).
			To(MatchError(ContainSubstring(carol + " has ")))

		By("the user that a group of sudoers of a tenant of hers becomes")
		f.set(ctx, f.Admin(), of.Ready[1], sudoers(append(build.Users(carol), build.Group(f.own("oncall")))...))
		f.ready(ctx, of.Ready[1])
		raised := making(build.Tenant(f.own("raised")).Object(), "LNamespace")
		Eventually(func() error { return raised.send(ctx, f.becoming("carol", "warren:sudo:"+of.Ready[1])) }).WithContext(ctx).
			Should(MatchError(ContainSubstring(carol + " has ")))
		Consistently(f.made(ctx, "hers-")).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(HaveField("Ready", HaveLen(most)))
	}, SpecTimeout(5*time.Minute))
})

// Each LNamespace is refused once, because its namespace exists. Then the command in the refusal is run.
var _ = Describe("an LNamespace of a cluster admin for a namespace that exists", func() {
	It("ACC-N16 a cluster admin runs the command that the refusal has, for system:masters or creator carol, and the LNamespace is "+
		"Adopted; carol's second one gets LimitExceeded", func(ctx SpecContext) {
		options := devcluster.Options{Webhooks: true}
		options.Operator.Config = sudoMode("").text() + "tenants: {maxPerCreator: 1}\n"
		f := of(ownWorld(ctx, options, "n16"), "n16")
		carol := f.own("carol")
		create := func(lns client.Object, mark string) {
			GinkgoHelper()
			f.create(ctx, build.Namespace(lns.GetName()))
			refusal := test.UntilWebhookAnswers(func() error { return f.Admin().Create(ctx, lns.DeepCopyObject().(client.Object)) })
			Expect(refusal).To(MatchError(ContainSubstring("tenancy.warren.dev/adopt=" + mark + " --overwrite")))
			command := regexp.MustCompile(`kubectl (annotate namespace .* --overwrite)`).FindStringSubmatch(refusal.Error())
			_, stderr, code := f.KubectlWith(ctx, controlplane.Admin, "", strings.Fields(command[1])...)
			Expect(code).To(BeZero(), stderr)
			f.create(ctx, lns)
		}
		adopted := func(name string) {
			GinkgoHelper()
			f.says(ctx, name, v1alpha1.ConditionNamespaceReady, metav1.ConditionTrue, v1alpha1.ReasonAdopted)
		}
		admins, carols, more := f.own("admins"), f.own("carols"), f.own("more")
		create(build.Tenant(admins).Managers(carol).Object(), v1alpha1.MarkClusterAdmins)
		adopted(admins)
		create(build.Annotated(build.Tenant(carols).Managers(carol).Object(), v1alpha1.AnnotationCreator, carol), carol)
		adopted(carols)
		create(build.Annotated(build.Tenant(more).Managers(carol).Object(), v1alpha1.AnnotationCreator, carol), carol)
		f.says(ctx, more, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonLimitExceeded)
	}, SpecTimeout(5*time.Minute))
})

// outcomes are LNamespaces by their condition: those that are Ready, those that are held back by a limit, and all others.
type outcomes struct{ Ready, Held, Rest []string }

// made sorts the LNamespaces of this case whose names begin with prefix.
func (f *fixture) made(ctx context.Context, prefix string) func() (outcomes, error) {
	return func() (of outcomes, err error) {
		tenants := &v1alpha1.LNamespaceList{}
		if err := f.Admin().List(ctx, tenants); err != nil {
			return of, err
		}
		for _, lns := range tenants.Items {
			if !strings.HasPrefix(lns.Name, f.own(prefix)) {
				continue
			}
			ready := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady)
			named := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady)
			switch {
			case ready != nil && ready.Status == "True":
				of.Ready = append(of.Ready, lns.Name)
			case named != nil && named.Reason == string(v1alpha1.ReasonLimitExceeded):
				of.Held = append(of.Held, lns.Name)
			default:
				of.Rest = append(of.Rest, lns.Name)
			}
		}
		return of, nil
	}
}
