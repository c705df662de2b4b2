package tenants_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("an identity for GitOps", func() {
	It("ACC-T05 a ServiceAccount that a manager binds in the root works in the whole tree, and nowhere else; listed as user, it is "+
		"SubjectRefused; its rights end with its binding",
		func(ctx SpecContext) {
			f := of(world, "t05")
			root, web, later, shop := f.own("payments"), f.own("pay-web"), f.own("later"), f.own("shop")
			f.settle(ctx, build.Tenant(root).Managers(f.own("mia")).Sudoers(f.own("bob")),
				build.Tenant(shop).Users(f.own("dave")).Managers(f.own("dave")).Sudoers(f.own("bob")))
			f.grow(ctx, root, web)

			By("a manager lists herself, makes the account and binds it")
			mia := f.as("mia")
			f.set(ctx, mia, root, users(build.Users(f.own("mia"))...))
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: root, Name: "gitops"}}
			subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: root, Name: "gitops"}
			binding := build.Source(build.RoleBinding(root, "gitops", "admin", subject), v1alpha1.ModeUpdate)
			allowed(ctx, mia, making(account, "the account"), making(binding, "the binding"))
			token := &authenticationv1.TokenRequest{}
			Expect(mia.SubResource("token").Create(ctx, account, token)).To(Succeed())
			config := rest.AnonymousClientConfig(f.Config(controlplane.Admin))
			config.BearerToken = token.Status.Token
			gitops := f.with(config, "")

			By("the account works in the whole tree, and in what is added to it")
			apply := func(namespace string) request {
				return request{"apply a ConfigMap in " + namespace, func(ctx context.Context, c client.Client) error {
					return c.Apply(ctx, corev1apply.ConfigMap("settings", namespace).WithData(map[string]string{"region": "north"}),
						client.FieldOwner("gitops"))
				}}
			}
			allowed(ctx, gitops, apply(root), apply(web), making(build.SubNamespace(root, later), "a SubNamespace"))
			f.Exists(ctx, build.RoleBinding(later, "gitops", ""))
			allowed(ctx, gitops, apply(later), podsIn(later))

			By("it changes no tenant, no walls, and nothing elsewhere")
			denied(ctx, gitops, readTenant(root), patchTenant(root, ""), apply(shop), podsIn(shop), podsIn(f.own("elsewhere")),
				patching(build.Namespace(web), "Namespace "+web, ""), deleting(build.Namespace(web), "Namespace "+web),
				making(build.Namespace(f.own("own")), "a Namespace"),
				patching(build.RoleBinding(root, "warren:users", "admin"), "RoleBinding warren:users", ""),
				patching(build.RoleBinding(web, "gitops", "admin"), "the copy of its own binding", ""),
				bindClusterAdmin(root), bindClusterAdminEverywhere())
			denied(ctx, f.with(config, f.own("bob"), root+"-sudoers"), podsIn(root))
			denied(ctx, f.with(config, "warren:sudo:"+root, root+"-sudoers"), podsIn(root))

			By("on a list of the tenant it would get nothing")
			f.set(ctx, mia, root, users(build.Users(f.own("mia"))[0], build.ServiceAccount(root, "gitops")))
			f.suspended(ctx, root, build.ServiceAccount(root, "gitops"))
			denied(ctx, gitops, readTenant(root))

			By("it ends with its binding")
			allowed(ctx, mia, deleting(binding, "the binding"))
			soonDenied(ctx, gitops, podsIn(root), podsIn(web), podsIn(later))
		}, SpecTimeout(5*time.Minute))
})
