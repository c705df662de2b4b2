package report_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/words"
)

// auditor may read the objects on which a report is based, but not ask the authorizer about others.
const auditor = "auditor"

// furnish makes the specification's tenants, and bindings of every shape around them.
func furnish(ctx context.Context, w words.Cluster) {
	GinkgoHelper()
	shop := build.Tenant("shop").Users("dave").Managers("mia").Sudoers("bob").Object()
	shop.Spec.Billing = &v1alpha1.Billing{CostCenter: "4711"}
	w.Create(ctx,
		build.Namespace("ci"), serviceAccount("ci", "deployer"), serviceAccount("ci", "other"),
		build.Tenant("payments").Users("alice").UserSubjects(build.Group("pay-devs")).Managers("mia").
			Sudoers("bob").SudoerSubjects(build.Group("pay-oncall"), build.ServiceAccount("ci", "deployer")).Object(),
		shop)
	w.Ready(ctx, build.Tenant("payments").Object(), build.Tenant("shop").Object())
	grow(ctx, w, "payments", "pay-web")
	w.Create(ctx,
		build.RoleBinding("pay-web", "erin", "edit", build.RBACUser("erin")),
		role("pay-web", "one-secret", named(build.Rule("", "secrets", "get", "delete"), "db"), build.Rule("", "pods/log", "get")),
		toRole(build.RoleBinding("pay-web", "one-secret", "one-secret", build.RBACUser("carol"))),
		build.ClusterRole("scalers", build.Rule("apps", "*/scale", "*"), build.Rule("", "nodes", "get")),
		build.ClusterRoleBinding("scalers", "scalers", build.RBACUser("eve"), build.RBACGroup("pay-oncall")),
		build.ClusterRole("any-core", build.Rule("", "*", "list")),
		build.RoleBinding("shop", "any-core", "any-core", build.RBACGroup("system:serviceaccounts:ci")),
		build.RoleBinding("ci", "lost", "no-such-role", build.RBACUser("mallory")),
		build.RoleBinding("ci", "minters", "minters", build.RBACUser("mallory")),
		build.ClusterRole("minters", named(build.Rule("", "serviceaccounts/token", "create"), "deployer")),
		// A group that belongs to no tenant is a group like others, whatever its name.
		build.RoleBinding("ci", "no-tenant", "view", build.RBACGroup("stray-sudoers")))
	letAudit(ctx, w)
	// The API server learns of RoleBindings and of Roles by separate watches, of each kind in the order in which they were made.
	stray := w.Impersonate(controlplane.Admin, rest.ImpersonationConfig{UserName: "stray", Groups: []string{"stray-sudoers"}})
	Eventually(func() error { return stray.List(ctx, &corev1.PodList{}, client.InNamespace("ci")) }).WithContext(ctx).Should(Succeed())
	Eventually(func() error {
		return client.IgnoreNotFound(w.As("carol").Get(ctx, client.ObjectKey{Namespace: "pay-web", Name: "db"}, &corev1.Secret{}))
	}).WithContext(ctx).Should(Succeed())
}

// letAudit gives the auditor its rights.
func letAudit(ctx context.Context, w words.Cluster) {
	GinkgoHelper()
	w.Create(ctx,
		build.ClusterRole(auditor, build.Rule("", "namespaces", "get", "list"), build.Rule("tenancy.warren.dev", "*", "get", "list"),
			build.Rule("rbac.authorization.k8s.io", "*", "get", "list")),
		build.ClusterRoleBinding(auditor, auditor, build.RBACUser(auditor)))
	Eventually(func() error { return w.As(auditor).List(ctx, &rbacv1.ClusterRoleBindingList{}) }).WithContext(ctx).Should(Succeed())
}

// grow makes a SubNamespace and waits until the tenant's bindings are there.
func grow(ctx context.Context, w words.Cluster, parent, name string) {
	GinkgoHelper()
	w.Create(ctx, build.SubNamespace(parent, name))
	w.Exists(ctx, build.RoleBinding(name, "warren:sudoers", ""), build.RoleBinding(name, "warren:users", ""))
}

func serviceAccount(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules}
}

func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}

func toRole(binding *rbacv1.RoleBinding) *rbacv1.RoleBinding {
	binding.RoleRef.Kind = "Role"
	return binding
}

// tokenOf is a client configuration with the token of a service account.
func tokenOf(ctx context.Context, namespace, name string) *rest.Config {
	GinkgoHelper()
	token := &authenticationv1.TokenRequest{}
	Expect(world.Admin().SubResource("token").Create(ctx, serviceAccount(namespace, name), token)).To(Succeed())
	config := rest.AnonymousClientConfig(world.Config(controlplane.Admin))
	config.BearerToken, config.QPS = token.Status.Token, -1
	return config
}
