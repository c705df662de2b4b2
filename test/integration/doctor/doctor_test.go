package doctor_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const configuration = "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n"

// The cases change one cluster and mend it, so they run one after the other.
var _ = Describe("kubectl warren doctor", Ordered, ContinueOnFailure, func() {
	admin := controlplane.Admin

	It("finds a deployed cluster well, one line for each check", func(ctx SpecContext) {
		checks, code := examine(ctx, admin)
		Expect(code).To(BeZero())
		Expect(checks).To(HaveLen(37))
		for name, c := range checks {
			if name != "webhook" {
				Expect(c.Status).To(Equal("ok"), "%+v", c)
			}
		}
		Expect(checks["server"].Message).To(HavePrefix("Kubernetes v1."))
		Expect(checks["component/strict-placement"].Message).To(Equal("in force"))
		Expect(checks["component/distribution"].Message).To(HavePrefix("not installed"))
		Expect(checks["pod-security"].Message).To(Equal("the default level of pod security is baseline"))
		out, problems, code := world.Kubectl(ctx, admin, "warren", "doctor")
		Expect(code).To(BeZero(), problems)
		Expect(strings.Split(strings.TrimSpace(out), "\n")).To(HaveLen(37 + 1))
		Expect(out).To(MatchRegexp(`(?m)^(\d+ warnings?: .*; )?\d+ of 37 checks are ok\n$`))
		Expect(out).To(MatchRegexp(`(?m)^ok +policy/copy +in force$`))
	})

	It("sees a binding that only audits, one that is narrowed, one that is gone", func(ctx SpecContext) {
		broken := map[string]func(*admissionv1.ValidatingAdmissionPolicyBinding){
			"warren-managed-namespace": func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
				b.Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
			},
			"warren-copy-access": func(b *admissionv1.ValidatingAdmissionPolicyBinding) {
				b.Spec.MatchResources.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			},
		}
		for name, spoil := range broken {
			binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
			change(ctx, binding, func() { spoil(binding) })
		}
		gone := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warren-reserved-keys"}}
		Expect(world.Admin().Get(ctx, client.ObjectKeyFromObject(gone), gone)).To(Succeed())
		Expect(world.Admin().Delete(ctx, gone)).To(Succeed())
		gone.ResourceVersion, gone.UID = "", ""
		DeferCleanup(func(ctx SpecContext) { Expect(world.Admin().Create(ctx, gone)).To(Succeed()) })

		checks, code := examine(ctx, admin)
		Expect(code).To(Equal(1))
		Expect(failed(checks)).To(ConsistOf("policy/managed-namespace", "policy/copy", "policy/reserved-keys"))
		Expect(checks["policy/copy"].Message).To(ContainSubstring("label tenancy.warren.dev/access"))
		out, problems, code := world.Kubectl(ctx, admin, "warren", "doctor")
		Expect(code).To(Equal(1))
		Expect(problems).To(Equal("error: 3 of 37 checks failed\n"))
		Expect(out).To(MatchRegexp(`(?m)^3 errors: policy/.*, policy/.*, policy/.*; .*\d+ of 37 checks are ok\n$`))
	})

	It("sees a policy that lets pass what it can't judge, and one that names somebody else", func(ctx SpecContext) {
		ignoring := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "warren-source-keys"}}
		change(ctx, ignoring, func() { ignore := admissionv1.Ignore; ignoring.Spec.FailurePolicy = &ignore })
		other := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "warren-operator-cage-rbac"}}
		change(ctx, other, func() { other.Spec.MatchConditions[0].Expression = "request.userInfo.username == 'mallory'" })
		checks, code := examine(ctx, admin)
		Expect(code).To(Equal(1))
		Expect(failed(checks)).To(ConsistOf("policy/source-keys", "policy/operator-cage-rbac"))
		Expect(checks["policy/operator-cage-rbac"].Message).To(ContainSubstring("'mallory'"))
	})

	It("sees that the policies protect another namespace's operator", func(ctx SpecContext) {
		checks, code := examine(ctx, admin, "--operator-namespace", "elsewhere")
		Expect(code).To(Equal(1))
		Expect(failed(checks)).To(ContainElements("policy/copy", "policy/operator-cage-namespaces"))
		Expect(failed(checks)).NotTo(ContainElement("policy/namespace-shape"), "which names nobody")
	})

	It("sees a webhook that nobody answers", func(ctx SpecContext) {
		nowhere, none := "https://127.0.0.1:1/validate", admissionv1.SideEffectClassNone
		planted := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warren"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "lnamespaces.tenancy.warren.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{URL: &nowhere},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"},
						Resources: []string{"lnamespaces"}},
				}},
			}}}
		checks, code := examine(ctx, admin)
		Expect(code).To(BeZero())
		Expect(checks["webhook"].Status).To(Equal("warning"))
		Expect(checks["webhook"].Message).To(ContainSubstring("there is no ValidatingWebhookConfiguration warren"))
		Expect(world.Admin().Create(ctx, planted)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(world.Admin().Delete(ctx, planted)).To(Succeed()) })
		Eventually(func() []string { checks, _ := examine(ctx, admin); return failed(checks) }).WithContext(ctx).Should(ConsistOf("webhook"))
	})

	It("MIG-D1 doctor warns of an APIService without its Service: no namespace can be deleted; the advice deletes it", func(ctx SpecContext) {
		const name = "v1alpha2.resources.hnc.x-k8s.io"
		service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{"group": "resources.hnc.x-k8s.io", "version": "v1alpha2", "groupPriorityMinimum": int64(10),
				"versionPriority": int64(10),
				"service":         map[string]any{"namespace": "hnc-system", "name": "hnc-resourcelist", "port": int64(7443)}}}}
		Expect(world.Admin().Create(ctx, service)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(world.Admin().Delete(ctx, service)).To(Succeed()) })
		Eventually(func() check { checks, _ := examine(ctx, admin); return checks["apiservices"] }).WithContext(ctx).
			Should(And(HaveField("Status", "warning"),
				HaveField("Message", Equal("no answer from "+name+" (ServiceNotFound): until all answer, no namespace of the cluster can be deleted")),
				HaveField("Advice", HaveSuffix("kubectl delete apiservice "+name))))
	})

	It("sees groups of sudoers, and the users that stand for them, that are bound outside of their tenants", func(ctx SpecContext) {
		group, user := build.RBACGroup("shop-sudoers"), build.RBACUser("warren:sudo:shop")
		create(ctx,
			build.Root("shop", v1alpha1.TreeLabel("shop"), "0"), build.RoleBinding("shop", "theirs", "cluster-admin", group),
			build.Namespace("outside"), build.RoleBinding("outside", "odd", "view", group),
			build.RoleBinding("shop", "theirs-too", "view", user), build.ClusterRoleBinding("everywhere", "view", user),
			build.ClusterRoleBinding("wide", "view", build.RBACUser("bob"), group))
		checks, code := examine(ctx, admin)
		Expect(code).To(BeZero())
		Expect(checks["sudoers-groups"].Status).To(Equal("warning"))
		Expect(checks["sudoers-groups"].Message).To(SatisfyAll(
			ContainSubstring("shop-sudoers in RoleBinding outside/odd"), ContainSubstring("shop-sudoers in ClusterRoleBinding wide"),
			ContainSubstring("warren:sudo:shop in ClusterRoleBinding everywhere"),
			Not(ContainSubstring("theirs"))))
	})

	It("ACC-E06 check cluster-role-bindings counts those for tenants, by label access; from 1,000 on it is a "+
		"warning", func(ctx SpecContext) {
		counted := func() check { checks, _ := examine(ctx, admin); return checks["cluster-role-bindings"] }
		Expect(counted()).To(And(HaveField("Status", "ok"), HaveField("Message", MatchRegexp(`^0 of \d+ are for tenants$`))))
		planted := build.Labelled(build.ClusterRoleBinding("warren:sole:e06:bob", "view", build.RBACUser("bob")), v1alpha1.LabelAccess,
			v1alpha1.AccessSole, v1alpha1.LabelTenant, "e06")
		create(ctx, planted)
		Expect(counted()).To(HaveField("Message", MatchRegexp(`^1 of \d+ are for tenants \(sole 1\)$`)))
		many := func(from, to int) {
			for i := from; i < to; i++ {
				name := fmt.Sprint("warren:e06:", i)
				create(ctx, build.Labelled(build.ClusterRoleBinding(name, "view", build.RBACUser("bob")), v1alpha1.LabelAccess, v1alpha1.AccessSudo))
			}
		}
		many(0, 998)
		Expect(counted()).To(HaveField("Status", "ok"))
		many(998, 999)
		Expect(counted()).To(And(HaveField("Status", "warning"),
			HaveField("Message", MatchRegexp(`^1000 of \d+ are for tenants \(sole 1, sudo 999\)`))))
	})

	It("ACC-E12 check cluster-role-bindings names those that bear a name of the operator's and not its labels", func(ctx SpecContext) {
		create(ctx, build.ClusterRoleBinding("warren:sole:e12:mallory", "view", build.RBACUser("mallory")))
		checks, _ := examine(ctx, admin)
		Expect(checks["cluster-role-bindings"]).To(And(HaveField("Status", "warning"),
			HaveField("Message", HaveSuffix("it neither wrote them nor removes them: warren:sole:e12:mallory"))))
	})

	It("SUB-F15 check configuration is ok if the Deployment mounts the file in force; with another file it is a warning that has describe "+
		"deployment", func(ctx SpecContext) {
		configuration := func() check {
			checks, _ := examine(ctx, admin)
			return checks["configuration"]
		}
		labels := map[string]string{"app": "f15"}
		pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "manager", Image: "warren:dev"}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "warren-config-f15"}}}}},
		}}
		brought := build.ConfigMap("warren-system", "warren-config-f15", "")
		brought.Data = map[string]string{"config.yaml": world.OperatorConfig}
		create(ctx, brought, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.OperatorAccount},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod},
		})
		Expect(configuration()).
			To(Equal(check{Name: "configuration", Status: "ok", Message: "the file of ConfigMap warren-config-f15 is in force"}))
		change(ctx, brought, func() { brought.Data["config.yaml"] += "concurrency: 4\n" })
		Expect(configuration()).To(And(HaveField("Status", "warning"),
			HaveField("Message", "the file of ConfigMap warren-config-f15 is not in force"),
			HaveField("Advice", ContainSubstring("describe deployment warren-controller-manager, or read the new Pod's log"))))
	})

	It("sees namespaces that only the file protects, until kubectl warren protect", func(ctx SpecContext) {
		file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}}
		change(ctx, file, func() { file.Data["config.yaml"] = configuration + "protectedNamespaces: [\"mon-*\", kube-system]\n" })
		create(ctx, build.Namespace("mon-a"), build.Namespace("mon-b", v1alpha1.LabelProtected, "true"))
		checks, _ := examine(ctx, admin)
		Expect(checks["protected-namespaces"].Status).To(Equal("warning"))
		Expect(checks["protected-namespaces"].Message).To(HaveSuffix(": mon-a"))
		Expect(kubectl(ctx, admin, "warren protect mon-a")).To(Equal("namespace/mon-a protected\n"))
		checks, _ = examine(ctx, admin)
		Expect(checks["protected-namespaces"].Status).To(Equal("ok"))
	})

	It("SEC-X37 without the role in the whole cluster, check sight of `kubectl warren doctor` names verbs, resource and `the whole "+
		"cluster`, and ClusterRole warren-kinds as the next step; SEC-X37 for a kind of scope Namespaces, it names only the namespace "+
		"without the role; once all rights are restored, it is ok", func(ctx SpecContext) {
		tree := build.Root("sight-root")
		create(ctx, tree, build.Child("sight-child", "sight-root"))
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.KindsRole}}
		var subjects []rbacv1.Subject
		change(ctx, binding, func() { subjects, binding.Subjects = binding.Subjects, nil })
		sight := func() check {
			checks, code := examine(ctx, admin)
			Expect(code).To(BeZero())
			return checks["sight"]
		}
		Eventually(ctx, sight).
			Should(HaveField("Message", ContainSubstring("get, list, watch, create, update, delete of secrets in the whole cluster")))
		Expect(sight().Status).To(Equal("warning"))
		Expect(sight().Advice).To(HavePrefix("bind ClusterRole warren-kinds to ServiceAccount warren-controller-manager"))

		file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}}
		var text string
		change(ctx, file, func() {
			text = file.Data["config.yaml"]
			file.Data["config.yaml"] = configuration + "propagation: {kinds: [{kind: Secret, scope: Namespaces}]}\n"
		})
		here := build.RoleBinding("sight-child", "operator", v1alpha1.KindsRole,
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "warren-system", Name: v1alpha1.OperatorAccount})
		create(ctx, here)
		Eventually(ctx, sight).Should(HaveField("Message", And(ContainSubstring("secrets in sight-root"), Not(ContainSubstring("sight-child")))))

		change(ctx, binding, func() { binding.Subjects = subjects })
		change(ctx, file, func() { file.Data["config.yaml"] = text })
		Eventually(ctx, sight).Should(HaveField("Status", "ok"))
	})

	It("PROP-X8 check kinds warns of copies that mode Remove must still delete, of conflicts of mode All, and of kinds not served, with "+
		"advice; then it is ok: take Secret out", func(ctx SpecContext) {
		create(ctx, build.Root("modes-root"), build.Child("modes-child", "modes-root"))
		file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}}
		text := configuration + "propagation: {kinds: [{kind: Secret, mode: Remove}"
		change(ctx, file, func() {
			file.Data["config.yaml"] = text + ", {group: rbac.authorization.k8s.io, kind: Role, mode: All}, {group: example.com, kind: Nosuch, " +
				"mode: All}]}\n"
		})
		operator := world.As(controlplane.Operator)
		for name, mode := range map[string]string{"gone-soon": "update", "stays": "create"} {
			secret := build.Secret("modes-child", name, "x", v1alpha1.LabelInheritedFrom, "modes-root")
			secret.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: mode + ":0123456789abcdef:" + strings.Repeat("a", 32)}
			Eventually(ctx, func() error { return operator.Create(ctx, secret) }).
				Should(Succeed(), "as soon as the authorizer knows its binding again")
			DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(operator.Delete(ctx, secret))).To(Succeed()) })
		}
		conflict := build.Hierarchy("modes-child")
		create(ctx, conflict)
		v1alpha1.SetCondition(&conflict.Status.Conditions, conflict.Generation, v1alpha1.ConditionPropagated, metav1.ConditionFalse,
			v1alpha1.ReasonConflict,
			`Role "r" from "modes-root": an object of that name exists`)
		Expect(operator.Status().Update(ctx, conflict)).To(Succeed())

		checks, code := examine(ctx, admin)
		Expect(code).To(BeZero())
		Expect(checks["kinds"].Status).To(Equal("warning"))
		Expect(checks["kinds"].Message).To(Equal("mode Remove deletes the copies of Secret (1 copy, and 1 in mode create that stay); " +
			"mode All: copies of Role.rbac.authorization.k8s.io in modes-child are not written, because other objects have their names; " +
			"the API server doesn't serve Nosuch.example.com, so nothing of it is copied"))
		Expect(checks["kinds"].Advice).To(And(ContainSubstring("kubectl warren config diff FILE"), ContainSubstring("propagate=none"),
			ContainSubstring("install its CRD")))

		Expect(operator.Delete(ctx, build.Secret("modes-child", "gone-soon", ""))).To(Succeed())
		change(ctx, file, func() { file.Data["config.yaml"] = text + "]}\n" })
		checks, _ = examine(ctx, admin)
		Expect(checks["kinds"]).
			To(And(HaveField("Status", "ok"), HaveField("Message",
				"mode Remove has deleted all copies of Secret: take Secret out of propagation.kinds")))
	})

	It("PROP-X10 check kinds is ok, and names by cause what mode All leaves out, not in a leaf; it warns of refused or held-back copies "+
		"of ConfigMap, with their namespaces", func(ctx SpecContext) {
		create(ctx, build.Root("whole-root"), build.Child("whole-child", "whole-root"))
		file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: v1alpha1.AcceptedConfigName}}
		change(ctx, file, func() {
			file.Data["config.yaml"] = configuration + "propagation: {neverPropagate: [{kind: ConfigMap, name: local-*}], " +
				"kinds: [{kind: ConfigMap, mode: All}, {kind: Secret, mode: All}, {kind: ServiceAccount, mode: All}]}\n"
		})
		finalized := build.Held(build.ConfigMap("whole-root", "kept", "x"))
		create(ctx, build.ConfigMap("whole-root", "copied", "x"), build.ConfigMap("whole-root", "local-x", "x"), finalized,
			build.ConfigMap("whole-root", "here", "x", v1alpha1.LabelPropagate, v1alpha1.ModeNone),
			build.ConfigMap("whole-child", "leaf", "x", v1alpha1.LabelPropagate, v1alpha1.ModeNone),
			build.Annotated(build.Secret("whole-root", "some", "x"), v1alpha1.AnnotationSelect, "env=prod"))
		DeferCleanup(func(ctx SpecContext) {
			Expect(world.Admin().Patch(ctx, finalized, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).
				To(Succeed())
		})
		const left = "mode All leaves out 1 object with label tenancy.warren.dev/propagate=none: ConfigMap whole-root/here; " +
			"mode All leaves out 1 object with finalizers: ConfigMap whole-root/kept; " +
			"mode All leaves out 1 object that propagation.neverPropagate names: ConfigMap whole-root/local-x; " +
			"mode All copies 1 object only to namespaces that annotation tenancy.warren.dev/select selects: Secret whole-root/some"
		checks, _ := examine(ctx, admin)
		Expect(checks["kinds"]).To(And(HaveField("Status", "ok"),
			HaveField("Message", "all propagated kinds are served, and their modes need no action from you; "+left)))

		for namespace, reason := range map[string]v1alpha1.Reason{"whole-root": v1alpha1.ReasonLimitExceeded,
			"whole-child": v1alpha1.ReasonRejected} {
			hierarchy := build.Hierarchy(namespace)
			create(ctx, hierarchy)
			v1alpha1.SetCondition(&hierarchy.Status.Conditions, hierarchy.Generation, v1alpha1.ConditionPropagated, metav1.ConditionFalse, reason,
				`SealedSecret "a" from "whole-root": why; ConfigMap "copied" from "whole-root": why`)
			Expect(world.As(controlplane.Operator).Status().Update(ctx, hierarchy)).To(Succeed())
		}
		checks, code := examine(ctx, admin)
		Expect(code).To(BeZero())
		Expect(checks["kinds"]).To(And(HaveField("Status", "warning"),
			HaveField("Message", "mode All: copies of ConfigMap in whole-child are refused; "+
				"mode All: limits of tenants hold back copies of ConfigMap in whole-root; "+left)))
		Expect(checks["kinds"].Advice).To(And(ContainSubstring("raise the quota"), ContainSubstring("raise limits.copies")))
	})

	It("sees that the API server no longer serves a kind", func(ctx SpecContext) {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "hierarchyconfigurations." + v1alpha1.Domain}}
		Expect(world.Admin().Get(ctx, client.ObjectKeyFromObject(crd), crd)).To(Succeed())
		Expect(world.Admin().Delete(ctx, crd)).To(Succeed())
		served := func() check {
			checks, _ := examine(ctx, admin)
			return checks["crds"]
		}
		Eventually(ctx, served).Should(And(HaveField("Status", "error"),
			HaveField("Message", ContainSubstring("doesn't serve HierarchyConfiguration"))))
		crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		Expect(world.Admin().Create(ctx, crd)).To(Succeed())
		Eventually(ctx, served).Should(HaveField("Status", "ok"))
	})

	It("says what a user may not look at, instead of guessing", func(ctx SpecContext) {
		checks, code := examine(ctx, "alice")
		Expect(code).To(BeZero())
		Expect(checks["crds"].Status).To(Equal("ok"), "everybody may ask what the API server serves")
		delete(checks, "crds")
		for name, c := range checks {
			Expect(c.Status).To(Equal("warning"), "%s: %+v", name, c)
			Expect(c.Advice).NotTo(BeEmpty(), name)
		}
		Expect(checks).To(HaveKey("policies"))
	})
})

// kubectl returns all that kubectl prints.
func kubectl(ctx context.Context, user, line string) string {
	out, problems, _ := world.Kubectl(ctx, user, strings.Fields(line)...)
	return out + problems
}

func failed(checks map[string]check) []string {
	var names []string
	for name, c := range checks {
		if c.Status == "error" {
			names = append(names, name)
		}
	}
	return names
}

// create makes objects that are deleted at the end of the case. A Namespace stays in phase Terminating, so each case uses new names.
func create(ctx SpecContext, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(world.Admin().Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(world.Admin().Delete(ctx, object))).To(Succeed())
		})
	}
}

// change changes an object for the length of a case.
func change(ctx SpecContext, object client.Object, do func()) {
	GinkgoHelper()
	Expect(world.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	was := object.DeepCopyObject().(client.Object)
	do()
	Expect(world.Admin().Update(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(world.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		was.SetResourceVersion(object.GetResourceVersion())
		Expect(world.Admin().Update(ctx, was)).To(Succeed())
	})
}
