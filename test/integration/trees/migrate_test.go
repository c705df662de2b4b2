package trees_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// The plans of one peer are about the whole cluster, so the cases of each run one after the other.
var _ = Describe("kubectl warren migrate", Ordered, func() {
	var own cluster
	var config string
	var s *migration
	var before map[string]*metav1.PartialObjectMetadata

	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{Webhooks: true, Operator: devcluster.OperatorOptions{Config: migrating}})
		config = filepath.Join(GinkgoT().TempDir(), "config.yaml")
		Expect(os.WriteFile(config, []byte(migrating), 0o600)).To(Succeed())
		s = own.fill(ctx, "hnc", config, rbacKind("Role"), rbacKind("RoleBinding"), secretKind, configMapKind)
		mark := func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{"hnc.x-k8s.io/inherited-from": "h-org", "app.kubernetes.io/managed-by": "hnc.x-k8s.io"})
		}
		s.copy(ctx, rbacKind("Role"), "reader", "h-org", mark, "h-team", "h-svc", "h-lab")
		s.copy(ctx, rbacKind("RoleBinding"), "readers", "h-org", mark, "h-team", "h-svc", "h-lab")
		s.copy(ctx, rbacKind("Role"), "team-only", "h-org", mark, "h-team", "h-svc")
		s.copy(ctx, secretKind, "registry", "h-org", mark, "h-team", "h-svc")
		s.copy(ctx, configMapKind, "settings", "h-org", mark, "h-team", "h-svc", "h-lab")
		before = s.state(ctx, "h-")
	})

	It("MIG-P1 the plan lists every write by phase, and what has no counterpart or is not configured; nothing is written; "+
		"MIG-P6 a table counts the writes of each phase; "+
		"MIG-P12 the plan names a NetworkPolicy that selects by labels of HNC", func(ctx SpecContext) {
		plan := s.planned(ctx)
		phases := map[string]int{}
		for _, step := range plan.Steps {
			phases[step.Phase]++
		}
		Expect(phases).To(Equal(map[string]int{"rest": 7, "sources": 7, "copies": 13, "namespaces": 6, "hierarchy": 3, "finish": 6}), "%+v",
			plan.Steps)
		var gaps []string
		for _, gap := range plan.Gaps {
			gaps = append(gaps, gap.What)
		}
		Expect(gaps).To(ConsistOf("HierarchicalResourceQuota h-org/budget", "mode Propagate of limitranges",
			"label tier of SubnamespaceAnchor h-org/h-team", "NetworkPolicy h-org/from-tree"))
		Expect(s.done(ctx, controlplane.Admin, s.args()...)).
			To(And(MatchRegexp(`(?m)^HierarchicalResourceQuota h-org/budget +Warren's component budgets is not installed`),
				MatchRegexp(`(?m)^copies +13 +3 ConfigMap, 5 Role, 3 RoleBinding, 2 Secret$`), MatchRegexp(`(?m)^h-org +h-lab, h-team$`),
				Not(ContainSubstring("COPIED ANEW"))), "MIG-P6 a table of each matter")
		Expect(metadataOf(s.state(ctx, "h-"))).To(Equal(metadataOf(before)))
	})

	It("MIG-P2 nothing is written by --apply without a Deployment of HNC, --apply without consent, or --finish before --apply; "+
		"MIG-P6 --apply prints the table before its question", func(ctx SpecContext) {
		Expect(s.fails(ctx, controlplane.Admin, s.args("--apply", "--peer-namespace", "h-plain")...)).
			To(ContainSubstring("name the namespace in which HNC runs with --peer-namespace"))
		for _, step := range s.planned(ctx, "--peer-namespace", "").Steps {
			Expect(step.Object.Kind).NotTo(Equal("Deployment"), "one in some namespace is not HNC's for its name")
		}
		Expect(s.fails(ctx, controlplane.Admin, s.args("--finish", "--yes")...)).
			To(HaveSuffix("must be done before the last step: run kubectl warren migrate hnc --apply"))
		Expect(s.done(ctx, controlplane.Admin, s.args("--undo", "--yes")...)).To(Equal("There is no migration from HNC to undo\n"))
		Expect(s.fails(ctx, controlplane.Admin, s.args("--apply")...)).To(HaveSuffix("nothing was done"))
		_, asked, _ := s.warren(ctx, controlplane.Admin, s.args("--apply")...)
		Expect(asked).To(MatchRegexp(`(?s)\ncopies +13 .*\[y/N\] `), "MIG-P6 the table comes before the question")
		Expect(metadataOf(s.state(ctx, "h-"))).To(Equal(metadataOf(before)))
	})

	// tree expects the namespaces in Warren's tree.
	tree := func(ctx SpecContext) {
		GinkgoHelper()
		Eventually(s.ns("h-org")).WithContext(ctx).Should(And(standing("h-org", "0"), carry(v1alpha1.LabelType, v1alpha1.TypeRoot),
			noted(v1alpha1.AnnotationCascading, v1alpha1.True)))
		Eventually(s.sub("h-org/h-team")).WithContext(ctx).
			Should(And(beReady(), HaveField("Spec.Labels", map[string]v1alpha1.LabelValue{"team": "a"})))
		Eventually(s.ns("h-svc")).WithContext(ctx).Should(And(standing("h-org", "2"), lack(v1alpha1.LabelBound), carry("cost", "7")))
		Eventually(s.ns("h-lab")).WithContext(ctx).Should(standing("h-org", "1"))
		Expect(s.now(ctx, "h-plain")).To(lack(v1alpha1.LabelParent))
	}

	It("MIG-P9 where a tree would exceed the limit of depth, --apply writes nothing, and HNC still runs", func(ctx SpecContext) {
		low := filepath.Join(GinkgoT().TempDir(), "low.yaml")
		Expect(os.WriteFile(low, []byte(strings.Replace(migrating, "subNamespaces:", "subNamespaces:\n  limits: {depth: 1}", 1)), 0o600)).
			To(Succeed())
		Expect(s.fails(ctx, controlplane.Admin, s.args("--apply", "--yes", "--config", low)...)).
			To(ContainSubstring("tree h-org would have depth 2, and at most 1 is allowed"))
		Expect(s.object(ctx, deploymentKind, "hnc-system", "hnc-controller-manager").Object["spec"]).
			To(HaveKeyWithValue("replicas", BeEquivalentTo(1)))
		Expect(metadataOf(s.state(ctx, "h-"))).To(Equal(metadataOf(before)))
	})

	// policies are the failure policies of the other operator's webhooks.
	policies := func(ctx SpecContext) (all []string) {
		GinkgoHelper()
		webhooks := s.object(ctx, schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1",
			Kind: "ValidatingWebhookConfiguration"}, "", "hnc-validating-webhook-configuration")
		for _, webhook := range webhooks.Object["webhooks"].([]any) {
			all = append(all, webhook.(map[string]any)["failurePolicy"].(string))
		}
		return all
	}

	It("MIG-S1 if a user writes HNC's key after the record, --apply and --finish end and name the namespace; "+
		"--undo works", func(ctx SpecContext) {
		Expect(s.severed(ctx, 1, s.args("--apply", "--yes")...)).NotTo(BeZero(), "killed after it has written the record")
		binding := build.RoleBinding("h-plain", "owner", "cluster-admin", build.RBACUser("mallory"))
		Expect(s.Admin().Create(ctx, binding)).To(Succeed())
		intruder := build.Namespace("h-plain")
		Eventually(func() error {
			return s.As("mallory").Patch(ctx, intruder,
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"hnc.x-k8s.io/subnamespace-of":"h-org"}}}`)))
		}).WithContext(ctx).Should(Succeed())
		for _, flag := range []string{"--apply", "--finish"} {
			Expect(s.fails(ctx, controlplane.Admin, s.args(flag, "--yes")...)).
				To(ContainSubstring("not in the plan to which you agreed: those of h-plain"), flag)
		}
		Expect(s.now(ctx, "h-plain")).To(lack(v1alpha1.LabelParent))
		Expect(s.Admin().Patch(ctx, intruder, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`)))).To(Succeed())
		Expect(s.Admin().Delete(ctx, binding)).To(Succeed())
		s.done(ctx, controlplane.Admin, s.args("--undo", "--yes")...)
		Expect(metadataOf(s.state(ctx, "h-"))).To(Equal(metadataOf(before)))
	})

	It("MIG-P3 killed after each write and repeated, --apply builds the tree, stops HNC and keeps UIDs; --undo restores metadata, "+
		"replicas and webhooks; "+
		"MIG-U1 --undo restores a mode of Warren that a source had before --apply", func(ctx SpecContext) {
		edit(ctx, s.cluster, build.ConfigMap("h-org", "settings", ""), func(o *corev1.ConfigMap) {
			o.SetLabels(map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeCreate})
		})
		edit(ctx, s.cluster, build.Namespace("h-org"), func(n *corev1.Namespace) { n.Labels["pod-security.kubernetes.io/enforce"] = "baseline" })
		before = s.state(ctx, "h-")
		s.pursue(ctx, "--apply", "--yes")
		tree(ctx)
		Eventually(s.ns("h-lab")).WithContext(ctx).Should(carry("pod-security.kubernetes.io/enforce", "baseline"))
		Expect(uidsOf(s.state(ctx, "h-"))).To(Equal(uidsOf(before)))
		deployment := s.object(ctx, deploymentKind, "hnc-system", "hnc-controller-manager")
		Expect(deployment.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(0)))
		Expect(policies(ctx)).To(Equal([]string{"Fail", "Fail", "Ignore", "Fail", "Ignore"}), "what places the namespaces stays as it is")
		s.pursue(ctx, "--undo", "--yes")
		Eventually(func() map[string]map[string]string { return metadataOf(s.state(ctx, "h-")) }).WithContext(ctx).
			Should(Equal(metadataOf(before)))
		Expect(uidsOf(s.state(ctx, "h-"))).To(Equal(uidsOf(before)))
		deployment = s.object(ctx, deployment.GroupVersionKind(), "hnc-system", "hnc-controller-manager")
		Expect(deployment.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(1)))
		Expect(policies(ctx)).To(Equal([]string{"Fail", "Fail", "Fail", "Fail", "Fail"}))
		Expect(s.object(ctx, anchorKind, "h-org", "h-team").GetFinalizers()).To(Equal([]string{"hnc.x-k8s.io"}))
		Expect(s.object(ctx, hncHierarchyKind, "h-org", "hierarchy").GetFinalizers()).To(Equal([]string{"hnc.x-k8s.io/hasSubnamespace"}))
		s.Gone(ctx, subNamespace("h-org/h-team"))
		Eventually(func() (left []v1alpha1.HierarchyConfiguration) {
			GinkgoHelper()
			list := &v1alpha1.HierarchyConfigurationList{}
			Expect(s.Admin().List(ctx, list)).To(Succeed())
			return slices.DeleteFunc(list.Items, func(hc v1alpha1.HierarchyConfiguration) bool { return !strings.HasPrefix(hc.Namespace, "h-") })
		}).WithContext(ctx).Should(BeEmpty(), "MIG-U4")
	})

	It("MIG-U3 --undo writes nothing while a user's SubNamespace is below a migrated namespace, "+
		"and works once it is deleted", func(ctx SpecContext) {
		s.done(ctx, controlplane.Admin, s.args("--apply", "--yes")...)
		Eventually(s.ns("h-svc")).WithContext(ctx).Should(standing("h-org", "2"))
		Expect(s.done(ctx, controlplane.Admin, "create", "h-since", "-n", "h-svc", "--wait")).NotTo(BeEmpty())
		applied := s.state(ctx, "h-")
		Expect(s.fails(ctx, controlplane.Admin, s.args("--undo", "--yes")...)).To(ContainSubstring("namespace h-since was placed below h-svc"))
		left := uidsOf(s.state(ctx, "h-"))
		for name, uid := range uidsOf(applied) { // h-since may have got more copies meanwhile
			Expect(left).To(HaveKeyWithValue(name, uid), "nothing is taken back")
		}
		Expect(s.now(ctx, "h-svc")).To(carry(v1alpha1.LabelParent, "h-team"))
		Expect(s.Admin().Delete(ctx, subNamespace("h-svc/h-since"))).To(Succeed())
		s.isRid(ctx, build.Namespace("h-since"))
		s.done(ctx, controlplane.Admin, s.args("--undo", "--yes")...)
		Eventually(func() map[string]map[string]string { return metadataOf(s.state(ctx, "h-")) }).WithContext(ctx).
			Should(Equal(metadataOf(before)))
	})

	It("MIG-P10 between --apply and --finish namespaces can be deleted, HNC's objects can't be changed, "+
		"and its API server keeps its replica; --undo restores finalizers and webhooks", func(ctx SpecContext) {
		s.done(ctx, controlplane.Admin, s.args("--apply", "--yes")...)
		resourceList := s.object(ctx, deploymentKind, "hnc-system", "hnc-resourcelist-apiextension")
		Expect(resourceList.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(1)),
			"else discovery fails, with which no namespace can be deleted")
		moved := s.object(ctx, hncHierarchyKind, "h-lab", "hierarchy")
		Expect(s.Admin().Patch(ctx, moved, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parent":"h-team"}}`)))).
			To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(s.Admin().Delete(ctx, s.object(ctx, anchorKind, "h-org", "h-team"))).To(MatchError(ContainSubstring("failed calling webhook")))
		Eventually(s.sub("h-old/h-old-kid")).WithContext(ctx).Should(beReady())
		Expect(s.Admin().Delete(ctx, subNamespace("h-old/h-old-kid"))).To(Succeed())
		s.isRid(ctx, build.Namespace("h-old-kid"))
		Expect(s.Admin().Delete(ctx, build.Namespace("h-old"))).To(Succeed())
		s.isRid(ctx, build.Namespace("h-old"))
		s.done(ctx, controlplane.Admin, s.args("--undo", "--yes")...)
		Expect(policies(ctx)).To(HaveEach("Fail"))
		Expect(s.object(ctx, anchorKind, "h-org", "h-team").GetFinalizers()).To(Equal([]string{"hnc.x-k8s.io"}))
		Expect(s.object(ctx, hncHierarchyKind, "h-org", "hierarchy").GetFinalizers()).To(Equal([]string{"hnc.x-k8s.io/hasSubnamespace"}))
		before = s.state(ctx, "h-")
	})

	It("MIG-P4 --finish, killed and repeated, keeps UIDs and leaves every copy in mode update; then no step is left, "+
		"and --undo is refused", func(ctx SpecContext) {
		Expect(s.done(ctx, controlplane.Admin, s.args("--apply", "--yes")...)).To(ContainSubstring("Only the last step is left"))
		tree(ctx)
		s.pursue(ctx, "--finish", "--yes")
		s.taken(ctx, "hnc.x-k8s.io")
		Expect(uidsOf(s.state(ctx, "h-"))).To(Equal(uidsOf(before)))
		Expect(s.planned(ctx).Steps).To(BeEmpty())
		Expect(s.done(ctx, controlplane.Admin, s.args("--apply", "--yes")...)).
			To(Equal("The migration is done: HNC and its objects are no longer needed\n"))
		Expect(s.fails(ctx, controlplane.Admin, s.args("--undo", "--yes")...)).To(ContainSubstring("the last step has been taken"))
		s.isHealthy(ctx)
	})

	It("MIG-P5 after --finish copies follow their source, and objects that HNC excepted have no copies", func(ctx SpecContext) {
		edit(ctx, s.cluster, build.Secret("h-org", "registry", ""), func(o *corev1.Secret) {
			o.SetLabels(map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate, "changed": "yes"})
		})
		for _, name := range []string{"h-team", "h-svc"} {
			Eventually(func() map[string]string { return s.object(ctx, secretKind, name, "registry").GetLabels() }).WithContext(ctx).
				Should(HaveKeyWithValue("changed", "yes"))
		}
		Expect(s.state(ctx, "h-")).To(And(Not(HaveKey("Secret h-lab/registry")), Not(HaveKey("RoleBinding h-team/private")),
			Not(HaveKey("RoleBinding h-team/norman-rb")), Not(HaveKey("Role h-lab/team-only"))))
	})

	It("MIG-P11 the guide's commands delete HNC's namespace, CRDs and bindings, "+
		"also if an APIService has lost its Service", func(ctx SpecContext) {
		service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1alpha2.resources.hnc.x-k8s.io"},
			"spec": map[string]any{"group": "resources.hnc.x-k8s.io", "version": "v1alpha2", "groupPriorityMinimum": int64(10),
				"versionPriority": int64(10),
				"service":         map[string]any{"namespace": "hnc-system", "name": "hnc-resourcelist", "port": int64(7443)}}}}
		Expect(s.Admin().Create(ctx, service)).To(Succeed())
		s.cleanUp(ctx, "hnc-system")
	})

	// hop writes the copies of a Secret along path as Accurate does: each is made from the one before it, with the same mode.
	hop := func(ctx SpecContext, name, mode string, path ...string) {
		GinkgoHelper()
		for i := range path[1:] {
			s.copy(ctx, secretKind, name, path[i], func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"app.kubernetes.io/created-by": "accurate"})
				u.SetAnnotations(map[string]string{"accurate.cybozu.com/from": path[i], "accurate.cybozu.com/propagate": mode})
			}, path[i+1])
		}
	}

	It("MIG-A1 the plan lists every write for roots, templates, SubNamespaces and copies of copies, "+
		"and names what Warren's configuration lacks", func(ctx SpecContext) {
		s = own.fill(ctx, "accurate", config, secretKind)
		hop(ctx, "base", "update", "a-tmpl", "a-root", "a-sub", "a-deep")
		hop(ctx, "base", "update", "a-tmpl", "a-instance")
		hop(ctx, "seed", "create", "a-root", "a-sub", "a-deep")
		before = s.state(ctx, "a-")
		plan := s.planned(ctx, "--peer-config", filepath.Join("testdata", "accurate-config.yaml"))
		phases := map[string]int{}
		for _, step := range plan.Steps {
			phases[step.Phase]++
		}
		Expect(phases).To(Equal(map[string]int{"rest": 6, "sources": 2, "copies": 6, "namespaces": 5, "hierarchy": 2, "finish": 2}), "%+v",
			plan.Steps)
		var gaps []string
		for _, gap := range plan.Gaps {
			gaps = append(gaps, gap.What)
		}
		Expect(gaps).To(ConsistOf("objects of Role without annotation", "objects of RoleBinding", "objects of ConfigMap", "labelKeys team",
			"watches Service", "namingPolicies ^app-"))
	})

	It("MIG-A2 --apply, --undo, --apply and --finish, killed after each write, keep UIDs; "+
		"copies follow the template itself or stay in mode create", Label("slow"), func(ctx SpecContext) {
		s.pursue(ctx, "--apply", "--yes")
		Eventually(s.sub("a-root/a-sub")).WithContext(ctx).Should(beReady())
		Eventually(s.sub("a-sub/a-deep")).WithContext(ctx).Should(beReady())
		Eventually(s.ns("a-deep")).WithContext(ctx).Should(standing("a-root", "2"))
		s.pursue(ctx, "--undo", "--yes")
		Eventually(func() map[string]map[string]string { return metadataOf(s.state(ctx, "a-")) }).WithContext(ctx).
			Should(Equal(metadataOf(before)))
		s.isRid(ctx, subNamespace("a-root/a-sub"), subNamespace("a-sub/a-deep"))
		s.pursue(ctx, "--apply", "--yes")
		s.pursue(ctx, "--finish", "--yes")
		Expect(uidsOf(s.state(ctx, "a-"))).To(Equal(uidsOf(before)))
		Expect(s.planned(ctx).Steps).To(BeEmpty())
		state := s.state(ctx, "a-")
		for _, name := range []string{"a-root", "a-sub", "a-deep", "a-instance"} {
			Expect(state["Secret "+name+"/base"]).To(And(HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelInheritedFrom, "a-tmpl")),
				HaveField("Annotations", And(HaveKeyWithValue(v1alpha1.AnnotationSourceHash, HavePrefix("update:")),
					Not(HaveKey("accurate.cybozu.com/from"))))), name)
		}
		for _, name := range []string{"a-sub", "a-deep"} {
			Expect(state["Secret "+name+"/seed"].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationSourceHash, HavePrefix("create:")), name)
		}
		s.isHealthy(ctx)
	})

	It("MIG-A3 after --finish the guide's commands delete Accurate's namespace, CRDs and bindings", func(ctx SpecContext) {
		if len(s.planned(ctx).Steps) > 0 { // MIG-A2, which does so too, was left out
			s.done(ctx, controlplane.Admin, s.args("--apply", "--yes")...)
			Eventually(s.sub("a-sub/a-deep")).WithContext(ctx).Should(beReady())
			Eventually(s.ns("a-deep")).WithContext(ctx).Should(standing("a-root", "2"))
			s.done(ctx, controlplane.Admin, s.args("--finish", "--yes")...)
		}
		s.cleanUp(ctx, "accurate")
		s.isHealthy(ctx)
	})

	It("MIG-S3 no LNamespace may be called accurate or hnc-system, "+
		"because service accounts there may still have rights", func(ctx SpecContext) {
		for _, name := range []string{"accurate", "hnc-system"} {
			Expect(s.Admin().Create(ctx, build.Tenant(name).Object())).To(MatchError(ContainSubstring("is a reserved name")), name)
		}
	})

	migratesCapsule(&own, &config)
})
