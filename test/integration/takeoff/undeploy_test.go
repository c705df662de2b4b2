package takeoff_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
	"github.com/warren-tenancy/warren/test/words"
)

var _ = Describe("make undeploy", Ordered, func() {
	var s site
	// before is what tenants have: objects by kind and name, with UID and content.
	var before map[string]string

	BeforeAll(func(ctx SpecContext) {
		s = newSite(ctx, "standard")
		s.tenant(ctx, "payments")
	})

	It("FLT-U01 make undeploy deletes webhook configurations, policies and their bindings, scales the operator to 0, removes its "+
		"finalizers, then its RBAC and Namespace, in this order; FLT-U01 after make undeploy, CRDs, tenants, Namespaces, copies, access "+
		"objects and ClusterRole warren:impersonate-on work unchanged; it has printed what stays, what is gone and how "+
		"to return", func(ctx SpecContext) {
		s.plantWebhooks(ctx)
		payments := build.Tenant("payments").Object()
		Eventually(func(g Gomega) { // the operator may write its status at the same time
			g.Expect(s.Read(payments)(ctx)).To(Succeed())
			payments.Finalizers = append([]string{"example.com/keep"}, payments.Finalizers...)
			g.Expect(s.Admin().Update(ctx, payments)).To(Succeed())
		}).WithContext(ctx).Should(Succeed())
		before = s.state(ctx)
		mark := s.Mark(ctx)

		said := s.undeploy(ctx)
		Expect(said).To(SatisfyAll(
			ContainSubstring("deleted ValidatingWebhookConfiguration warren"),
			ContainSubstring("deleted ValidatingAdmissionPolicyBinding warren-managed-namespace"),
			ContainSubstring("What stays: its CRDs, 1 LNamespaces, 1 SubNamespaces"), ContainSubstring("The policies and webhooks are gone"),
			ContainSubstring("To come back: make deploy"),
		))
		requests, err := s.Requests(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(order(requests)).To(Equal([]string{
			"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
			"validatingadmissionpolicybindings", "validatingadmissionpolicies",
			"operator to 0", "operator is gone", "subnamespaces", "lnamespaces", "namespace " + system,
		}))

		Expect(s.leftovers(ctx)).To(BeEmpty())
		Expect(s.Read(build.ClusterRole("warren:impersonate-on"))(ctx)).To(Succeed())
		Expect(s.Read(payments)(ctx)).To(Succeed())
		Expect(payments.Finalizers).To(Equal([]string{"example.com/keep"}), "a finalizer of somebody else stays")
		payments.Finalizers = nil
		Expect(s.Admin().Update(ctx, payments)).To(Succeed())
		Expect(s.state(ctx)).To(Equal(before))
		s.worksAsBefore(ctx, "payments")
	}, SpecTimeout(3*suite.Patience))

	It("may be repeated, and prints the same", func(ctx SpecContext) {
		Expect(s.undeploy(ctx)).To(ContainSubstring("What stays: its CRDs, 1 LNamespaces, 1 SubNamespaces"))
	}, SpecTimeout(2*suite.Patience))

	// The half of FLT-U05 with CRDS=true is in crds_test.go.
	It("FLT-U05 after make undeploy, make deploy restores the state, with the same UIDs, and copies follow their "+
		"sources again", func(ctx SpecContext) {
		s.deploy(ctx)
		s.ready(ctx, "payments")
		Eventually(s.state).WithContext(ctx).Should(Equal(before))
		source := build.Secret("payments", "shared", "")
		Expect(s.Read(source)(ctx)).To(Succeed())
		source.Data["key"] = []byte("second")
		Expect(s.Admin().Update(ctx, source)).To(Succeed())
		Eventually(s.copied("payments-web", "second")).WithContext(ctx).Should(BeTrue(), "copies follow again")
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U17 after make deploy of one overlay after another, every object that the overlay renders is on the cluster, its "+
		"CRDs too", func(ctx SpecContext) {
		for _, overlay := range []string{"open", "hardened", "standard"} {
			s.script(ctx, "deploy.sh", overlay, "warren:test", "", "none")
			rendered := filepath.Join(s.Dir, overlay+".yaml")
			Expect(os.WriteFile(rendered, []byte(s.script(ctx, "render.sh", overlay, "warren:test")), 0o600)).To(Succeed())
			answer, allThere := s.kubectl(ctx, controlplane.Admin, "get --output=name -f "+rendered)
			Expect(allThere).To(BeTrue(), "%s: %s", overlay, answer)
			s.withoutWebhooks(ctx)
		}
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U03 while the operator is gone and the policies stay, users can't edit copies, but namespaces can be deleted; without the "+
		"policies' bindings, users can edit copies", func(ctx SpecContext) {
		s.scaleToZero(ctx)
		edit := "patch secret shared -n payments-web -p " + `{"stringData":{"key":"mine"}}`
		Eventually(func(g Gomega) {
			said, allowed := s.kubectl(ctx, "alice", edit)
			g.Expect(allowed).To(BeFalse())
			g.Expect(said).To(ContainSubstring("shared is a copy of payments/shared; change the source instead"))
		}).WithContext(ctx).Should(Succeed())
		s.Create(ctx, build.Child("doomed", "payments"), build.ConfigMap("doomed", "own", "v"))
		_, allowed := s.kubectl(ctx, controlplane.Admin, "delete namespace doomed --wait=false")
		Expect(allowed).To(BeTrue())
		s.Gone(ctx, build.Namespace("doomed"))

		// The command is the one in docs/security.md.
		said, allowed := s.kubectl(ctx, controlplane.Admin, "delete validatingadmissionpolicybindings -l app.kubernetes.io/name=warren")
		Expect(allowed).To(BeTrue(), said)
		Eventually(func() bool { _, allowed := s.kubectl(ctx, "alice", edit); return allowed }).WithContext(ctx).Should(BeTrue())
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U04 make undeploy deletes an LNamespace and a SubNamespace that wait for finalizers, and RoleBindings warren:operator; "+
		"Namespaces remain; later one with SubNamespaces can be deleted", func(ctx SpecContext) {
		s.deploy(ctx)
		s.tenant(ctx, "shop")
		s.scaleToZero(ctx)
		sub, lns := build.SubNamespace("shop", "shop-web"), build.Tenant("shop").Object()
		for _, object := range []client.Object{sub, lns} {
			Expect(s.Admin().Delete(ctx, object)).To(Succeed())
			Expect(s.Read(object)(ctx)).To(Succeed(), "it hangs")
		}
		ownRight := s.plantOwnRight(ctx, "shop-web")
		Expect(s.undeploy(ctx)).To(ContainSubstring("deleted RoleBinding warren:operator in 1 namespaces"))
		Expect(s.Read(ownRight)(ctx)).To(words.BeNotFound(), "by it a service account of the operator's name would get the operator's rights")
		for _, object := range []client.Object{sub, lns} {
			Expect(s.Read(object)(ctx)).To(words.BeNotFound(), "it is freed")
		}
		for _, name := range []string{"shop", "shop-web"} {
			namespace := build.Namespace(name)
			Expect(s.Read(namespace)(ctx)).To(Succeed())
			Expect(namespace.Status.Phase).To(Equal(corev1.NamespaceActive))
		}
		Expect(s.Admin().Delete(ctx, build.Namespace("payments"))).To(Succeed())
		Eventually(s.Read(build.Namespace("payments"))).WithContext(ctx).Should(words.BeNotFound(), "though it holds a SubNamespace")
	}, SpecTimeout(4*suite.Patience))
})

// plantWebhooks makes sure that undeploy has webhook configurations to delete. They match no request.
func (s site) plantWebhooks(ctx context.Context) {
	GinkgoHelper()
	for _, object := range webhookConfigurations() {
		Expect(client.IgnoreAlreadyExists(s.Admin().Create(ctx, object))).To(Succeed())
	}
}

// plantOwnRight makes the RoleBinding by which the operator of component hardened binds its own role in a namespace.
func (s site) plantOwnRight(ctx context.Context, namespace string) *rbacv1.RoleBinding {
	GinkgoHelper()
	binding := build.Labelled(build.RoleBinding(namespace, v1alpha1.OperatorBinding, v1alpha1.KindsRole,
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: v1alpha1.OperatorAccount}),
		v1alpha1.LabelManagedBy, v1alpha1.OperatorName, v1alpha1.LabelAccess, v1alpha1.AccessOperator, v1alpha1.LabelPropagate, v1alpha1.ModeNone)
	Expect(s.As(controlplane.Operator).Create(ctx, binding)).To(Succeed())
	return binding
}

// order returns what happened first, second and so on. A step on many objects is listed once.
func order(requests []audit.Request) []string {
	slices.SortStableFunc(requests, func(a, b audit.Request) int { return a.At.Compare(b.At) })
	var steps []string
	add := func(step string) {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	for _, r := range requests {
		switch {
		case r.User != controlplane.Admin || r.Code >= 300:
		case r.Verb == "delete" && r.Group == "admissionregistration.k8s.io":
			add(r.Resource)
		case r.Verb == "patch" && r.Resource == "deployments":
			add("operator to 0")
		case r.Verb == "patch" && r.Resource == "pods":
			steps = slices.DeleteFunc(steps, func(s string) bool { return s == "operator is gone" })
			add("operator is gone")
		case r.Verb == "patch" && r.Group == v1alpha1.GroupVersion.Group:
			add(r.Resource)
		case r.Verb == "delete" && r.Resource == "namespaces":
			add("namespace " + r.Name)
		}
	}
	return steps
}

// leftovers are the objects of ours that undeploy should have removed.
func (s site) leftovers(ctx context.Context) []string {
	GinkgoHelper()
	var left []string
	for _, list := range []client.ObjectList{
		&admissionv1.ValidatingWebhookConfigurationList{}, &admissionv1.MutatingWebhookConfigurationList{},
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &corev1.NamespaceList{},
		&v1alpha1.LNamespaceList{}, &v1alpha1.SubNamespaceList{},
	} {
		Expect(s.Admin().List(ctx, list)).To(Succeed())
		for _, object := range itemsOf(list) {
			_, granted := object.GetLabels()[v1alpha1.LabelAccess]
			ours := strings.HasPrefix(object.GetName(), "warren") && !granted && object.GetName() != "warren:impersonate-on"
			if ours || slices.ContainsFunc(object.GetFinalizers(), v1alpha1.IsReservedKey) {
				left = append(left, fmt.Sprintf("%T %s %q", object, object.GetName(), object.GetFinalizers()))
			}
		}
	}
	return left
}

// worksAsBefore shows that the tenant's people have what they had.
func (s site) worksAsBefore(ctx context.Context, tenant string) {
	GinkgoHelper()
	for _, c := range []struct{ user, line string }{
		{"alice", "get secret shared -n " + tenant + "-web"},
		{"bob", "get secrets -n " + tenant + "-web --as=bob --as-group=" + tenant + "-sudoers"},
		{"mia", "get lns " + tenant},
	} {
		Eventually(func(g Gomega) {
			said, allowed := s.kubectl(ctx, c.user, c.line)
			g.Expect(allowed).To(BeTrue(), "%s %s: %s", c.user, c.line, said)
		}).WithContext(ctx).Should(Succeed())
	}
}

func (s site) copied(namespace, value string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		secret := build.Secret(namespace, "shared", "")
		return s.Read(secret)(ctx) == nil && bytes.Equal(secret.Data["key"], []byte(value))
	}
}

// scaleToZero stops the operator without undeploying it.
func (s site) scaleToZero(ctx context.Context) {
	GinkgoHelper()
	said, allowed := s.kubectl(ctx, controlplane.Admin, "scale deployment "+deployment+" -n "+system+" --replicas=0")
	Expect(allowed).To(BeTrue(), said)
	Eventually(s.Operator.Process().Running).WithContext(ctx).Should(BeFalse())
}

var _ = Describe("manager release", func() {
	DescribeTable("says in one sentence what is wrong", func(ctx SpecContext, message string, args ...string) {
		cmd := exec.CommandContext(ctx, manager, append([]string{"release"}, args...)...)
		cmd.Env = []string{"KUBECONFIG=/dev/null"}
		answer, err := cmd.CombinedOutput()
		Expect(err).To(HaveOccurred())
		Expect(strings.TrimSpace(string(answer))).To(SatisfyAll(HavePrefix("error: "), ContainSubstring(message), Not(ContainSubstring("\n"))))
	},
		Entry("an unknown flag", "release: flag provided but not defined: -force; see manager release --help", "--force"),
		Entry("an argument", `release: unknown argument "now"; see manager release --help`, "now"),
		Entry("no kubeconfig", "no access to an API server: set --kubeconfig or KUBECONFIG", "--kubeconfig=/nofile"),
	)
})
