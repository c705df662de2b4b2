package sudo_test

import (
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("kubectl sudo", func() {
	It("ACC-P03 who is no sudoer, names no tenant's namespace, or uses -A or --as reads why, status 1, and kubectl is not run; so does "+
		"who has no kubectl", func(ctx SpecContext) {
		world.Create(ctx, build.ClusterRole("reader", build.Rule("tenancy.warren.dev", "lnamespaces", "get")),
			build.ClusterRoleBinding("reader", "reader", build.RBACUser("vera")),
			build.ClusterRoleBinding("viewer", "view", build.RBACUser("walt")))
		for user, sees := range map[string]client.Object{"vera": build.Tenant("shop").Object(), "walt": build.Namespace("lonely")} {
			Eventually(world.As(user).Get).WithArguments(ctx, client.ObjectKeyFromObject(sees), sees).Should(Succeed(), user)
		}
		const unnamed = "no namespace is named, so kubectl would act in default, which belongs to no tenant: add -n NAMESPACE; for a command " +
			"that needs none, "
		for name, c := range map[string]struct {
			user string
			args []string
			want string
		}{
			"a user": {"alice", []string{"get", "pods", "-n", "pay-web"},
				"alice is not a sudoer of payments (the tenant of namespace pay-web)"},
			"nobody":                {"carol", []string{"get", "pods", "-n", "pay-web"}, "carol is not a sudoer of any tenant"},
			"in default":            {"bob", []string{"get", "pods", "-n", "default"}, "namespace default belongs to no tenant"},
			"in a system namespace": {"bob", []string{"get", "pods", "-n", "kube-system"}, "namespace kube-system belongs to no tenant"},
			"in all namespaces": {"bob", []string{"get", "pods", "-A"},
				"-A can't be used with sudo, which covers only one tenant: name a namespace with -n"},
			"as somebody": {"bob", []string{"get", "pods", "--as=x", "-n", "pay-web"}, "--as is set by kubectl sudo"},
			"who may see the tenant": {"vera", []string{"get", "pods", "-n", "shop"},
				"vera is not a sudoer of shop (the tenant of namespace shop); ask a manager: mia, Group shop-leads"},
			"a manager": {"mia", []string{"--tenant", "payments", "get", "pods"},
				"mia is not a sudoer of payments; ask a manager: mia"},
			"of another tenant":      {"otto", []string{"--tenant", "shop", "get", "pods"}, "otto is not a sudoer of shop, but of payments"},
			"of a tenant behind lns": {"otto", []string{"edit", "lns", "shop"}, "otto is not a sudoer of shop, but of payments"},
			"no tenant of that name": {"vera", []string{"--tenant", "shp", "get", "pods"},
				"there is no tenant shp, and vera is not a sudoer of any tenant: kubectl get lns lists the tenants"},
			"no name at all": {"vera", []string{"--tenant", "a/b", "get", "pods"}, "vera is not a sudoer of a/b"},
			"no namespace":   {"bob", []string{"auth", "whoami"}, unnamed + "choose a tenant with --tenant before COMMAND: payments, shop"},
			"in a namespace of nobody": {"bob", []string{"get", "pods", "-n", "lonely"},
				"namespace lonely does not exist, or belongs to no tenant of which bob is a sudoer: those are payments, shop"},
			"who may see that":               {controlplane.Admin, []string{"get", "pods", "-n", "lonely"}, "namespace lonely belongs to no tenant"},
			"who may see that there is none": {"walt", []string{"get", "pods", "-n", "nosuch"}, "there is no namespace nosuch"},
			"who may everywhere": {controlplane.Admin, []string{"get", "pods"},
				unnamed + "choose a tenant with --tenant before COMMAND"},
			"with a token of nobody": {"bob", []string{"get", "pods", "-n", "pay-web", "--token=nobody"},
				"the API server doesn't know who you are (401 Unauthorized): log in again, or choose another --context"},
		} {
			kubectl, recorded := recorder()
			got := as(c.user, kubectl).sudo(ctx, c.args...)
			Expect([]any{got.code, got.stdout, got.stderr}).To(Equal([]any{1, "", "error: " + c.want + "\n"}), name)
			Expect(recorded()).To(BeNil(), "%s: kubectl was run", name)
		}

		By("without kubectl in the PATH")
		got := as("bob", "PATH="+world.Plugins).sudo(ctx, "get", "pods", "-n", "pay-web")
		Expect([]any{got.code, got.stdout, got.stderr}).To(Equal([]any{1, "", "error: kubectl not found; set KUBECTL\n"}))
	})

	It("ACC-P10 behind a proxy that drops the headers of impersonation, kubectl sudo refuses before kubectl runs, and names the two "+
		"headers", func(ctx SpecContext) {
		config := world.Config("bob")
		target, err := url.Parse(config.Host)
		Expect(err).NotTo(HaveOccurred())
		transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
		Expect(err).NotTo(HaveOccurred())
		proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			maps.DeleteFunc(r.Out.Header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Impersonate-") })
		}})
		DeferCleanup(proxy.Close)
		through := kubeconfigThrough(proxy.URL, "bob")
		got := line{user: "bob", kubeconfig: through}.sudo(ctx, "get", "secrets", "-n", "pay-web")
		Expect(got.code).To(Equal(1))
		Expect(got.stderr).To(Equal("error: a proxy in front of the API server drops the headers Impersonate-User and Impersonate-Group, so " +
			"sudo has no effect (the API server sees bob without group payments-sudoers): use a kubeconfig that reaches the API server " +
			"without this proxy\n"))
	})

	It("ACC-P09 without a namespace, the answer names the tenants for --tenant, which works; a wrong tenant is refused with one's own, "+
		"whether or not one may read LNamespaces", func(ctx SpecContext) {
		got := as("otto").sudo(ctx, "get", "pods")
		Expect([]any{got.code, got.stdout}).To(Equal([]any{1, ""}))
		Expect(got.stderr).To(And(ContainSubstring("no namespace is named"), ContainSubstring("add -n NAMESPACE"),
			HaveSuffix("with --tenant before COMMAND: payments\n")))

		for _, c := range [][]string{{"otto", "payments", "warren:sudo:payments"}, {"bob", "shop", "bob"}} {
			got = as(c[0]).sudo(ctx, "--tenant", c[1], "auth", "whoami", "-o", "json")
			Expect(got.code).To(BeZero(), got.stderr)
			info := asJSON(got.stdout)["status"].(map[string]any)["userInfo"].(map[string]any)
			Expect(info["username"]).To(Equal(c[2]))
			Expect(info["groups"]).To(ContainElement(c[1] + "-sudoers"))
		}

		got = as("walt").sudo(ctx, "--tenant", "paymnts", "get", "pods")
		Expect(got.stderr).To(Equal("error: walt is not a sudoer of paymnts, but of payments, shop\n"), "who may not read LNamespaces")
		world.Create(ctx, build.ClusterRole("p09", build.Rule("tenancy.warren.dev", "lnamespaces", "get")),
			build.ClusterRoleBinding("p09", "p09", build.RBACUser("p01")))
		Eventually(func() string { return as("p01").sudo(ctx, "--tenant", "paymnts", "get", "pods").stderr }).WithContext(ctx).
			Should(Equal("error: there is no tenant paymnts: p01 is a sudoer of payments, shop\n"), "who may")
	})

	It("lists the tenants in which one may", func(ctx SpecContext) {
		got := as("bob").sudo(ctx, "--list")
		Expect([]any{got.code, got.stdout, got.stderr}).To(Equal([]any{0, "payments\nshop\n", ""}))
		got = as("otto").sudo(ctx, "--list")
		Expect([]any{got.code, got.stdout, got.stderr}).To(Equal([]any{0, "payments\n", ""}))
		got = as("carol").sudo(ctx, "--list")
		Expect([]any{got.code, got.stdout, got.stderr}).To(Equal([]any{0, "", "carol is not a sudoer of any tenant\n"}))
		got = as(controlplane.Admin).sudo(ctx, "--list")
		Expect(got.code).To(BeZero(), got.stderr)
		Expect(got.stdout).To(And(ContainSubstring("payments\n"), ContainSubstring("shop\n")))
	})

	It("goes by --token, also for a service account", func(ctx SpecContext) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "deployer"}}
		world.Create(ctx, account)
		token := &authenticationv1.TokenRequest{}
		Expect(world.Admin().SubResource("token").Create(ctx, account, token)).To(Succeed())
		got := as("carol").sudo(ctx, "get", "pods", "-n", "payments", "--token", token.Status.Token)
		Expect(got.code).To(BeZero(), got.stderr)
	})

	It("completes its own flags and tenants, and leaves the rest to kubectl", func(ctx SpecContext) {
		for line, want := range map[string]string{
			"--ten":        "--tenant",
			"--tenant=":    "payments",
			"":             "get",
			"get po":       "pods",
			"get pods --n": "--namespace",
		} {
			words := append([]string{"__complete", "sudo"}, strings.Split(line, " ")...)
			got := as("bob").kubectl(ctx, words...)
			Expect(got.code).To(BeZero(), got.stderr)
			Expect(got.stdout).To(ContainSubstring(want), "of %q", line)
		}
	})

	// In mode Constrained, the operator writes such rules. Here the case makes them for a sudoer of tenant lab, as in access.md 2.4.
	It("says where sudo ends, where impersonation is constrained", func(ctx SpecContext) {
		world.Create(ctx, build.Tenant("lab").Object())
		world.Ready(ctx, build.Tenant("lab").Object())
		conny := build.RBACUser("conny")
		named := func(resource, name string) rbacv1.PolicyRule {
			rule := build.Rule("authentication.k8s.io", resource, "impersonate:user-info")
			rule.ResourceNames = []string{name}
			return rule
		}
		discovery := rbacv1.PolicyRule{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*"},
			Verbs: []string{"impersonate-on:user-info:get"}}
		world.Create(ctx,
			build.ClusterRole("lab-sudo", named("users", "conny"), named("groups", "lab-sudoers"), discovery),
			build.ClusterRoleBinding("lab-sudo", "lab-sudo", conny),
			build.ClusterRole("lab-on", build.Rule("*", "*", "impersonate-on:user-info:get", "impersonate-on:user-info:list")),
			build.RoleBinding("lab", "lab-on", "lab-on", conny),
			build.RoleBinding("lab", "lab-sudoers", "cluster-admin", build.RBACGroup("lab-sudoers")))
		var got answer
		Eventually(func() int {
			got = as("conny").sudo(ctx, "get", "secrets", "-n", "lab")
			return got.code
		}).WithContext(ctx).Should(BeZero(), "once the authorizer knows: %s", got.stderr)
		Expect(got.stderr).To(Equal("No resources found in lab namespace.\n"))

		got = as("conny").sudo(ctx, "--tenant", "lab", "get", "nodes")
		Expect(got.code).To(Equal(1))
		Expect(got.stderr).To(And(ContainSubstring("Forbidden"), HaveSuffix("\nsudo gives rights only in the tree of tenant lab\n")))
	})
})

// kubeconfigThrough writes a user's kubeconfig with another address of the API server.
func kubeconfigThrough(server, user string) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(world.Kubeconfig(user))
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData, cluster.InsecureSkipTLSVerify = server, "", nil, true
	}
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}
