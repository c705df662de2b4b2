package sudo_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

// since returns the requests that a user sent while do ran.
func since(ctx context.Context, user string, do func()) []audit.Request {
	GinkgoHelper()
	mark := world.Mark(ctx)
	do()
	requests, err := world.Requests(ctx, mark)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(requests, func(r audit.Request) bool { return r.User != user })
}

// raised returns those of the requests that impersonate a user. It checks that each of them impersonates the user that as names.
// It also checks that the impersonated groups are only the one in the parameter group, and system:authenticated.
func raised(requests []audit.Request, as, group string) []audit.Request {
	GinkgoHelper()
	var all []audit.Request
	for _, r := range requests {
		if r.Event.ImpersonatedUser == nil {
			continue
		}
		Expect(r.As).To(Equal(as), "%s", r)
		Expect(r.Event.ImpersonatedUser.Groups).To(ConsistOf(group, "system:authenticated"), "%s", r)
		all = append(all, r)
	}
	return all
}

// answered matches such a request that was granted.
func answered(verb, resource, namespace string) any {
	return Satisfy(func(r audit.Request) bool {
		return r.Verb == verb && r.Resource == resource && r.Namespace == namespace && (r.Code == http.StatusOK || r.Code == http.StatusCreated)
	})
}

var _ = Describe("kubectl sudo", func() {
	It("ACC-P01 kubectl sudo finds the tenant by -n, --namespace or the context of a kubeconfig, and impersonates "+
		"payments-sudoers", func(ctx SpecContext) {
		inContext := kubeconfigIn("p01", "pay-web")
		for name, l := range map[string]struct {
			line
			args []string
		}{
			"-n x":                             {as("p01"), []string{"get", "pods", "-n", "pay-web"}},
			"-nx":                              {as("p01"), []string{"get", "pods", "-npay-web"}},
			"-n=x":                             {as("p01"), []string{"get", "pods", "-n=pay-web"}},
			"--namespace=x":                    {as("p01"), []string{"get", "pods", "--namespace=pay-web"}},
			"before COMMAND":                   {as("p01"), []string{"-n", "pay-web", "get", "pods"}},
			"of the context, under KUBECONFIG": {line{user: "p01", kubeconfig: inContext}, []string{"get", "pods"}},
			"of the context of --kubeconfig":   {as("p01", "KUBECONFIG=/dev/null"), []string{"get", "pods", "--kubeconfig", inContext}},
			"of --context":                     {line{user: "p01", kubeconfig: inContext}, []string{"get", "pods", "--context=warren"}},
		} {
			requests := since(ctx, "p01", func() {
				got := l.sudo(ctx, l.args...)
				Expect(got.code).To(BeZero(), "%s: %s", name, got.stderr)
			})
			Expect(raised(requests, "p01", "payments-sudoers")).To(ContainElement(answered("list", "pods", "pay-web")), name)
		}
	})

	It("ACC-P02 kubectl sudo does not parse what follows --, takes the tenant from the name after lns, and passes stdin to "+
		"kubectl", func(ctx SpecContext) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "pay-web", Name: "p"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/c"}}},
		}
		Eventually(func() error { return world.Admin().Create(ctx, pod.DeepCopy()) }).WithContext(ctx).Should(Succeed(),
			"once its service account is there")
		kubectl, recorded := recorder()
		requests := since(ctx, "p02", func() {
			l := line{user: "p02", kubeconfig: kubeconfigIn("p02", "pay-web"), env: []string{kubectl}}
			got := l.sudo(ctx, "exec", "p", "--", "ls", "-n", "shop")
			Expect(got.stderr).To(ContainSubstring("p does not have a host assigned"), "no node is here, but the API server let it through")
		})
		Expect(recorded()).To(Equal([]string{"exec", "--as=p02", "--as-group=payments-sudoers", "p", "--", "ls", "-n", "shop"}))
		Expect(raised(requests, "p02", "payments-sudoers")).To(ContainElement(HaveField("Subresource", "exec")))

		editor := script("sed -i.bak 's/allowCascadingDeletion: false/allowCascadingDeletion: true/' \"$1\"")
		requests = since(ctx, "p02", func() {
			got := as("p02", "KUBE_EDITOR="+editor).sudo(ctx, "edit", "lns", "payments")
			Expect(got.code).To(BeZero(), got.stderr)
			Expect(got.stdout).To(ContainSubstring("payments edited"))
		})
		Expect(raised(requests, "p02", "payments-sudoers")).To(ContainElement(answered("patch", "lnamespaces", "")))
		payments := &v1alpha1.LNamespace{}
		Expect(world.Admin().Get(ctx, client.ObjectKey{Name: "payments"}, payments)).To(Succeed())
		Expect(payments.Spec.AllowCascadingDeletion).To(BeTrue())

		l := as("p02")
		l.stdin = "{apiVersion: v1, kind: ConfigMap, metadata: {name: p02}, data: {a: b}}"
		requests = since(ctx, "p02", func() {
			got := l.sudo(ctx, "apply", "-f", "-", "-n", "pay-web")
			Expect(got.code).To(BeZero(), got.stderr)
			Expect(got.stdout).To(Equal("configmap/p02 created\n"))
		})
		Expect(raised(requests, "p02", "payments-sudoers")).To(ContainElement(answered("create", "configmaps", "pay-web")))
	})

	It("ACC-P08 --user of create rolebinding, set subject and create clusterrolebinding stays theirs, and RBAC refuses the last; with "+
		"get, before or behind it, walt of the kubeconfig sends the request", func(ctx SpecContext) {
		config, err := clientcmd.LoadFromFile(world.Kubeconfig("p08"))
		Expect(err).NotTo(HaveOccurred())
		walt, err := clientcmd.LoadFromFile(world.Kubeconfig("walt"))
		Expect(err).NotTo(HaveOccurred())
		person := walt.AuthInfos[walt.Contexts[walt.CurrentContext].AuthInfo]
		config.AuthInfos["walt"], config.AuthInfos["dave"] = person, person
		path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
		in := line{user: "p08", kubeconfig: path}

		requests := since(ctx, "p08", func() {
			for _, words := range [][]string{
				{"create", "rolebinding", "p08", "--clusterrole=view", "--user=dave", "-n", "pay-web"},
				{"-n", "pay-web", "set", "subject", "rolebinding", "p08", "--user", "erin"},
			} {
				got := in.sudo(ctx, words...)
				Expect(got.code).To(BeZero(), "%s: %s", words, got.stderr)
			}
			got := in.sudo(ctx, "--tenant", "payments", "create", "clusterrolebinding", "p08", "--clusterrole=view", "--user=dave")
			Expect(got.stderr).To(ContainSubstring(`User "p08" cannot create resource "clusterrolebindings"`))
		})
		Expect(raised(requests, "p08", "payments-sudoers")).To(ContainElement(answered("create", "rolebindings", "pay-web")))
		binding := build.RoleBinding("pay-web", "p08", "")
		Expect(world.Admin().Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "dave"), HaveField("Name", "erin")))

		By("reading it where kubectl does, behind COMMAND and before it")
		for _, words := range [][]string{{"get", "pods", "-n", "pay-web", "--user=walt"}, {"--user=walt", "get", "pods", "-n", "pay-web"}} {
			requests = since(ctx, "walt", func() {
				got := in.sudo(ctx, words...)
				Expect(got.code).To(BeZero(), "%s: %s", words, got.stderr)
			})
			Expect(raised(requests, "walt", "payments-sudoers")).To(ContainElement(answered("list", "pods", "pay-web")), "%s", words)
		}
	})

	It("ACC-P04 otto, whose local $USER differs, uses sudo as warren:sudo:payments, and the reason is in the audit "+
		"log", func(ctx SpecContext) {
		const group = "payments-sudoers"
		requests := since(ctx, "otto", func() {
			got := as("otto", "USER=o.meier").sudo(ctx, "--reason", "INC 42: räumen", "get", "pods", "-n", "pay-web")
			Expect(got.code).To(BeZero(), got.stderr)
		})
		requests = raised(requests, "warren:sudo:payments", group)
		Expect(requests).To(ContainElement(answered("list", "pods", "pay-web")))
		for _, r := range requests {
			if r.Resource == "pods" {
				Expect(r.Event.ImpersonatedUser.Extra).To(HaveKeyWithValue(v1alpha1.Domain+"/reason", ConsistOf("INC 42: räumen")))
			}
		}
	})

	It("ACC-P05 kubectl sudo ends with kubectl's status 3, or by SIGINT as kubectl does", func(ctx SpecContext) {
		got := as("bob", "KUBECTL="+script("exit 3")).sudo(ctx, "get", "pods", "-n", "pay-web")
		Expect(got.code).To(Equal(3), got.stderr)

		got = as("bob", "KUBECTL="+script("kill -INT $$")).sudo(ctx, "get", "pods", "-n", "pay-web")
		status := got.state.Sys().(syscall.WaitStatus)
		Expect(status.Signaled()).To(BeTrue(), "%v: %s", got.state, got.stderr)
		Expect(status.Signal()).To(Equal(syscall.SIGINT))

		By("sending the signal to who was started")
		cmd := as("bob", "KUBECTL="+script("echo there; exec sleep 600")).command(ctx, "sudo", "get", "pods", "-n", "pay-web")
		stdout, err := cmd.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(cmd.Start()).To(Succeed())
		said := make([]byte, len("there\n"))
		Expect(stdout.Read(said)).To(Equal(len(said)))
		Expect(cmd.Process.Signal(syscall.SIGINT)).To(Succeed())
		Expect(cmd.Wait()).NotTo(Succeed())
		Expect(cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()).To(Equal(syscall.SIGINT))
	})

	It("ACC-P06 a plugin gets the sudo flags after its name; --reason is read before COMMAND only, and refused by kubectl behind it; "+
		"usage is printed, status 1, with --help 0", func(ctx SpecContext) {
		kubectl, recorded := recorder()
		in := line{user: "p06", kubeconfig: kubeconfigIn("p06", "payments"), env: []string{kubectl}}
		got := in.sudo(ctx, "warren", "access", "payments")
		Expect(got.code).To(BeZero(), got.stderr)
		Expect(got.stdout).To(And(ContainSubstring("alice"), ContainSubstring("pay-oncall")))
		Expect(recorded()).To(Equal([]string{"warren", "--as=p06", "--as-group=payments-sudoers", "access", "payments"}))
		requests := since(ctx, "p06", func() {
			got = in.sudo(ctx, "warren", "tree", "payments")
			Expect(got.code).To(BeZero(), got.stderr)
			Expect(got.stdout).To(And(HavePrefix("payments\n"), ContainSubstring("pay-web")))
		})
		Expect(raised(requests, "p06", "payments-sudoers")).To(ContainElement(HaveField("UserAgent", HavePrefix("kubectl-warren/"))))

		Expect(in.sudo(ctx, "--reason", "x", "get", "pods").code).To(BeZero())
		Expect(recorded()).To(Equal([]string{"get", "--as=p06", "--as-group=payments-sudoers", "--as-user-extra=tenancy.warren.dev/reason=x",
			"pods"}))
		got = in.sudo(ctx, "get", "pods", "--reason", "x")
		Expect(got.code).To(Equal(1))
		Expect(got.stderr).To(ContainSubstring("unknown flag: --reason"))
		Expect(recorded()).To(Equal([]string{"get", "--as=p06", "--as-group=payments-sudoers", "pods", "--reason", "x"}))

		usage := ContainSubstring("kubectl sudo [--tenant TENANT] [--reason TEXT] COMMAND")
		got = as("bob").sudo(ctx)
		Expect([]any{got.code, got.stdout}).To(Equal([]any{1, ""}))
		Expect(got.stderr).To(usage)
		got = as("bob").sudo(ctx, "--help")
		Expect([]any{got.code, got.stderr}).To(Equal([]any{0, ""}))
		Expect(got.stdout).To(usage)
	})
})
