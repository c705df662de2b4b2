package tenants_test

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

var _ = Describe("sudo", func() {
	inBothModes("ACC-S01 with sudo, bob reads pods and secrets in the tree, binds cluster-admin in a sub-namespace, and reads and "+
		"patches the LNamespace", "s01", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		f.grow(ctx, f.own("payments"), f.own("pay-web"))
		allowed(ctx, f.sudo("bob", "payments"),
			podsIn(f.own("payments")), secretsIn(f.own("payments")), podsIn(f.own("pay-web")), secretsIn(f.own("pay-web")),
			bindClusterAdmin(f.own("pay-web")), readTenant(f.own("payments")), patchTenant(f.own("payments"), ""))
	})

	inBothModes("ACC-S02 without sudo, bob reads neither pods in payments nor Namespace payments", "s02", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
		denied(ctx, f.as("bob"), podsIn(f.own("payments")), reading(build.Namespace(f.own("payments")), "the root"))
	})

	inBothModes("ACC-S03 with sudo of payments, bob is denied other namespaces, LNamespace shop, lists of namespaces and nodes; so are a "+
		"ClusterRoleBinding, ClusterRole warren:sudo:payments, and deletion of the LNamespace", "s03", func(ctx SpecContext, f *fixture) {
		f.create(ctx, build.Namespace(f.own("ci")))
		f.settle(ctx, f.payments(), f.shop())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
		denied(ctx, f.sudo("bob", "payments"),
			podsIn(f.own("shop")), podsIn(f.own("ci")), podsIn("default"), readTenant(f.own("shop")),
			listing(&corev1.NamespaceList{}, "namespaces"), listing(&corev1.NodeList{}, "nodes"),
			bindClusterAdminEverywhere(), narrowRole("warren:sudo:"+f.own("payments")),
			deleting(build.Tenant(f.own("payments")).Object(), "LNamespace"))
	})

	inBothModes("ACC-S04 with the group of shop, bob gets no pods in payments", "s04", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments(), f.shop())
		allowed(ctx, f.sudo("bob", "shop"), podsIn(f.own("shop")))
		denied(ctx, f.sudo("bob", "shop"), podsIn(f.own("payments")))
	})

	inBothModes("ACC-S05 bob may not impersonate alice, with or without the group, nor add system:masters, a UID or the extra "+
		"scopes", "s05", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		pods, group, bob := podsIn(f.own("payments")), f.own("payments-sudoers"), f.own("bob")
		allowed(ctx, f.sudo("bob", "payments"), pods)
		for _, as := range []rest.ImpersonationConfig{
			{UserName: f.own("alice")},
			{UserName: f.own("alice"), Groups: []string{group}},
			{UserName: bob, Groups: []string{"system:masters"}},
			{UserName: bob, Groups: []string{group, "system:masters"}},
			{UserName: bob, Groups: []string{group}, UID: "1"},
			{UserName: bob, Groups: []string{group}, Extra: map[string][]string{"scopes": {"x"}}},
		} {
			denied(ctx, f.Impersonate(bob, as), pods)
		}
	})

	inBothModes("ACC-S06 kubectl refuses the group without a user, and by a raw header the API server answers 400, or 500 in Kubernetes "+
		"1.34", "s06", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		group := f.own("payments-sudoers")
		_, stderr, code := f.Kubectl(ctx, f.own("bob"), "--as-group="+group, "get", "pods", "-n", f.own("payments"))
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("without impersonating a user"))

		config := f.Config(f.own("bob"))
		c, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		raw, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces/"+f.own("payments")+"/pods", nil)
		Expect(err).NotTo(HaveOccurred())
		raw.Header.Set("Impersonate-Group", group)
		answer, err := c.Do(raw)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Or(Equal(http.StatusBadRequest), Equal(http.StatusInternalServerError)), "Kubernetes 1.34 answers 500")
	})

	inBothModes("ACC-S07 sudo is denied to users, managers and strangers; alice may not impersonate bob, with or without the "+
		"group", "s07", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		allowed(ctx, f.sudo("bob", "payments"), podsIn(f.own("payments")))
		for _, person := range []string{"alice", "carol", "mia", "devi"} {
			denied(ctx, f.sudo(person, "payments"), podsIn(f.own("payments")))
		}
		denied(ctx, f.becoming("alice", f.own("bob"), f.own("payments-sudoers")), podsIn(f.own("payments")))
		denied(ctx, f.becoming("alice", f.own("bob")), podsIn(f.own("payments")))
	})

	inBothModes("ACC-S08 a user may not add herself to warren:sudoers, create a RoleBinding to cluster-admin, or patch the "+
		"Namespace", "s08", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		root, alice := f.own("payments"), f.as("alice")
		allowed(ctx, alice, podsIn(root))
		sudoers := &rbacv1.RoleBinding{}
		sudoers.Namespace, sudoers.Name = root, "warren:sudoers"
		f.Exists(ctx, sudoers)
		sudoers.Subjects = append(sudoers.Subjects, build.RBACUser(f.own("alice")))
		denied(ctx, alice,
			request{"update RoleBinding warren:sudoers", func(ctx context.Context, c client.Client) error {
				return c.Update(ctx, sudoers.DeepCopy())
			}},
			bindClusterAdmin(root), patching(build.Namespace(root), "the root", ""))
	})

	inBothModes("ACC-S09 policies refuse that a user deletes warren:sudoers or adds zed to warren:users; without policies she can, and "+
		"both are restored soon; ACC-S08 without policies, RBAC still denies a user warren:sudoers, cluster-admin and the Namespace", "s09",
		func(ctx SpecContext, f *fixture) {
			f.settle(ctx, f.payments())
			users := build.RoleBinding(f.own("payments"), "warren:users", "")
			f.Exists(ctx, users)
			users.Subjects = append(users.Subjects, build.RBACUser("zed"))
			denied(ctx, f.as("alice"),
				deleting(build.RoleBinding(f.own("payments"), "warren:sudoers", ""), "RoleBinding warren:sudoers"),
				request{"update RoleBinding warren:users", func(ctx context.Context, c client.Client) error { return c.Update(ctx, users.DeepCopy()) }})
			allowed(ctx, f.sudo("bob", "payments"), secretsIn(f.own("payments")))

			f = of(ownWorld(ctx, f.mode.options(devcluster.Options{WithoutPolicies: true}), "s09"), "s09")
			f.settle(ctx, f.payments())
			root, alice := f.own("payments"), f.as("alice")
			sudoers := build.RoleBinding(root, "warren:sudoers", "")
			f.Exists(ctx, sudoers)
			was := sudoers.UID
			more := sudoers.DeepCopy()
			more.Subjects = append(more.Subjects, build.RBACUser(f.own("alice")))
			denied(ctx, alice,
				request{"update RoleBinding warren:sudoers", func(ctx context.Context, c client.Client) error { return c.Update(ctx, more) }},
				bindClusterAdmin(root), patching(build.Namespace(root), "the root", ""))
			allowed(ctx, alice, deleting(sudoers, "RoleBinding warren:sudoers"))
			Eventually(func(g Gomega) {
				g.Expect(f.Read(sudoers)(ctx)).To(Succeed())
				g.Expect(sudoers.UID).NotTo(Equal(was))
			}).WithContext(ctx).Should(Succeed(), "warren:sudoers is made anew")
			allowed(ctx, f.sudo("bob", "payments"), secretsIn(root))

			users = build.RoleBinding(root, "warren:users", "")
			f.Exists(ctx, users)
			before := users.Subjects
			users.Subjects = append(users.Subjects, build.RBACUser("zed"))
			Expect(alice.Update(ctx, users)).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(f.Read(users)(ctx)).To(Succeed())
				g.Expect(users.Subjects).To(Equal(before))
			}).WithContext(ctx).Should(Succeed(), "zed is out again")
		})

	inBothModes("ACC-S10 a sudoer by Group gets pods as warren:sudo:payments with the group, but not as himself, without the group, or "+
		"in shop", "s10", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments(), f.shop())
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+f.own("payments")
		denied(ctx, f.sudo("otto", "payments"), podsIn(f.own("payments")))
		allowed(ctx, f.becoming("otto", nobody, group), podsIn(f.own("payments")))
		denied(ctx, f.becoming("otto", nobody), podsIn(f.own("payments")))
		denied(ctx, f.becoming("otto", nobody, group), podsIn(f.own("shop")))
		Expect(f.get(ctx, f.own("payments")).Status.Sudo.User).To(Equal(nobody))
	})

	inBothModes("ACC-S11 a ServiceAccount that is a sudoer gets pods as warren:sudo:payments with the group, but not as itself or as "+
		"another account", "s11", func(ctx SpecContext, f *fixture) {
		deployer := f.serviceAccount(ctx, f.own("ci"), "deployer")
		f.settle(ctx, f.payments())
		group, pods := f.own("payments-sudoers"), podsIn(f.own("payments"))
		allowed(ctx, f.with(deployer, "warren:sudo:"+f.own("payments"), group), pods)
		denied(ctx, f.with(deployer, "system:serviceaccount:"+f.own("ci")+":deployer", group), pods)
		denied(ctx, f.with(deployer, "system:serviceaccount:"+f.own("other")+":deployer", group), pods)
	})

	inBothModes("ACC-S12 without webhooks, a ServiceAccount of the root that is listed as sudoer is SubjectRefused, no binding names it, "+
		"and its token can't use sudo", "s12", func(ctx SpecContext, f *fixture) {
		tenant, root := f.payments(), f.own("payments")
		tenant.SudoerSubjects(build.ServiceAccount(root, "robot"))
		f.create(ctx, tenant.Object())
		lns := f.says(ctx, root, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonSubjectRefused)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionAccessReady).Message).
			To(ContainSubstring("ServiceAccount " + root + "/robot"))
		robot := f.serviceAccount(ctx, root, "robot")
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+root
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
		allowed(ctx, f.becoming("otto", nobody, group), podsIn(root))
		denied(ctx, f.with(robot, nobody, group), podsIn(root))
		Expect(f.accessSubjects(ctx, root)).NotTo(ContainElement(HaveField("Name", "robot")))
	})

	inBothModes("ACC-S13 the namespace of a ServiceAccount that is a sudoer joins the tree; soon SubjectRefused is reported, no binding "+
		"names the account, and its sudo is denied", "s13", func(ctx SpecContext, f *fixture) {
		root, n := f.own("payments"), f.own("n")
		robot := f.serviceAccount(ctx, n, "robot")
		f.settle(ctx, f.payments().SudoerSubjects(build.ServiceAccount(n, "robot")))
		group, nobody := f.own("payments-sudoers"), "warren:sudo:"+root
		allowed(ctx, f.with(robot, nobody, group), podsIn(root))

		f.label(ctx, n, v1alpha1.LabelParent, root)
		soonDenied(ctx, f.with(robot, nobody, group), podsIn(root))
		f.says(ctx, root, v1alpha1.ConditionAccessReady, metav1.ConditionFalse, v1alpha1.ReasonSubjectRefused)
		Expect(f.accessSubjects(ctx, root)).NotTo(ContainElement(HaveField("Name", "robot")))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(root))
	})

	inBothModes("ACC-S14 sudo with the extra reason is allowed, and the audit event has user bob, the impersonated group and the "+
		"reason", "s14", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		const key = v1alpha1.Domain + "/reason"
		bob, group := f.own("bob"), f.own("payments-sudoers")
		mark := f.Mark(ctx)
		allowed(ctx, f.Impersonate(bob, rest.ImpersonationConfig{
			UserName: bob, Groups: []string{group}, Extra: map[string][]string{key: {"INC-42"}},
		}), podsIn(f.own("payments")))
		requests, err := f.Requests(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(ContainElement(Satisfy(func(r audit.Request) bool {
			as := r.Event.ImpersonatedUser
			return r.User == bob && r.Resource == "pods" && r.Code == http.StatusOK && as != nil && as.Username == bob &&
				len(as.Extra[key]) == 1 && as.Extra[key][0] == "INC-42" && len(as.Groups) > 0 && as.Groups[0] == group
		})))
	})

	inBothModes("ACC-S15 a manager gets and patches the LNamespace, but may not delete it, patch its status, get pods or list "+
		"LNamespaces", "s15", func(ctx SpecContext, f *fixture) {
		f.settle(ctx, f.payments())
		root, mia := f.own("payments"), f.as("mia")
		allowed(ctx, mia, readTenant(root), patchTenant(root, ""))
		denied(ctx, mia, deleting(build.Tenant(root).Object(), "LNamespace"), patchTenant(root, "status"), podsIn(root),
			listing(&v1alpha1.LNamespaceList{}, "LNamespaces"))
	})
})
