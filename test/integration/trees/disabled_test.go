package trees_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

var _ = Describe("a controller is switched off", Ordered, ContinueOnFailure, func() {
	var own configured

	BeforeAll(func(ctx SpecContext) {
		own.cluster = startWorld(ctx, devcluster.Options{Components: []string{"config/components/distribution"},
			Operator: devcluster.OperatorOptions{Config: without("none")}})
	})

	for _, off := range config.ControllerNames() {
		It("SUB-F16 with any one controller switched off, each other controller works, an LNamespace is deleted with its namespace, and none "+
			"panics: "+off, func(ctx SpecContext) {
			own.configure(ctx, without(off))
			othersWork(ctx, own.cluster, off)
		})
	}

	It("ACC-D13 with controller access off, AccessReady is Unknown Disabled, Ready is True, and warren:users keeps who left the list; "+
		"the garbage collector deletes a deleted tenant's ClusterRoleBindings", func(ctx SpecContext) {
		own.configure(ctx, without("none"))
		tenant := build.Tenant("d13-payments").Users("d13-alice").Sudoers("d13-bob").Object()
		own.Create(ctx, tenant)
		Eventually(own.lns(tenant.Name)).WithContext(ctx).Should(say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady))
		users := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "warren:users"}}
		own.configure(ctx, without(config.ControllerAccess))
		edit(ctx, own.cluster, tenant, func(lns *v1alpha1.LNamespace) { lns.Spec.Users = nil })
		Eventually(own.lns(tenant.Name)).WithContext(ctx).Should(And(withoutAccess(),
			say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)))
		Expect(own.Admin().Get(ctx, client.ObjectKeyFromObject(users), users)).To(Succeed())
		Expect(users.Subjects).To(HaveLen(1))
		own.Delete(ctx, tenant)
		own.Gone(ctx, build.Namespace(tenant.Name))
		Eventually(func(g Gomega) {
			bindings := &rbacv1.ClusterRoleBindingList{}
			g.Expect(own.Admin().List(ctx, bindings, client.HasLabels{v1alpha1.LabelAccess})).To(Succeed())
			g.Expect(bindings.Items).To(BeEmpty(), "the garbage collector deletes what the LNamespace owned")
		}).WithContext(ctx).Should(Succeed())
	})
})

// without returns a configuration that switches one controller off.
func without(controller string) string {
	entries := `"*"`
	if controller != "none" {
		entries += `, "-` + controller + `"`
	}
	return "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\ncontrollers: [" + entries + "]\n"
}

// withoutAccess matches an LNamespace which reports that the operator neither grants nor revokes rights.
func withoutAccess() types.GomegaMatcher {
	return say(v1alpha1.ConditionAccessReady, metav1.ConditionUnknown, v1alpha1.ReasonDisabled, "controllers")
}

// othersWork gives each controller something to do, and expects that all but the one that is off do it, and that none panics.
func othersWork(ctx context.Context, c cluster, off string) {
	GinkgoHelper()
	root := "f16-" + off
	sub, placed, child, tenant := root+"-sub", root+"-placed", root+"-child", build.Tenant(root+"-tenant").Users("f16-alice").Object()
	c.Create(ctx, build.Root(root), build.Namespace(placed), build.Child(child, root), source(root, "copied"), build.SubNamespace(root, sub),
		distributed(root, child), tenant)
	c.wish(ctx, placed, build.Below(root))
	for controller, done := range map[string]func(Gomega){
		config.ControllerSubNamespace: func(g Gomega) {
			g.Expect(c.sub(root + "/" + sub)(ctx)).To(beReady())
			g.Expect(c.ns(sub)(ctx)).To(carry(v1alpha1.LabelParent, root))
		},
		config.ControllerHierarchy:    func(g Gomega) { g.Expect(c.hier(placed)(ctx)).To(applied()) },
		config.ControllerPropagation:  func(g Gomega) { g.Expect(c.secret(child, "copied")(ctx)).NotTo(BeNil()) },
		config.ControllerDistribution: func(g Gomega) { g.Expect(c.secret(child, root)(ctx)).NotTo(BeNil()) },
		config.ControllerLNamespace: func(g Gomega) {
			g.Expect(c.lns(tenant.Name)(ctx)).To(say(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady))
		},
		config.ControllerAccess: func(g Gomega) {
			if off == config.ControllerLNamespace {
				return // it grants nothing without a root
			}
			g.Expect(c.Read(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "warren:users"}})(ctx)).To(Succeed())
		},
	} {
		if controller != off {
			Eventually(done).WithContext(ctx).Should(Succeed(), "controller %s works", controller)
		}
	}
	if off == config.ControllerAccess {
		Eventually(c.lns(tenant.Name)).WithContext(ctx).Should(withoutAccess())
	}
	c.Delete(ctx, tenant)
	c.Gone(ctx, tenant, build.Namespace(tenant.Name))
	Expect(c.Operator.Log()).NotTo(ContainSubstring("Observed a panic"))
}

// distributed makes a ResourceDistribution of a Secret of its own name to one namespace.
func distributed(name, to string) *v1alpha1.ResourceDistribution {
	GinkgoHelper()
	raw, err := json.Marshal(&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": name}})
	Expect(err).NotTo(HaveOccurred())
	return &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourceDistributionSpec{
		Resource: runtime.RawExtension{Raw: raw},
		Targets:  v1alpha1.DistributionTargets{IncludedNamespaces: []v1alpha1.NamespaceReference{{Name: v1alpha1.NamespaceName(to)}}}}}
}
