package tenants_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("sudo in mode Constrained", func() {
	It("ACC-C09 on Kubernetes 1.36 in mode Constrained, no rule of the Legacy form exists, and doctor finds check server "+
		"ok", func(ctx SpecContext) {
		f := constrainedly("c01")
		f.settle(ctx, f.payments())
		Expect(f.get(ctx, f.own("payments")).Status.Sudo.Mode).To(Equal(v1alpha1.SudoConstrained))
		metrics, err := f.Operator.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		for mode, want := range map[string]float64{"Constrained": 1, "Legacy": 0} {
			Expect(metrics.Value("warren_sudo_mode", map[string]string{"mode": mode})).To(Equal(want), mode)
		}
		Expect(f.forms(ctx)).To(ConsistOf("constrained"))
		Expect(f.doctor(ctx)).To(MatchRegexp(`(?m)^ok +server .*sudo.mode Constrained$`))
	})

	It("ACC-C02 in mode Constrained, a binding of the group in another namespace or cluster-wide gives no rights with "+
		"sudo", func(ctx SpecContext) {
		f := constrainedly("c02")
		group := f.own("payments-sudoers")
		f.create(ctx, build.Namespace(f.own("other")),
			build.RoleBinding(f.own("other"), "given", "cluster-admin", build.RBACGroup(group)),
			build.ClusterRoleBinding(f.own("given"), "cluster-admin", build.RBACGroup(group)))
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
		Consistently(func(g Gomega) {
			for _, r := range []request{podsIn(f.own("other")), listing(&corev1.NodeList{}, "nodes")} {
				g.Expect(r.send(ctx, f.sudo("bob", "payments"))).To(beDenied(), r.what)
			}
		}).WithContext(ctx).WithTimeout(test.Quiet(2 * time.Second)).Should(Succeed())
		f.event(ctx, f.own("payments"), v1alpha1.ReasonGroupInUse,
			"group "+group+" or user warren:sudo:"+f.own("payments")+" is bound outside of this tenant; such a binding gives sudoers no rights "+
				"in mode Constrained, but stops sudo in mode Legacy: a cluster admin should delete it")
	})

	It("ACC-C03 in mode Constrained, kubectl get, apply, create, delete, explain, api-resources, auth can-i, auth whoami and version "+
		"work with sudo", func(ctx SpecContext) {
		f := constrainedly("c03")
		f.settle(ctx, f.payments())
		root, bob := f.own("payments"), f.own("bob")
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
		for _, line := range []string{
			"get pods", "apply -f -", "create configmap two", "get configmaps", "delete configmap two", "explain pods", "api-resources",
			"auth can-i get pods", "auth whoami", "version", "get lns " + root,
		} {
			args := append([]string{"-n", root, "--as=" + bob, "--as-group=" + root + "-sudoers"}, strings.Fields(line)...)
			_, stderr, code := f.KubectlWith(ctx, bob, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n", args...)
			Expect(code).To(BeZero(), "kubectl %s: %s", line, stderr)
		}
	})

	It("ACC-C04 in mode Constrained, a removed sudoer is soon denied old and new URLs, and the other's sudo works "+
		"throughout", func(ctx SpecContext) {
		f := constrainedly("c04")
		f.settle(ctx, f.payments().Sudoers(f.own("erin")))
		root := f.own("payments")
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
		allowed(ctx, f.sudo("erin", "payments"), podsIn(root))
		erin := throughout(ctx, f.sudo("erin", "payments"), podsIn(root))
		f.set(ctx, f.as("mia"), root, map[string]any{"sudoers": build.Users(f.own("erin"))})
		soonDenied(ctx, f.sudo("bob", "payments"), podsIn(root), secretsIn(root), readTenant(root))
		Expect(erin()).To(Succeed())
	})

	It("ACC-C05 in mode Constrained, sudo works soon in a new sub-namespace", func(ctx SpecContext) {
		f := constrainedly("c05")
		f.settle(ctx, f.payments())
		f.create(ctx, build.SubNamespace(f.own("payments"), f.own("pay-web")))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("pay-web")), bindClusterAdmin(f.own("pay-web")))
	})

	It("ACC-R05 in mode Constrained, sudo is granted although a ClusterRoleBinding names the group, and lists no "+
		"nodes", func(ctx SpecContext) {
		f := constrainedly("r05")
		f.create(ctx, build.ClusterRoleBinding(f.own("standing"), "cluster-admin", build.RBACGroup(f.own("platform-sudoers"))))
		f.settle(ctx, build.Tenant(f.own("platform")).Sudoers(f.own("carol")))
		allowed(ctx, f.sudo("carol", "platform"), podsIn(f.own("platform")))
		denied(ctx, f.sudo("carol", "platform"), listing(&corev1.NodeList{}, "nodes"))
	})
})

var _ = Describe("an API server that doesn't know constrained impersonation", SpecPriority(1), func() {
	It("ACC-C09 without the feature gate, mode Constrained gives nobody sudo, and doctor names mode Legacy, or Kubernetes 1.36 with the "+
		"gate", func(ctx SpecContext) {
		options := sudoMode("Constrained").options(devcluster.Options{})
		if constrained != nil { // an older API server doesn't have this gate
			options.ControlPlane.APIServerArgs = []string{"--feature-gates=ConstrainedImpersonation=false"}
		}
		w := ownWorld(ctx, options, "c09")
		f := of(w, "c09")
		f.settle(ctx, f.payments())
		root := f.own("payments")
		Consistently(func(g Gomega) {
			g.Expect(podsIn(root).send(ctx, f.sudo("bob", "payments"))).To(beDenied())
		}).WithContext(ctx).WithTimeout(test.Quiet(2 * time.Second)).Should(Succeed())
		Expect(f.doctor(ctx)).To(MatchRegexp(`(?m)^error +server .*nobody can use sudo; set sudo.mode to Legacy, or use Kubernetes 1.36 with`))

		Expect(w.Operator.Configure(ctx, sudoMode("Legacy").text())).To(Succeed())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
		Eventually(f.forms).WithContext(ctx).Should(ConsistOf("legacy"))
	})
})

var _ = Describe("a switch of the mode of sudo", SpecPriority(2), func() {
	It("ACC-C06 with 100 sub-namespaces, the mode is switched to Constrained and back; no sudo request is denied, and no rule of the "+
		"other form is left", func(ctx SpecContext) {
		needsConstrained()
		w := ownWorld(ctx, devcluster.Options{}, "c06")
		f := of(w, "c06")
		f.settle(ctx, f.payments(), f.shop())
		root, namespaces := f.own("payments"), []string{f.own("payments"), f.own("shop")}
		for i := range 100 {
			name := f.own(fmt.Sprintf("sub-%d", i))
			f.create(ctx, build.SubNamespace(root, name))
			namespaces = append(namespaces, name)
		}
		for _, namespace := range namespaces[2:] {
			f.Exists(ctx, build.RoleBinding(namespace, "warren:sudoers", ""))
		}
		var asked []func() error
		for worker := range 4 { // every namespace is asked again and again, as often as the machine can
			var mine []request
			for i := worker; i < len(namespaces); i += 4 {
				if namespaces[i] != f.own("shop") {
					mine = append(mine, podsIn(namespaces[i]))
				}
			}
			allowed(ctx, f.sudo("bob", "payments"), mine...)
			asked = append(asked, throughout(ctx, f.sudo("bob", "payments"), oneAfterTheOther(mine)))
		}
		asked = append(asked, throughout(ctx, f.sudo("bob", "shop"), podsIn(f.own("shop"))),
			throughout(ctx, f.becoming("otto", "warren:sudo:"+root, root+"-sudoers"), podsIn(namespaces[2])))

		for _, mode := range []v1alpha1.SudoMode{v1alpha1.SudoConstrained, v1alpha1.SudoLegacy} {
			Expect(w.Operator.Configure(ctx, sudoMode(mode).text())).To(Succeed())
			for _, tenant := range []string{root, f.own("shop")} {
				Eventually(func() v1alpha1.SudoMode { return f.get(ctx, tenant).Status.Sudo.Mode }).WithContext(ctx).Should(Equal(mode), tenant)
				f.event(ctx, tenant, v1alpha1.ReasonSudoModeChanged, "sudo is granted in mode "+string(mode))
			}
			Eventually(f.forms).WithContext(ctx).Should(ConsistOf(strings.ToLower(string(mode))))
		}
		for _, stop := range asked {
			Expect(stop()).To(Succeed())
		}
		Eventually(func(g Gomega) {
			bindings := &rbacv1.RoleBindingList{}
			g.Expect(f.Admin().List(ctx, bindings, client.MatchingLabels{v1alpha1.LabelAccess: v1alpha1.AccessSudo})).To(Succeed())
			g.Expect(bindings.Items).To(BeEmpty(), "nothing of the constrained form is left in the trees")
		}).WithContext(ctx).Should(Succeed())
		Expect(f.Messages(build.Tenant(root).Object(), v1alpha1.ReasonDriftRepaired)(ctx)).To(BeEmpty(), "a switch is no drift")
	})

	It("ACC-S24 in mode Constrained, a Group replaces all users while the operator is down; after its start they are denied, the Group "+
		"is allowed, and sudo works throughout", func(ctx SpecContext) {
		needsConstrained()
		options := sudoMode("Constrained").options(devcluster.Options{})
		options.Operator.Config += billed
		w := ownWorld(ctx, options, "s24")
		f := of(w, "s24")
		payments, web := f.own("payments"), f.own("pay-web")
		f.settle(ctx, f.payments())
		f.grow(ctx, payments, web)
		bob := f.sudo("bob", "payments")
		allowed(ctx, f.as("alice"), podsIn(payments), podsIn(web))
		allowed(ctx, bob, podsIn(payments), podsIn(web))
		here, there := throughout(ctx, bob, podsIn(payments)), throughout(ctx, bob, podsIn(web))
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		f.set(ctx, f.Admin(), payments, map[string]any{"users": []v1alpha1.Subject{build.Group(f.own("ops"))}})
		Expect(w.Operator.Start(ctx)).To(Succeed())
		for _, namespace := range []string{payments, web} {
			soonDenied(ctx, f.as("alice"), podsIn(namespace))
			soonDenied(ctx, f.as("devi"), podsIn(namespace))
			allowed(ctx, f.as("olga"), podsIn(namespace))
		}
		Expect(here()).To(Succeed())
		Expect(there()).To(Succeed())
		f.isBilled(ctx, payments)
	})
})

// billed turns on billing in the configuration. The status of tenants doesn't depend on the driver.
const billed = "billing: {driver: sqlite, sqlite: {path: /nowhere/ledger.db}}\n"

// isBilled checks that status.billing follows spec.billing. The date changes once for each change, by the API server's clock.
func (f *fixture) isBilled(ctx context.Context, tenant string) {
	GinkgoHelper()
	status := func() *v1alpha1.BillingStatus { return f.get(ctx, tenant).Status.Billing }
	made := f.get(ctx, tenant)
	Expect(made.Status.Billing).To(Equal(&v1alpha1.BillingStatus{Since: made.CreationTimestamp}))
	f.set(ctx, f.Admin(), tenant, map[string]any{"billing": map[string]any{"costCenter": "4711", "owner": "fin@example.com"}})
	Eventually(status).WithContext(ctx).Should(And(HaveField("CostCenter", "4711"), HaveField("Owner", "fin@example.com")))
	since := status().Since
	Expect(since.Time).To(BeTemporally(">=", made.CreationTimestamp.Time))
	f.set(ctx, f.Admin(), tenant, map[string]any{"managers": nil})
	f.ready(ctx, tenant)
	Expect(status().Since).To(Equal(since), "another edit is no other payer")
	f.set(ctx, f.Admin(), tenant, map[string]any{"billing": nil})
	Eventually(status).WithContext(ctx).Should(HaveField("CostCenter", ""))
	Expect(status().Since.Time).To(BeTemporally(">=", since.Time))
}

// oneAfterTheOther sends the next of the requests each time.
func oneAfterTheOther(requests []request) request {
	next := -1
	return request{"one of many", func(ctx context.Context, c client.Client) error {
		next = (next + 1) % len(requests)
		if err := requests[next].send(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", requests[next].what, err)
		}
		return nil
	}}
}

// doctor is what kubectl warren doctor prints.
func (f *fixture) doctor(ctx context.Context) string {
	GinkgoHelper()
	plugins, err := devcluster.BuildPlugins(ctx)
	Expect(err).NotTo(HaveOccurred())
	f.Plugins = plugins
	out, problems, _ := f.Kubectl(ctx, controlplane.Admin, "warren", "doctor")
	return out + problems
}

// forms are the forms of impersonation, legacy or constrained, that the rules in this case's access objects allow.
func (f *fixture) forms(ctx context.Context) ([]string, error) {
	roles := &rbacv1.ClusterRoleList{}
	if err := f.Admin().List(ctx, roles, client.HasLabels{v1alpha1.LabelAccess}); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, role := range roles.Items {
		if !strings.Contains(role.Name, ":"+f.key+"-") {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				switch {
				case verb == "impersonate":
					seen["legacy"] = true
				case strings.HasPrefix(verb, "impersonate"):
					seen["constrained"] = true
				}
			}
		}
	}
	var forms []string
	for form := range seen {
		forms = append(forms, form)
	}
	return forms, nil
}
