package trees_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// tenantWithTree makes a tenant with one user, and sub-namespaces NAME-web and, below it, NAME-db, in which the user has their rights.
func (c cluster) tenantWithTree(ctx context.Context, name, user string) {
	GinkgoHelper()
	c.Create(ctx, build.Tenant(name).Users(user).Object())
	Eventually(c.ns(name)).WithContext(ctx).Should(standing(name, "0"))
	c.grow(ctx, name+"/"+name+"-web", name+"-web/"+name+"-db")
	for _, namespace := range []string{name, name + "-web", name + "-db"} {
		Eventually(func() string {
			_, problems, _ := c.Kubectl(ctx, controlplane.Admin, "get", "configmaps,secrets", "-n", namespace, "--as", user)
			return problems
		}).WithContext(ctx).ShouldNot(ContainSubstring("forbidden"), "the rights of %s have to reach %s", user, namespace)
	}
}

// at is a kubeconfig of the cluster admin whose context names a namespace.
func at(namespace string) string { return shared.at(namespace) }

func (c cluster) at(namespace string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig(controlplane.Admin))
	Expect(err).NotTo(HaveOccurred())
	config.Contexts[config.CurrentContext].Namespace = namespace
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

// columns are the cells of the first columns of a table, without its head.
func columns(table string, n int) []string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line)[:n], " "))
	}
	return lines[1:]
}

var _ = Describe("kubectl warren get", func() {
	It("SUB-X9 kubectl warren get --tenant lists the objects of that tree alone, or of a namespace and those below; in one table, or each "+
		"form of -o; SUB-X9 without --tenant, the kubeconfig's namespace names the tree; if it is in none of the user's, it is an error: name "+
		"one with --tenant; SUB-X9 --tenant of another team's tenant is an error (or you may not read it), and so is get nodes: nodes are in "+
		"no namespace", func(ctx SpecContext) {
		shared.tenantWithTree(ctx, "x9-pay", "x9-ann")
		shared.Create(ctx, build.Root("x9-shop"), build.ConfigMap("x9-shop", "foreign", "x"), build.ConfigMap("x9-pay", "one", "x", "app", "web"),
			build.ConfigMap("x9-pay-web", "two", "x"), build.ConfigMap("x9-pay-db", "three", "x", "app", "web"))
		get := func(args ...string) string {
			GinkgoHelper()
			return shared.done(ctx, controlplane.Admin, append([]string{"get", "--as", "x9-ann"}, args...)...)
		}
		own := func(table string) []string {
			var lines []string
			for _, line := range columns(table, 2) {
				if !strings.HasSuffix(line, " kube-root-ca.crt") {
					lines = append(lines, line)
				}
			}
			return lines
		}

		By("merged, as tables of the API server")
		table := get("cm", "--tenant", "x9-pay")
		Expect(table).To(MatchRegexp(`^NAMESPACE +NAME +DATA +AGE\n`))
		Expect(strings.Count(table, "NAMESPACE")).To(Equal(1))
		Expect(own(table)).To(Equal([]string{"x9-pay one", "x9-pay-web two", "x9-pay-db three"}))
		Expect(own(get("cm", "--tenant", "x9-pay-web"))).To(Equal([]string{"x9-pay-web two", "x9-pay-db three"}))
		Expect(columns(get("configmaps", "--tenant", "x9-pay", "-l", "app=web"), 2)).To(Equal([]string{"x9-pay one", "x9-pay-db three"}))
		Expect(get("cm", "--tenant", "x9-pay", "-l", "app=web", "--no-headers", "-L", "app")).
			To(MatchRegexp(`^x9-pay +one +1 +\S+ +web\nx9-pay-db +three +1 +\S+ +web\n$`))
		Expect(get("rolebindings", "--tenant", "x9-pay", "-o", "wide")).
			To(MatchRegexp(`^NAMESPACE +NAME +ROLE +AGE +USERS +GROUPS +SERVICEACCOUNTS\n`))

		By("in kubectl's other forms")
		list := &metav1.PartialObjectMetadataList{}
		Expect(json.Unmarshal([]byte(get("cm", "--tenant", "x9-pay", "-l", "app=web", "-o", "json")), list)).To(Succeed())
		Expect(list.Kind).To(Equal("List"))
		Expect(list.Items).To(HaveExactElements(
			And(HaveField("Kind", "ConfigMap"), HaveField("Namespace", "x9-pay")),
			And(HaveField("Kind", "ConfigMap"), HaveField("Namespace", "x9-pay-db"))))
		Expect(get("cm", "--tenant", "x9-pay", "-l", "app=web", "-o", "name")).To(Equal("configmap/one\nconfigmap/three\n"))
		Expect(get("cm", "--tenant", "x9-pay", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}")).To(Equal("one three"))
		Expect(get("cm", "--tenant", "x9-pay", "-l", "app=web", "-o",
			"custom-columns=AT:.metadata.namespace,NAME:{.metadata.name},OWNER:.metadata.labels.owner")).
			To(MatchRegexp(`^AT +NAME +OWNER\nx9-pay +one +<none>\nx9-pay-db +three +<none>\n$`))
		both := get("cm,rolebindings", "--tenant", "x9-pay", "-l", "app=web")
		Expect(both).To(ContainSubstring("configmap/one"))
		Expect(both).NotTo(ContainSubstring("rolebinding"))
		out, said, code := shared.warren(ctx, controlplane.Admin, "get", "cm", "--tenant", "x9-pay", "-l", "app=none", "--as", "x9-ann")
		Expect([]any{out, said, code}).To(Equal([]any{"", "No resources found in your namespaces.\n", 0}))

		By("found from the kubeconfig's namespace, for this tenant lists nobody who may read it")
		Expect(own(get("cm", "--kubeconfig", at("x9-pay-db")))).To(Equal([]string{"x9-pay one", "x9-pay-web two", "x9-pay-db three"}))
		Expect(shared.fails(ctx, controlplane.Admin, "get", "cm", "--as", "x9-ann")).
			To(HavePrefix("you may not list namespaces, and your rights name no tenant, as those of a user never do: name one with --tenant, or "))
		Expect(shared.fails(ctx, controlplane.Admin, "get", "cm", "--tenant", "x9-shop", "--as", "x9-ann")).
			To(HavePrefix(`namespace "x9-shop" does not exist, or you may not read it`))
		Expect(shared.fails(ctx, controlplane.Admin, "get", "nodes", "--as", "x9-ann")).
			To(Equal("nodes are in no namespace: kubectl get nodes lists them"))
		Expect(shared.fails(ctx, controlplane.Admin, "get", "nosuch", "--as", "x9-ann")).To(ContainSubstring(`no resource "nosuch"`))
		Expect(shared.fails(ctx, controlplane.Admin, "get", "cm", "-o", "xml", "--as", "x9-ann")).To(ContainSubstring(`"xml"`))

		By("of every tree to a cluster admin")
		Expect(columns(shared.done(ctx, controlplane.Admin, "get", "cm", "-l", "app=web", "--tenant", "x9-pay"), 2)).
			To(Equal([]string{"x9-pay one", "x9-pay-db three"}))
		Expect(shared.done(ctx, controlplane.Admin, "get", "cm")).To(And(ContainSubstring("x9-pay-db "), ContainSubstring("foreign")))
	})

	It("SUB-X10 get secrets prints those that the user may list, and a Warning with the other namespaces; if there are none, you may not "+
		"list secrets in any of your namespaces", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("x10-pay"),
			build.Source(build.RoleBinding("x10-pay", "eve", "view", build.RBACUser("x10-eve")), v1alpha1.ModeUpdate))
		shared.grow(ctx, "x10-pay/x10-web", "x10-pay/x10-ops")
		shared.Create(ctx, build.RoleBinding("x10-web", "more", "admin", build.RBACUser("x10-eve")), build.Secret("x10-web", "key", "x"),
			build.Secret("x10-pay", "hidden", "x"))
		Eventually(func() string {
			out, problems, _ := shared.warren(ctx, controlplane.Admin, "get", "secrets", "--tenant", "x10-pay", "-o", "name", "--as", "x10-eve")
			return out + problems
		}).WithContext(ctx).Should(Equal("secret/key\nWarning: you may not list secrets in x10-ops, x10-pay: not shown\n"))
		Expect(shared.fails(ctx, controlplane.Admin, "get", "secrets", "--tenant", "x10-ops", "--as", "x10-eve")).
			To(Equal("you may not list secrets in any of your namespaces: x10-ops"))
	})

	It("SUB-X11 get -w with a selector prints the list, as table or names; then a line for each matching object that changes, also in a "+
		"namespace created meanwhile", func(ctx SpecContext) {
		shared.tenantWithTree(ctx, "x11-pay", "x11-ann")
		shared.Create(ctx, build.ConfigMap("x11-pay", "old", "x", "app", "web"))
		watching, stop := context.WithCancel(ctx)
		DeferCleanup(stop)
		follow := func(flags ...string) *gbytes.Buffer {
			GinkgoHelper()
			out := gbytes.NewBuffer()
			kubectl := devcluster.Kubectl{Path: shared.KubectlPath, Plugins: shared.Plugins, Home: GinkgoT().TempDir()}
			command := kubectl.Command(watching, shared.Kubeconfig(controlplane.Admin), "x11-ann",
				append([]string{"warren", "get", "cm", "--tenant", "x11-pay", "-l", "app=web", "-w", "--as", "x11-ann"}, flags...)...)
			command.Args[0], command.Path = "kubectl-warren", filepath.Join(shared.Plugins, "kubectl-warren") // kubectl would outlive it
			command.Args = append(command.Args[:1], command.Args[2:]...)
			command.Stdout, command.Stderr = out, GinkgoWriter
			Expect(command.Start()).To(Succeed())
			DeferCleanup(func() {
				stop()
				_ = command.Wait() // it was killed
			})
			return out
		}
		table, names := follow(), follow("-o", "name")
		Eventually(table).WithContext(ctx).Should(gbytes.Say(`NAMESPACE +NAME +DATA +AGE\nx11-pay +old +1 +\S+\n`))
		Eventually(names).WithContext(ctx).Should(gbytes.Say(`configmap/old\n`))
		shared.Create(ctx, build.ConfigMap("x11-pay-web", "other", "x"), build.ConfigMap("x11-pay-web", "new", "x", "app", "web"))
		Eventually(table).WithContext(ctx).Should(gbytes.Say(`^x11-pay-web +new +1 +\S+\n`))
		Eventually(names).WithContext(ctx).Should(gbytes.Say(`^configmap/new\n`))
		edit(ctx, shared, build.ConfigMap("x11-pay", "old", ""), func(c *corev1.ConfigMap) { c.Data["more"] = "x" })
		Eventually(table).WithContext(ctx).Should(gbytes.Say(`^x11-pay +old +2 +\S+\n`))
		shared.grow(ctx, "x11-pay/x11-late")
		shared.Create(ctx, build.ConfigMap("x11-late", "late", "x", "app", "web"))
		Eventually(table).WithContext(ctx).Should(gbytes.Say(`^x11-late +late +1 +\S+\n`), "it is found when the plugin looks again")
	})

	It("SUB-X12 kubectl warren ns lists the namespaces of the tenants that list the user; with --tenant, a namespace and those below; to a "+
		"cluster admin, all", func(ctx SpecContext) {
		shared.Create(ctx, build.ClusterRole("x12-tenants", build.Rule(v1alpha1.Domain, "lnamespaces", "list")),
			build.ClusterRoleBinding("x12-tenants", "x12-tenants", build.RBACUser("x12-ann")))
		shared.tenantWithTree(ctx, "x12-pay", "x12-ann")
		shared.tenantWithTree(ctx, "x12-hr", "x12-ann")
		shared.Create(ctx, build.Tenant("x12-shop").Users("x12-dave").Object())
		Eventually(shared.ns("x12-shop")).WithContext(ctx).Should(standing("x12-shop", "0"))
		Expect(columns(shared.done(ctx, controlplane.Admin, "ns", "--as", "x12-ann"), 4)).To(Equal([]string{
			"x12-hr x12-hr <none> Active", "x12-hr-web x12-hr x12-hr Active", "x12-hr-db x12-hr x12-hr-web Active",
			"x12-pay x12-pay <none> Active", "x12-pay-web x12-pay x12-pay Active", "x12-pay-db x12-pay x12-pay-web Active"}))
		Expect(shared.done(ctx, controlplane.Admin, "ns", "--tenant", "x12-hr", "-o", "name", "--as", "x12-ann")).
			To(Equal("namespace/x12-hr\nnamespace/x12-hr-web\nnamespace/x12-hr-db\n"))
		var document struct{ Items []gather.OwnNamespace }
		Expect(json.Unmarshal([]byte(shared.done(ctx, controlplane.Admin, "ns", "--tenant", "x12-hr-db", "-o", "json", "--as",
			"x12-ann")), &document)).To(Succeed())
		Expect(document.Items).To(Equal([]gather.OwnNamespace{{Name: "x12-hr-db", Tenant: "x12-hr", Parent: "x12-hr-web", Phase: "Active"}}))
		Expect(shared.done(ctx, controlplane.Admin, "ns", "-o", "name")).To(And(ContainSubstring("namespace/x12-shop\n"),
			ContainSubstring("namespace/x12-hr-db\n")))
		Expect(shared.done(ctx, controlplane.Admin, "ns", "--tenant", "x12-hr", "-o", "wide", "--as", "x12-ann")).
			To(HavePrefix("NAME         TENANT   PARENT       STATUS\n"))
		Expect(shared.fails(ctx, controlplane.Admin, "ns", "nosuch", "--as", "x12-ann")).
			To(HavePrefix(`kubectl warren ns takes no "nosuch"`))
	})
})
