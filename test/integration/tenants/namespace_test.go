package tenants_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("the Namespace of a tenant", func() {
	It("ACC-N01 the Namespace has type, depth, ancestry and lnamespace-uid from its first version on, and no ownerReferences; the "+
		"LNamespace is Ready", func(ctx SpecContext) {
		f := of(world, "n01")
		payments := f.own("payments")
		seen, err := f.Admin().Watch(ctx, &corev1.NamespaceList{}, client.MatchingFields{"metadata.name": payments})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(seen.Stop)
		f.create(ctx, f.payments().Object())

		var first watch.Event
		Eventually(seen.ResultChan()).WithContext(ctx).Should(Receive(&first))
		lns := f.ready(ctx, payments)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady).Reason).To(Equal("Created"))
		Expect(lns.Status.Namespace).To(Equal(payments))
		now := build.Namespace(payments)
		f.Exists(ctx, now)
		for _, namespace := range []*corev1.Namespace{first.Object.(*corev1.Namespace), now} {
			Expect(namespace.Labels).To(HaveKeyWithValue("tenancy.warren.dev/type", "root"))
			Expect(namespace.Labels).To(HaveKeyWithValue(payments+".tree.tenancy.warren.dev/depth", "0"))
			Expect(namespace.Annotations).To(HaveKeyWithValue("tenancy.warren.dev/ancestry", payments))
			Expect(namespace.Annotations).To(HaveKeyWithValue("tenancy.warren.dev/lnamespace-uid", string(lns.UID)))
			Expect(namespace.OwnerReferences).To(BeEmpty())
		}
	})

	It("ACC-N02 without webhooks, an existing Namespace, also one labelled type=root, gives NamespaceConflict with the command; nothing "+
		"is written to it or granted, and alice has no right", func(ctx SpecContext) {
		f := of(world, "n02")
		bare, labelled := build.Namespace(f.own("legacy")), build.Root(f.own("labelled"))
		for _, namespace := range []*corev1.Namespace{bare, labelled} {
			f.create(ctx, namespace)
		}
		// The operator writes its annotations on a namespace that is labelled as a root. From then on, an LNamespace of the same name must not
		// make the operator change the namespace.
		Eventually(func(g Gomega) {
			g.Expect(f.Read(labelled)(ctx)).To(Succeed())
			g.Expect(labelled.Annotations).To(HaveKey(v1alpha1.AnnotationAncestry))
		}).WithContext(ctx).Should(Succeed())
		f.Exists(ctx, bare)
		for _, namespace := range []*corev1.Namespace{bare, labelled} {
			name := namespace.Name
			alices := build.Tenant(name).Users(f.own("alice")).Managers(f.own("alice")).Sudoers(f.own("alice")).Object()
			f.create(ctx, build.Annotated(alices, v1alpha1.AnnotationCreator, f.own("alice")))
			lns := f.says(ctx, name, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict)
			Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady).Message).To(ContainSubstring("namespace " + name +
				" exists; a cluster admin can name who may adopt it: kubectl annotate namespace " + name + " tenancy.warren.dev/adopt=" +
				f.own("alice") + " --overwrite"))
			Consistently(func(g Gomega) {
				now := build.Namespace(name)
				g.Expect(f.Read(now)(ctx)).To(Succeed())
				g.Expect(now.ResourceVersion).To(Equal(namespace.ResourceVersion))
				g.Expect(f.granted(ctx)).To(BeEmpty())
			}).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(Succeed())
			denied(ctx, f.as("alice"), podsIn(name), readTenant(name))
			denied(ctx, f.Sudo(f.own("alice"), name), podsIn(name))
		}
	})

	It("ACC-N14 if the Namespace in the way is deleted, NamespaceConflict stays and no Namespace is created; after a change of the spec, "+
		"the LNamespace is Ready", func(ctx SpecContext) {
		f := of(world, "n14")
		payments := f.own("payments")
		strangers := build.Namespace(payments)
		f.create(ctx, strangers)
		f.create(ctx, f.payments().Object())
		f.conflicts(ctx, payments, "namespace "+payments+" exists")
		Expect(f.Admin().Delete(ctx, strangers)).To(Succeed())
		f.conflicts(ctx, payments, "the name "+payments+" was not free when this LNamespace asked for it")
		f.Gone(ctx, build.Namespace(payments))
		Consistently(f.Read(build.Namespace(payments))).WithContext(ctx).WithTimeout(test.Quiet(soon)).Should(beNotFound())
		f.conflicts(ctx, payments, "the operator tries again only when this LNamespace is created again or its spec changes")

		f.set(ctx, f.Admin(), payments, users(build.Users(f.own("alice"))...))
		f.ready(ctx, payments)
		allowed(ctx, f.as("alice"), podsIn(payments))
	})

	It("ACC-N03 a cluster admin sets the mark to the LNamespace's UID; the Namespace is Adopted, loses the mark, keeps labels, content "+
		"and RoleBindings, and access is granted", func(ctx SpecContext) {
		f := of(world, "n03")
		payments := f.own("payments")
		namespace := build.Labelled(build.Namespace(payments), "example.com/team", "pay")
		secret, foreign := build.Secret(payments, "kept", "v"), build.RoleBinding(payments, "foreign", "view", build.RBACUser(f.own("erin")))
		f.create(ctx, namespace, secret, foreign)
		f.create(ctx, f.payments().Object())
		lns := f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonNamespaceConflict)

		f.Exists(ctx, namespace)
		Expect(f.Admin().Update(ctx, build.Annotated(namespace, v1alpha1.AnnotationAdopt, string(lns.UID)))).To(Succeed())
		lns = f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionTrue, v1alpha1.ReasonAdopted)
		f.ready(ctx, payments)
		now := build.Namespace(payments)
		f.Exists(ctx, now)
		Expect(now.UID).To(Equal(namespace.UID))
		Expect(now.Annotations).NotTo(HaveKey(v1alpha1.AnnotationAdopt))
		Expect(now.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationLNamespaceUID, string(lns.UID)))
		Expect(now.Labels).To(HaveKeyWithValue("example.com/team", "pay"))
		for _, object := range []client.Object{secret, foreign} {
			before := object.GetResourceVersion()
			f.Exists(ctx, object)
			Expect(object.GetResourceVersion()).To(Equal(before))
		}
		allowed(ctx, f.as("alice"), podsIn(payments))
		allowed(ctx, f.sudo("bob", "payments"), secretsIn(payments))
		allowed(ctx, f.as("erin"), podsIn(payments))
	})

	It("ACC-N07 while a deleted Namespace terminates, at most 10 writes fail in a minute; then there is a new one with the same "+
		"lnamespace-uid, and access works", func(ctx SpecContext) {
		f := of(world, "n07")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		old := build.Namespace(payments)
		f.Exists(ctx, old)
		held := build.Held(build.ConfigMap(payments, "held", ""))
		f.create(ctx, held)
		mark := f.Mark(ctx)
		Expect(f.Admin().Delete(ctx, old)).To(Succeed())
		lns := f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonTerminating)
		Consistently(func() (failed []string, err error) {
			writes, err := f.Writes(ctx, mark)
			for _, w := range writes {
				if w.Code >= 400 && (w.Namespace == payments || w.Name == payments) {
					failed = append(failed, w.String())
				}
			}
			return failed, err
		}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(time.Second / 2).
			Should(WithTransform(func(failed []string) int { return len(failed) }, BeNumerically("<=", 10)))

		f.LetGo(ctx, held)
		f.ready(ctx, payments)
		now := build.Namespace(payments)
		f.Exists(ctx, now)
		Expect(now.UID).NotTo(Equal(old.UID))
		Expect(now.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationLNamespaceUID, string(lns.UID)))
		allowed(ctx, f.as("alice"), podsIn(payments))
		allowed(ctx, f.sudo("bob", "payments"), podsIn(payments))
	})

	It("ACC-N04 a user and a sudoer are refused the mark; a sub-namespace or template that has it gives NamespaceConflict and no right "+
		"to eve; LNamespace kube-system is refused", func(ctx SpecContext) {
		f := of(world, "n04")
		f.settle(ctx, f.payments())
		sub, template := f.own("pay-web"), f.own("base")
		f.create(ctx, build.SubNamespace(f.own("payments"), sub), build.Template(template))
		f.Exists(ctx, build.Namespace(sub))
		for _, name := range []string{sub, template} {
			namespace := build.Namespace(name)
			f.Exists(ctx, namespace)
			eves := build.Tenant(name).Sudoers(f.own("eve")).Object()
			f.create(ctx, eves)
			f.mark(ctx, name, string(eves.UID))
			f.conflicts(ctx, name, "a sub-namespace or a template")
			Consistently(func(g Gomega) {
				now := build.Namespace(name)
				g.Expect(f.Read(now)(ctx)).To(Succeed())
				g.Expect(now.Annotations).NotTo(HaveKey(v1alpha1.AnnotationLNamespaceUID))
				g.Expect(now.Labels).NotTo(HaveKeyWithValue(v1alpha1.LabelType, v1alpha1.TypeRoot))
			}).WithContext(ctx).WithTimeout(test.Quiet(2 * time.Second)).Should(Succeed())
			denied(ctx, f.Sudo(f.own("eve"), name), podsIn(name))
		}
		err := f.sudo("bob", "payments").Patch(ctx, build.Namespace(f.own("payments")),
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"tenancy.warren.dev/adopt":"true"}}}`)))
		Expect(err).To(beDenied())
		legacy := f.own("legacy")
		f.create(ctx, build.Namespace(legacy), build.RoleBinding(legacy, "owner", "cluster-admin", build.RBACUser(f.own("alice"))))
		annotate := func(key string) func() error {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, key))
			return func() error { return f.as("alice").Patch(ctx, build.Namespace(legacy), patch) }
		}
		Eventually(annotate("example.com/owner")).WithContext(ctx).Should(Succeed(), "she may write it")
		Expect(annotate(v1alpha1.AnnotationAdopt)()).To(And(beDenied(), MatchError(ContainSubstring("ValidatingAdmissionPolicy"))))
		system := build.Tenant("kube-system").Object()
		Expect(f.Admin().Create(ctx, system)).To(MatchError(ContainSubstring("default and kube-* are reserved names")))
	})

	It("ACC-N13 without webhooks, marks for others, a foreign UID, system:masters or true give NamespaceConflict, and eve reads nothing; "+
		"a mark that names the creator gives Adopted", func(ctx SpecContext) {
		f := of(world, "n13")
		legacy, alices := f.own("legacy"), f.own("alices")
		eves := build.Annotated(build.Tenant(legacy).Sudoers(f.own("eve")).Object(), v1alpha1.AnnotationCreator, f.own("eve"))
		f.create(ctx, build.Namespace(legacy), build.Secret(legacy, "theirs", "v"), build.Namespace(alices))
		f.create(ctx, eves)
		for _, other := range []string{f.own("alice"), "0d21e2c4-0000-4000-8000-000000000000", v1alpha1.MarkClusterAdmins} {
			f.mark(ctx, legacy, other)
			f.conflicts(ctx, legacy, "tenancy.warren.dev/adopt="+f.own("eve")+" --overwrite")
		}
		f.mark(ctx, legacy, v1alpha1.True)
		f.conflicts(ctx, legacy, "adopt=true names no user; a cluster admin can name who may adopt the namespace")
		denied(ctx, f.Sudo(f.own("eve"), legacy), secretsIn(legacy))

		f.mark(ctx, alices, f.own("alice"))
		f.create(ctx, build.Annotated(build.Tenant(alices).Users(f.own("alice")).Object(), v1alpha1.AnnotationCreator, f.own("alice")))
		f.says(ctx, alices, v1alpha1.ConditionNamespaceReady, metav1.ConditionTrue, v1alpha1.ReasonAdopted)
	})

	It("ACC-N09 a missing template gives Ready False and one Event TemplateMissing, while NamespaceReady and AccessReady are True; with "+
		"the template, MetadataSynced and Ready are True", func(ctx SpecContext) {
		f := of(world, "n09")
		shop, template := f.own("shop2"), f.own("missing")
		f.create(ctx, build.Tenant(shop).Template(template).Object())
		f.event(ctx, shop, v1alpha1.ReasonTemplateMissing, "template "+template+" does not exist")
		f.says(ctx, shop, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTemplateMissing)
		f.says(ctx, shop, v1alpha1.ConditionNamespaceReady, metav1.ConditionTrue, v1alpha1.ReasonCreated)
		f.says(ctx, shop, v1alpha1.ConditionAccessReady, metav1.ConditionTrue, v1alpha1.ReasonGranted)
		Expect(v1alpha1.FindCondition(f.get(ctx, shop).Status.Conditions, v1alpha1.ConditionReady).Message).
			To(ContainSubstring("template " + template + " does not exist"))
		synced := func() string {
			c, _ := f.Reported(ctx, shop, v1alpha1.ConditionMetadataSynced)
			return c.Reason
		}
		Eventually(synced).WithContext(ctx).Should(Equal(string(v1alpha1.ReasonTemplateMissing)))
		f.create(ctx, build.Template(template))
		Eventually(synced).WithContext(ctx).Should(Equal(string(v1alpha1.ReasonSynced)))
		f.ready(ctx, shop)
		Expect(v1alpha1.FindCondition(f.get(ctx, shop).Status.Conditions, v1alpha1.ConditionTemplateReady)).To(BeNil())
		Expect(f.Messages(build.Tenant(shop).Object(), v1alpha1.ReasonTemplateMissing)(ctx)).To(HaveLen(1))
	})

	It("ACC-N17 an object in the way of a template's copy gives Ready False Conflict, with kind, name and template, while NamespaceReady "+
		"is True; without that object, Ready is True", func(ctx SpecContext) {
		f := of(world, "n17")
		shop, template := f.own("shop3"), f.own("rails3")
		f.create(ctx, build.Template(template), build.Namespace(shop), build.ConfigMap(shop, "rules", "mine"))
		f.create(ctx, build.Source(build.ConfigMap(template, "rules", "v"), v1alpha1.ModeUpdate))
		f.mark(ctx, shop, v1alpha1.MarkClusterAdmins)
		f.create(ctx, build.Tenant(shop).Template(template).Object())
		f.says(ctx, shop, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConflict)
		f.says(ctx, shop, v1alpha1.ConditionNamespaceReady, metav1.ConditionTrue, v1alpha1.ReasonAdopted)
		Expect(v1alpha1.FindCondition(f.get(ctx, shop).Status.Conditions, v1alpha1.ConditionReady).Message).
			To(ContainSubstring("ConfigMap \"rules\" of template " + template))
		Expect(f.Admin().Delete(ctx, build.ConfigMap(shop, "rules", "mine"))).To(Succeed())
		f.ready(ctx, shop)
	})

	It("ACC-N19 kubectl get shows 0 for a tenant without sub-namespaces, and for the children of its root", func(ctx SpecContext) {
		f := of(world, "n19")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		f.create(ctx, build.Hierarchy(payments))
		for kind, row := range map[string]string{"lns": payments + " +True +Ready +0 ", "hier": "hierarchy +0 +0 +True +"} {
			Eventually(func() string {
				out, problems, _ := f.Kubectl(ctx, controlplane.Admin, "get", kind, "-n", payments)
				return out + problems
			}).WithContext(ctx).Should(MatchRegexp("(?m)^"+row), kind)
		}
	})

	It("ACC-N10 a cluster admin removes label type from the Namespace; the operator soon restores it, with Event "+
		"DriftRepaired", func(ctx SpecContext) {
		f := of(world, "n10")
		payments := f.own("payments")
		f.settle(ctx, f.payments())
		f.label(ctx, payments, v1alpha1.LabelType, nil)
		Eventually(func(g Gomega) {
			namespace := build.Namespace(payments)
			g.Expect(f.Read(namespace)(ctx)).To(Succeed())
			g.Expect(namespace.Labels).To(HaveKeyWithValue(v1alpha1.LabelType, v1alpha1.TypeRoot))
		}).WithContext(ctx).Should(Succeed())
		f.event(ctx, payments, v1alpha1.ReasonDriftRepaired, v1alpha1.LabelType)
		f.ready(ctx, payments)
	})

	It("ACC-N12 a policy that refuses the Namespace gives CreateFailed with its message; without the policy's binding, the LNamespace is "+
		"Ready; ACC-N15 the message of CreateFailed ends with when the operator tries again", func(ctx SpecContext) {
		f := of(world, "n12")
		payments := f.own("payments")
		policy, bound := build.Policy(payments, admissionv1.Create, corev1.SchemeGroupVersion.WithResource("namespaces"), "false",
			"no room for another one")
		f.create(ctx, policy, bound)
		Eventually(func() error {
			return f.Admin().Create(ctx, build.Namespace(payments), client.DryRunAll)
		}).WithContext(ctx).Should(beRefused("no room for another one"), "the policy is in force")
		f.create(ctx, f.payments().Object())
		lns := f.says(ctx, payments, v1alpha1.ConditionNamespaceReady, metav1.ConditionFalse, v1alpha1.ReasonCreateFailed)
		Expect(v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionNamespaceReady).Message).
			To(And(ContainSubstring("no room for another one"),
				HaveSuffix("; the operator tries again within 5m, and at once when this LNamespace is created again or its spec changes")))
		Expect(f.Admin().Delete(ctx, bound)).To(Succeed())
		f.ready(ctx, payments)
	}, SpecTimeout(8*time.Minute))
})

// beRefused matches an error that contains text.
func beRefused(text string) gomegatypes.GomegaMatcher {
	return And(HaveOccurred(), MatchError(ContainSubstring(text)))
}

// mark sets, as a cluster admin, who may adopt a namespace.
func (f *fixture) mark(ctx context.Context, namespace, who string) {
	GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationAdopt, who)
	Expect(f.Admin().Patch(ctx, build.Namespace(namespace), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

// conflicts waits until an LNamespace reports why it can't have its namespace.
func (f *fixture) conflicts(ctx context.Context, name, why string) {
	GinkgoHelper()
	Eventually(func() *metav1.Condition {
		return v1alpha1.FindCondition(f.get(ctx, name).Status.Conditions, v1alpha1.ConditionNamespaceReady)
	}).WithContext(ctx).Should(HaveValue(And(HaveField("Reason", string(v1alpha1.ReasonNamespaceConflict)),
		HaveField("Message", ContainSubstring(why)))))
}
