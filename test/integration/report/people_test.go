package report_test

import (
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("one person in a tenant's lists", func() {
	It("ACC-P11 is added and removed by a manager, while the entries of others stay, also those added meanwhile", func(ctx SpecContext) {
		world.Create(ctx, build.Tenant("team").Users("dave").Managers("carol").Object())
		Eventually(func() string {
			_, problems, _ := world.Kubectl(ctx, "carol", "get", "lns", "team")
			return problems
		}).WithContext(ctx).Should(BeEmpty(), "the manager's right has to be granted")
		users := func() (names []string) {
			GinkgoHelper()
			lns := &v1alpha1.LNamespace{}
			Expect(world.Admin().Get(ctx, client.ObjectKey{Name: "team"}, lns)).To(Succeed())
			for _, subject := range lns.Spec.Users {
				names = append(names, subject.String())
			}
			return names
		}
		const of, name = " --tenant team --list users", "lnamespace.tenancy.warren.dev/team "

		By("only showing it")
		Expect(warren(ctx, "carol", "add zoe --dry-run=client"+of)).To(Equal(name + "changed: User zoe added to its users (dry run)\n"))
		Expect(warren(ctx, "carol", "add zoe --dry-run=server"+of)).To(Equal(name + "changed: User zoe added to its users (server dry run)\n"))
		Expect(warren(ctx, "carol", "add zoe --dry-run=client -o yaml"+of)).To(MatchRegexp(`(?m)^    name: zoe$`))
		Expect(users()).To(Equal([]string{"User dave"}))

		By("for users, groups and service accounts")
		Expect(warren(ctx, "carol", "add zoe"+of)).To(Equal(name + "changed: User zoe added to its users\n"))
		Expect(warren(ctx, "carol", "add zoe"+of)).To(Equal("unchanged: User zoe is among the users of team already\n"))
		warren(ctx, "carol", "add crew --kind Group"+of)
		warren(ctx, "carol", "add ci:deployer --kind ServiceAccount"+of)
		warren(ctx, "carol", "add other -n ci --kind ServiceAccount"+of)
		Expect(users()).To(Equal([]string{"User dave", "User zoe", "Group crew", "ServiceAccount ci/deployer", "ServiceAccount ci/other"}))
		Expect(warren(ctx, "carol", "remove crew --kind Group"+of)).To(Equal(name + "changed: Group crew removed from its users\n"))

		By("with a refusal that names the next step")
		refused := func(user, line string) string {
			GinkgoHelper()
			out, problems, code := world.Kubectl(ctx, user, append([]string{"warren"}, strings.Fields(line)...)...)
			Expect([]any{out, code}).To(Equal([]any{"", 1}))
			return problems
		}
		Expect(refused("carol", "remove crew"+of)).To(Equal("error: User crew is not among the users of team: those are User dave, User zoe, " +
			"ServiceAccount ci/deployer, ServiceAccount ci/other\n"))
		Expect(refused("dave", "add zed"+of)).To(ContainSubstring("you may not change the lists of tenant team, or it does not exist: "))
		Expect(refused("carol", "add warren:x"+of)).To(ContainSubstring("user names that start with warren: are reserved"))

		By("at the same time")
		before := users()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				defer GinkgoRecover()
				warren(ctx, "carol", fmt.Sprintf("add p%d", i)+of)
				warren(ctx, "carol", fmt.Sprintf("remove p%d", i)+of)
				warren(ctx, "carol", fmt.Sprintf("add q%d", i)+of)
			})
		}
		all.Wait()
		Expect(users()).To(ConsistOf(append(before, "User q0", "User q1", "User q2", "User q3", "User q4")))
	})
})
