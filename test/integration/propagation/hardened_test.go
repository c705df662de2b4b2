package propagation_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// ownBinding is the RoleBinding by which the operator has its right in a namespace.
func ownBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.OperatorBinding}}
}

var _ = Describe("overlay hardened", Ordered, func() {
	var f *family
	operator := func(ctx context.Context, list client.ObjectList, namespace string) error {
		return f.As(controlplane.Operator).List(ctx, list, client.InNamespace(namespace))
	}
	secrets := func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kindOf(build.Secret("", "", "")))
		list.Kind += "List"
		return list
	}
	bound := func(ctx context.Context, namespaces ...string) ([]string, error) {
		return f.standing(ctx, ownBinding(""), namespaces...)
	}
	BeforeAll(func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{Overlay: "config/overlays/hardened"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		f = grow(ctx, w)
		Eventually(ctx, bound).WithArguments(f.acme, f.a, f.a1, f.b, f.zeta, f.z, f.tmpl).Should(HaveLen(7), explain(w))
	})

	It("SEC-X9 op lists Secrets in plain, kube-system or the whole cluster: 403; in a namespace of the forest: allowed, and propagation "+
		"works", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "x9", "1"), v1alpha1.ModeUpdate)
		m := build.Source(build.ConfigMap(f.acme, "x9", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s, m)
		f.copied(ctx, s, f.tree()...)
		f.copied(ctx, m, f.tree()...)
		Expect(operator(ctx, secrets(), f.a)).To(Succeed())
		for _, namespace := range []string{"", f.solo, metav1.NamespaceSystem, metav1.NamespaceDefault} {
			Expect(operator(ctx, secrets(), namespace)).To(beForbidden(), "in namespace %q", namespace)
		}
		Expect(bound(ctx, f.solo, metav1.NamespaceSystem, metav1.NamespaceDefault)).To(BeEmpty())
		requests, err := f.Requests(ctx, audit.Position{})
		Expect(err).NotTo(HaveOccurred())
		for _, r := range requests {
			if r.User == controlplane.Operator && (r.Resource == "secrets" || r.Resource == "configmaps") && r.Code < 300 &&
				r.Name != v1alpha1.AcceptedConfigName {
				Expect(r.Namespace).To(HavePrefix(f.prefix), "%s", r)
			}
		}
	})

	It("SEC-X34 a namespace that joins a tree, moves and returns has copies; once it leaves the forest, its last copy, then op's "+
		"RoleBinding are deleted; op gets 403",
		func(ctx SpecContext) {
			s := build.Source(build.Secret(f.acme, "x34", "1"), v1alpha1.ModeUpdate)
			below := f.prefix + "x34"
			f.create(ctx, s, build.Child(below, f.a))
			f.copied(ctx, s, append(f.tree(), below)...)
			f.move(ctx, below, f.zeta)
			f.absent(ctx, s, below)
			f.move(ctx, below, f.acme)
			f.copied(ctx, s, below)
			f.move(ctx, below, "")
			f.absent(ctx, s, below)
			f.absent(ctx, ownBinding(""), below)
			Eventually(ctx, operator).WithArguments(secrets(), below).Should(beForbidden())
			f.staysCopied(ctx, s, f.tree()...)
		})

	It("SEC-X35 the owner of a plain namespace creates RoleBinding warren:operator, with or without its labels: 403; a sudoer or cluster "+
		"admin deletes a real one: 403; SEC-X35 a real one that is deleted while the bindings of policy copy do not exist is restored, and "+
		"copies are still written", func(ctx SpecContext) {
		f.create(ctx, build.RoleBinding(f.acme, "x35", "cluster-admin", build.RBACUser("bob")), build.RoleBinding(f.solo, "x35", "cluster-admin",
			build.RBACUser("bob")))
		Eventually(ctx, func(ctx context.Context) error { return f.As("bob").List(ctx, secrets(), client.InNamespace(f.solo)) }).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return f.As("bob").List(ctx, secrets(), client.InNamespace(f.acme)) }).Should(Succeed())
		forged := ownBinding(f.solo)
		forged.Labels = map[string]string{v1alpha1.LabelAccess: v1alpha1.AccessOperator}
		forged.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: v1alpha1.KindsRole}
		Expect(f.As("bob").Create(ctx, forged)).To(beForbidden())
		forged.Labels = nil
		Expect(f.As("bob").Create(ctx, forged)).To(beForbidden(),
			"its name is the operator's where no tree is, too: it would stand in the way when one comes")
		Expect(f.As("bob").Delete(ctx, ownBinding(f.acme))).To(beForbidden())
		Expect(f.Admin().Delete(ctx, at(ctx, f, ownBinding(""), f.b))).To(beForbidden(), "admins lift the policy first")

		s := build.Source(build.Secret(f.acme, "x35", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		f.remove(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren-copy-access"}})
		Eventually(ctx, func(ctx context.Context) error { return f.Admin().Delete(ctx, ownBinding(f.b)) }).Should(Succeed())
		Eventually(ctx, bound).WithArguments(f.b).Should(HaveLen(1), explain(f.World))
		f.label(ctx, s, "x", "y")
		f.copied(ctx, s, f.tree()...)
	})

	It("SEC-X36 after overlay standard is applied and the operator has restarted, no RoleBinding warren:operator is left, and copies are "+
		"still written", func(ctx SpecContext) {
		s := build.Source(build.Secret(f.acme, "x36", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)
		standard, err := devcluster.Render("config/overlays/standard")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, f.Config(controlplane.Admin), standard.Rest())).To(Succeed())
		f.mayWatchSecrets(ctx, f.solo, true)
		Expect(f.Operator.Configure(ctx, standard.Configuration())).To(Succeed())
		f.absent(ctx, ownBinding(""), f.acme, f.a, f.a1, f.b, f.zeta, f.z, f.tmpl)
		f.label(ctx, s, "x", "y")
		f.copied(ctx, s, f.tree()...)
	})
})

func beForbidden() OmegaMatcher { return MatchError(apierrors.IsForbidden, "is a 403") }
