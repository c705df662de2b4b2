package chart_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

var _ = Describe("a release of the chart", Ordered, func() {
	const set = "--set=image.repository=registry.example/warren"
	var s site
	var first, second string
	var operator *devcluster.Operator

	BeforeAll(func(ctx SpecContext) {
		s = newSite(ctx)
		first, second = s.chart(ctx, "v1.0.0"), s.chart(ctx, "v1.1.0")
	}, NodeTimeout(3*suite.Patience))

	It("FLT-U12 after helm install, helm test passes and a tenant can be created; it fails while a policy has no binding, which helm "+
		"upgrade restores", func(ctx SpecContext) {
		Expect(s.runHelm(ctx, "install", "warren", first, "--create-namespace", set)).To(ContainSubstring("Warren v1.0.0 is installed"))
		s.deleteWebhooks(ctx) // no pod here will ever answer them
		operator = s.startOperator(ctx)
		Expect(s.runHelm(ctx, "test", "warren")).To(ContainSubstring("Succeeded"))

		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren-copy"}}
		Expect(s.Admin().Delete(ctx, binding)).To(Succeed())
		_, err := s.tryHelm(ctx, "test", "warren")
		Expect(err).To(HaveOccurred(), "a policy binds nobody")
		s.runHelm(ctx, "upgrade", "warren", first, set)
		Expect(s.read(binding)(ctx)).To(Succeed(), "it is there again")
		s.deleteWebhooks(ctx)

		tenant := build.Tenant("payments").Users("alice").Object()
		Expect(s.Admin().Create(ctx, tenant)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(s.read(tenant)(ctx)).To(Succeed())
			ready := v1alpha1.FindCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready).To(HaveField("Status", metav1.ConditionTrue), "%v", tenant.Status.Conditions)
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U12 helm upgrade with the same values changes nothing, with another configuration replaces the pods, and with the next chart "+
		"brings its CRDs and its operator", func(ctx SpecContext) {
		before := s.deployment(ctx)
		s.runHelm(ctx, "upgrade", "warren", first, set)
		Expect(s.deployment(ctx).Generation).To(Equal(before.Generation), "nothing has changed")
		s.runHelm(ctx, "upgrade", "warren", first, set, "--set=controller.config.concurrency=8")
		after := s.deployment(ctx)
		Expect(after.Spec.Template.Spec).To(Equal(before.Spec.Template.Spec))
		Expect(after.Spec.Template.Annotations["checksum/config"]).NotTo(Equal(before.Spec.Template.Annotations["checksum/config"]))

		s.runHelm(ctx, "upgrade", "warren", second, set)
		Expect(s.definition(ctx).Labels).To(HaveKeyWithValue("app.kubernetes.io/version", "v1.1.0"))
		Expect(s.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/warren:v1.1.0"))
	}, SpecTimeout(2*suite.Patience))

	It("FLT-U15 helm upgrade refuses a chart older than the CRDs, and names both versions; crds.enabled=false runs the older operator "+
		"beside them; a later upgrade manages them again", func(ctx SpecContext) {
		answer, err := s.tryHelm(ctx, "upgrade", "warren", first, set)
		Expect(err).To(HaveOccurred())
		Expect(answer).To(ContainSubstring("lnamespaces.tenancy.warren.dev on this cluster is of version v1.1.0, and this chart of v1.0.0: " +
			"take a chart of at least that version, or add --set crds.enabled=false to return to an older operator and keep the CRDs"))
		Expect(s.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/warren:v1.1.0"))

		s.runHelm(ctx, "upgrade", "warren", first, set, "--set=crds.enabled=false")
		Expect(s.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/warren:v1.0.0"))
		Expect(s.definition(ctx).Labels).To(HaveKeyWithValue("app.kubernetes.io/version", "v1.1.0"))
		Expect(s.read(build.Tenant("payments").Object())(ctx)).To(Succeed())
		s.runHelm(ctx, "upgrade", "warren", second, set)
		Expect(s.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/warren:v1.1.0"))
	}, SpecTimeout(2*suite.Patience))

	It("FLT-U15 helm upgrade refuses to skip two minor versions or a major one, and crds.enabled=false where the CRDs lack keep; it gives "+
		"the next step", func(ctx SpecContext) {
		for version, message := range map[string]string{
			"v1.4.0": "on this cluster is of version v1.1.0, and this chart of v1.4.0: " +
				"upgrade to v1.3 first, because an upgrade may skip one minor version only",
			"v3.0.0": "on this cluster is of version v1.1.0, and this chart of v3.0.0: " +
				"upgrade to v2 first, because an upgrade may not skip a major version",
		} {
			answer, err := s.tryHelm(ctx, "upgrade", "warren", s.chart(ctx, version), set)
			Expect(err).To(HaveOccurred())
			Expect(answer).To(ContainSubstring(message))
		}
		s.runHelm(ctx, "upgrade", "warren", second, set, "--set=crds.keep=false")
		answer, err := s.tryHelm(ctx, "upgrade", "warren", second, set, "--set=crds.enabled=false")
		Expect(err).To(HaveOccurred())
		Expect(answer).To(ContainSubstring("crds.enabled is false: Helm would delete CustomResourceDefinition " +
			"lnamespaces.tenancy.warren.dev, and all its objects, though no namespace; upgrade with crds.enabled=true and crds.keep=true first"))
		Expect(s.definition(ctx).DeletionTimestamp).To(BeNil())
		s.runHelm(ctx, "upgrade", "warren", second, set)
	}, SpecTimeout(2*suite.Patience))

	It("FLT-U13 helm uninstall runs manager release; CRDs, tenants, people's rights and ClusterRole warren:impersonate-on stay, and nothing "+
		"else; helm install manages the tenant again", func(ctx SpecContext) {
		_, err := operator.Stop() // as the kubelet does when release has scaled the Deployment to 0
		Expect(err).NotTo(HaveOccurred())
		tenant := build.Tenant("payments").Object()
		Expect(s.read(tenant)(ctx)).To(Succeed())
		Expect(tenant.Finalizers).NotTo(BeEmpty())

		s.runHelm(ctx, "uninstall", "warren")
		Expect(s.read(tenant)(ctx)).To(Succeed())
		Expect(tenant.Finalizers).To(BeEmpty(), "manager release took them off")
		Expect(s.definition(ctx).DeletionTimestamp).To(BeNil())
		Expect(s.leftovers(ctx)).To(ConsistOf("warren:impersonate-on"))
		sudoers := &rbacv1.RoleBindingList{}
		Expect(s.Admin().List(ctx, sudoers, client.InNamespace("payments"))).To(Succeed())
		Expect(sudoers.Items).NotTo(BeEmpty(), "people keep their rights")

		s.runHelm(ctx, "install", "warren", second, set)
		s.deleteWebhooks(ctx)
		Expect(operator.Start(ctx)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(s.read(tenant)(ctx)).To(Succeed())
			g.Expect(tenant.Finalizers).NotTo(BeEmpty())
		}).WithContext(ctx).Should(Succeed(), "it comes back, and takes the tenant up again")
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U16 helm install takes over what make deploy has deployed with --take-ownership --force-conflicts, and refuses without them; "+
		"tenants stay", func(ctx SpecContext) {
		_, err := operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		s.runHelm(ctx, "uninstall", "warren")
		s.deploy(ctx)
		_, err = s.tryHelm(ctx, "install", "warren", second, set)
		Expect(err).To(HaveOccurred(), "Helm wants to be told")
		s.runHelm(ctx, "install", "warren", second, set, "--take-ownership", "--force-conflicts")
		Expect(s.deployment(ctx).Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/warren:v1.1.0"))
		Expect(s.read(build.Tenant("payments").Object())(ctx)).To(Succeed())
	}, SpecTimeout(3*suite.Patience))

	It("FLT-U25 the claim of the billing ledger stays after a change of driver and after helm uninstall; helm install takes it up again; an "+
		"upgrade that would delete it is refused", func(ctx SpecContext) {
		const sqlite = "--set=controller.config.billing.driver=sqlite"
		postgres := []string{"--set=controller.config.billing.driver=postgres", "--set=controller.config.billing.clusterID=c",
			"--set=controller.config.billing.postgres.dsnFile=/dsn"}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: "warren-billing"}}
		s.runHelm(ctx, "upgrade", "warren", second, set, sqlite, "--install", "--create-namespace")
		Expect(s.read(claim)(ctx)).To(Succeed())
		made := claim.UID

		unkept := claim.DeepCopy()
		delete(unkept.Annotations, "helm.sh/resource-policy")
		Expect(s.Admin().Update(ctx, unkept)).To(Succeed())
		answer, err := s.tryHelm(ctx, append([]string{"upgrade", "warren", second, set}, postgres...)...)
		Expect(err).To(HaveOccurred())
		Expect(answer).To(ContainSubstring("run `kubectl annotate pvc warren-billing -n warren-system helm.sh/resource-policy=keep` first"))
		s.runHelm(ctx, "upgrade", "warren", second, set, sqlite)

		s.runHelm(ctx, append([]string{"upgrade", "warren", second, set}, postgres...)...)
		Expect(s.read(claim)(ctx)).To(Succeed())
		s.runHelm(ctx, "upgrade", "warren", second, set, sqlite)
		Expect(s.runHelm(ctx, "uninstall", "warren")).To(ContainSubstring("[PersistentVolumeClaim] warren-billing"))
		Expect(s.read(claim)(ctx)).To(Succeed())
		Expect(claim.DeletionTimestamp).To(BeNil())
		s.runHelm(ctx, "install", "warren", second, set, sqlite)
		Expect(s.read(claim)(ctx)).To(Succeed())
		Expect(claim.UID).To(Equal(made))
	}, SpecTimeout(3*suite.Patience))
})

// startOperator starts the operator with the configuration file that the chart has deployed.
func (s site) startOperator(ctx context.Context) *devcluster.Operator {
	GinkgoHelper()
	file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: "warren-config"}}
	Expect(s.read(file)(ctx)).To(Succeed())
	operator, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Manager: filepath.Join(bin, "manager"), Kubeconfig: s.Kubeconfig(controlplane.Operator), Dir: filepath.Join(s.Dir, "operator"),
		Config: file.Data["config.yaml"],
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(operator.Stop)
	return operator
}

// deploy deploys overlay standard as `make deploy` does.
func (s site) deploy(ctx context.Context) {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "deploy.sh"), "standard", "warren:test", "", "none")
	cmd.Env = append(os.Environ(), "KUBECTL="+s.KubectlPath, "KUBERC=off", "KUBECONFIG="+s.Kubeconfig(controlplane.Admin),
		"KUBECACHEDIR="+s.Dir)
	answer, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(answer))
}

func (s site) deleteWebhooks(ctx context.Context) {
	GinkgoHelper()
	for _, object := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		object.SetName("warren")
		Expect(s.Admin().Delete(ctx, object)).To(Succeed())
	}
	Eventually(func(ctx context.Context) error {
		tenant := build.Tenant("untried").Object()
		return s.Admin().Create(ctx, tenant, client.DryRunAll)
	}).WithContext(ctx).Should(Succeed(), "the API server has seen that they are gone")
}

func (s site) deployment(ctx context.Context) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: "warren-controller-manager"}}
	Expect(s.read(d)(ctx)).To(Succeed())
	return d
}

func (s site) definition(ctx context.Context) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "lnamespaces.tenancy.warren.dev"}}
	Expect(s.read(crd)(ctx)).To(Succeed())
	return crd
}

// leftovers returns the names of the objects with the product's label, of all kinds that the chart may make but CRDs.
func (s site) leftovers(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
		&corev1.ConfigMapList{},
		&corev1.SecretList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{}, &batchv1.JobList{},
		&admissionv1.ValidatingAdmissionPolicyList{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
		&admissionv1.ValidatingWebhookConfigurationList{}, &admissionv1.MutatingWebhookConfigurationList{},
		&schedulingv1.PriorityClassList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
	} {
		Expect(s.Admin().List(ctx, list, client.MatchingLabels{"app.kubernetes.io/name": "warren"})).To(Succeed())
		Expect(meta.EachListItem(list, func(object runtime.Object) error {
			names = append(names, object.(client.Object).GetName())
			return nil
		})).To(Succeed())
	}
	return names
}

// read is for Eventually: it reads the object again.
func (s site) read(object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		return s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)
	}
}
