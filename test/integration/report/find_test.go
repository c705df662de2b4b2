package report_test

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const nothingFound = "you may not list namespaces, and your rights name no tenant, as those of a user never do"

var _ = Describe("one's own tenants, with no right to list namespaces", func() {
	It("ACC-E07 ns, tree, graph, get and describe find the tenants of a manager or sudoer who may not list namespaces; describe shows "+
		"mia limits and cost center", func(ctx SpecContext) {
		for _, person := range []string{"mia", "bob"} {
			out, problems, status := world.Kubectl(ctx, person, "warren", "ns", "-o", "name")
			Expect(status).To(BeZero(), problems)
			// Cases beside this one have tenants of their own, with the same people.
			Expect(strings.Fields(out)).To(ContainElements("namespace/payments", "namespace/shop"))
			Expect(problems).To(MatchRegexp(`^Warning: you may read no namespace of payments,.* shop: `))
			Expect(warren(ctx, person, "ns")).To(MatchRegexp(`(?m)^shop +shop +<none> +Unknown$`))
			Expect(strings.Fields(warren(ctx, person, "tree"))).To(ContainElements("payments", "shop"))
			Expect(warren(ctx, person, "graph -o mermaid")).To(And(ContainSubstring(`"payments<br>`), ContainSubstring(`"shop<br>`)))
			_, problems, _ = world.Kubectl(ctx, person, "warren", "get", "configmaps")
			Expect(problems).To(MatchRegexp("you may not list configmaps in any of your namespaces: payments,.* shop"))
		}
		Expect(warren(ctx, "mia", "describe shop")).To(And(
			MatchRegexp(`(?m)^Limits: +sub-namespaces 0 \(`), MatchRegexp(`(?m)^Cost center: +4711$`)))
		_, problems, _ := world.Kubectl(ctx, "bob", "warren", "describe", "shop")
		Expect(problems).To(ContainSubstring("you may not read it"))
		out, problems, status := world.Kubectl(ctx, "bob", "sudo", "--tenant", "payments", "warren", "ns", "--tenant", "payments", "-o", "name")
		Expect([]any{out, status}).To(Equal([]any{"namespace/payments\nnamespace/pay-web\n", 0}), problems)
	})

	It("ACC-E08 a user without a namespace in the kubeconfig reads that her rights name no tenant, and what to do; with a context in "+
		"pay-web, she gets her tree", func(ctx SpecContext) {
		for _, command := range []string{"ns", "tree", "get configmaps", "graph"} {
			_, problems, status := world.Kubectl(ctx, "alice", append([]string{"warren"}, strings.Fields(command)...)...)
			Expect(status).To(Equal(1))
			Expect(problems).To(And(HavePrefix("error: "+nothingFound+": name "),
				HaveSuffix("kubectl config set-context --current --namespace=NAMESPACE; a manager knows the names\n")), command)
		}
		config, err := clientcmd.LoadFromFile(world.Kubeconfig("alice"))
		Expect(err).NotTo(HaveOccurred())
		current := config.Contexts[config.CurrentContext]
		config.Contexts["work"] = &api.Context{Cluster: current.Cluster, AuthInfo: current.AuthInfo, Namespace: "pay-web"}
		config.Contexts["other"] = &api.Context{Cluster: "other", AuthInfo: current.AuthInfo, Namespace: "shop"}
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
		for command, want := range map[string]string{
			"ns -o name": "namespace/payments\nnamespace/pay-web\n", "tree -o name": "namespace/payments\nnamespace/pay-web\n",
			"get rolebindings --field-selector metadata.name=warren:users -o name": "rolebinding.rbac.authorization.k8s.io/warren:users\n" +
				"rolebinding.rbac.authorization.k8s.io/warren:users\n",
		} {
			Expect(warren(ctx, "alice", command+" --kubeconfig "+path)).To(Equal(want), command)
		}
	})

	It("ACC-E25 the tab key completes a user's own namespaces, also after --namespace, and a manager's tenants; quota --tenant names "+
		"what a user may not read", func(ctx SpecContext) {
		config, err := clientcmd.LoadFromFile(world.Kubeconfig("alice"))
		Expect(err).NotTo(HaveOccurred())
		config.Contexts[config.CurrentContext].Namespace = "pay-web"
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
		for _, words := range []string{"tree pay", "quota -n pay", "describe pay"} {
			line := "__complete " + strings.Replace(words, " ", " --kubeconfig "+path+" ", 1)
			Eventually(func() string { return warren(ctx, "alice", line) }).WithContext(ctx).
				Should(HavePrefix("payments\npay-web\n:4"), "%s: once her rights are in the tree", line)
		}
		Expect(warren(ctx, "mia", "__complete add x --tenant pay")).To(HavePrefix("payments\n:4"))
		Expect(warren(ctx, "alice", "quota --tenant payments")).To(HavePrefix("You may read no limit of these trees:\nlimit of payments: "))
	})
})
