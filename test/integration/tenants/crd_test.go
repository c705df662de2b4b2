package tenants_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const lnamespaces = "lnamespaces." + v1alpha1.Domain

func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: lnamespaces}}
}

// five tenants of a case, each with a sub-namespace and something in both.
type five struct {
	*fixture
	tenants []*build.LNamespace
	content []client.Object
}

func fiveOf(ctx context.Context, f *fixture) *five {
	GinkgoHelper()
	all := &five{fixture: f}
	for n := range 5 {
		name := f.own(fmt.Sprintf("t%d", n))
		all.tenants = append(all.tenants, build.Tenant(name).Users(f.own("alice")).Managers(f.own("mia")).Sudoers(f.own("bob")))
	}
	f.settle(ctx, all.tenants...)
	for _, tenant := range all.tenants {
		child := tenant.Name + "-web"
		f.grow(ctx, tenant.Name, child)
		all.content = append(all.content, build.ConfigMap(tenant.Name, "kept", "v"), build.Secret(child, "kept", "v"))
	}
	f.create(ctx, all.content...)
	return all
}

// namespaces are those of all tenants, with their UIDs, labels and phase.
func (all *five) namespaces(ctx context.Context) map[string]string {
	GinkgoHelper()
	seen := map[string]string{}
	for _, tenant := range all.tenants {
		for _, name := range []string{tenant.Name, tenant.Name + "-web"} {
			namespace := build.Namespace(name)
			Expect(all.Read(namespace)(ctx)).To(Succeed())
			seen[name] = fmt.Sprint(namespace.UID, namespace.Labels, namespace.Status.Phase)
		}
	}
	return seen
}

// survives expects that the removal of the CRD ends, takes all access with it and nothing else.
func (all *five) survives(ctx context.Context, before map[string]string) {
	GinkgoHelper()
	Eventually(all.Read(definition())).WithContext(ctx).Should(beNotFound(), "the CRD is gone")
	Eventually(func() []client.Object { return all.granted(ctx) }).WithContext(ctx).Should(BeEmpty())
	Consistently(func() map[string]string { return all.namespaces(ctx) }).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Equal(before))
	for _, object := range all.content {
		version := object.GetResourceVersion()
		Expect(all.Read(object)(ctx)).To(Succeed())
		Expect(object.GetResourceVersion()).To(Equal(version))
	}
	soonDenied(ctx, all.Sudo(all.own("bob"), all.tenants[0].Name), podsIn(all.tenants[0].Name))
	soonDenied(ctx, all.as("alice"), podsIn(all.tenants[0].Name+"-web"))
}

var _ = Describe("the kind LNamespace", Ordered, SpecPriority(1), func() {
	var w *devcluster.World
	var all *five

	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "d08", "d11")
	})

	It("ACC-D11 an operator that may not GET the CRD reports Deleting and the missing right; the LNamespace keeps the finalizer, and the "+
		"Namespace is not deleted", func(ctx SpecContext) {
		f := of(w, "d11")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		role := build.ClusterRole("warren-manager")
		f.Exists(ctx, role)
		rules := role.DeepCopy().Rules
		role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "apiextensions.k8s.io") })
		Expect(f.Admin().Update(ctx, role)).To(Succeed())
		may := f.operatorMay(ctx, "get", "apiextensions.k8s.io", "customresourcedefinitions", "")
		Eventually(may).WithContext(ctx).Should(BeFalse())

		Expect(f.Admin().Delete(ctx, build.Tenant(payments).Object())).To(Succeed())
		lns := f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady).Message).
			To(SatisfyAll(ContainSubstring("the operator deletes nothing until"), ContainSubstring("customresourcedefinitions")))
		Consistently(func() (corev1.NamespacePhase, error) {
			namespace := build.Namespace(payments)
			err := f.Read(namespace)(ctx)
			return namespace.Status.Phase, err
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Equal(corev1.NamespaceActive))
		Expect(f.get(ctx, payments).Finalizers).To(ContainElement(v1alpha1.FinalizerLNamespace))

		role.Rules = rules
		Expect(f.Admin().Update(ctx, role)).To(Succeed())
		Eventually(f.Read(build.Tenant(payments).Object())).WithContext(ctx).Should(beNotFound())
	}, SpecTimeout(8*time.Minute))

	It("ACC-D08 the CRD is deleted while the operator runs; every Namespace of five tenants stays Active with labels and content, and no "+
		"object has label access", func(ctx SpecContext) {
		all = fiveOf(ctx, of(w, "d08"))
		before := all.namespaces(ctx)
		Expect(w.Admin().Delete(ctx, definition())).To(Succeed())
		all.survives(ctx, before)
	}, SpecTimeout(4*time.Minute))

	It("ACC-D10 the CRD and the LNamespaces are applied again, the roots marked; all are Adopted, lnamespace-uid and ownerReferences "+
		"have the new UIDs, and no object is lost", func(ctx SpecContext) {
		old := map[string]string{}
		for _, tenant := range all.tenants {
			namespace := build.Namespace(tenant.Name)
			all.Exists(ctx, namespace)
			old[tenant.Name] = namespace.Annotations[v1alpha1.AnnotationLNamespaceUID]
		}
		manifests, err := devcluster.Render("config/overlays/standard")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), manifests.Definitions())).To(Succeed())
		Eventually(func() error { return w.Admin().Create(ctx, all.tenants[0].Object(), client.DryRunAll) }).WithContext(ctx).
			Should(Succeed(), "a CRD that is new is served soon")
		for _, tenant := range all.tenants {
			lns := tenant.Object()
			all.create(ctx, lns)
			all.mark(ctx, tenant.Name, string(lns.UID))
		}
		for _, tenant := range all.tenants {
			lns := all.ready(ctx, tenant.Name)
			Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady).Reason).To(Equal("Adopted"))
			Expect(string(lns.UID)).NotTo(Equal(old[tenant.Name]))
			namespace := build.Namespace(tenant.Name)
			all.Exists(ctx, namespace)
			Expect(namespace.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationLNamespaceUID, string(lns.UID)))
			for _, object := range pair("warren:sudo:" + tenant.Name) {
				all.Exists(ctx, object)
				Expect(object.GetOwnerReferences()).To(ConsistOf(reference(lns)))
			}
			allowed(ctx, all.Sudo(all.own("bob"), tenant.Name), secretsIn(tenant.Name), secretsIn(tenant.Name+"-web"))
			allowed(ctx, all.as("alice"), podsIn(tenant.Name+"-web"))
		}
		for _, object := range all.content {
			Expect(all.Read(object)(ctx)).To(Succeed())
		}
	}, SpecTimeout(4*time.Minute))

	It("ACC-D09 with the operator stopped, the deleted CRD waits in Terminating; then the operator starts, the CRD goes, and every "+
		"Namespace stays", func(ctx SpecContext) {
		// A controller manager that starts now knows the kind. The running one has seen it come back, and learns of it up to 41 s late.
		Expect(w.ControlPlane.Controllers.Stop()).To(Succeed())
		Expect(w.ControlPlane.Controllers.Start()).To(Succeed())
		Expect(w.ControlPlane.Ready(ctx)).To(Succeed())
		before := all.namespaces(ctx)
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Admin().Delete(ctx, definition())).To(Succeed())
		Consistently(func() (bool, error) {
			crd := definition()
			err := all.Read(crd)(ctx)
			return crd.DeletionTimestamp.IsZero(), err
		}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(BeFalse(), "it waits in Terminating")
		Expect(w.Operator.Start(ctx)).To(Succeed())
		all.survives(ctx, before)
	}, SpecTimeout(4*time.Minute))
})
