package trees_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a SubNamespace is created", func() {
	It("SUB-S1 the first version of a new Namespace has parent, bound, tree labels, inherited keys and those of the spec; its SubNamespace "+
		"is Ready (NamespaceActive, observedGeneration 1), without an Event", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s1-payments", "team", "neco"),
			build.Source(build.RoleBinding("s1-payments", "alice", "admin", build.RBACUser("alice")), v1alpha1.ModeUpdate))
		child := shared.follow(ctx, called("s1-web"))
		sub := build.SubNamespace("s1-payments", "s1-web", "app", "web")
		Eventually(shared.As("alice").Create).WithArguments(ctx, sub).Should(Succeed(), "RBAC learns of the binding")

		Eventually(shared.sub("s1-payments/s1-web")).WithContext(ctx).Should(And(beReady(),
			HaveField("Status.ObservedGeneration", BeEquivalentTo(1)),
			say(v1alpha1.ConditionMetadataSynced, metav1.ConditionTrue, v1alpha1.ReasonSynced)))
		Eventually(func() int { return len(child.versions("s1-web")) }).WithContext(ctx).Should(BeNumerically(">", 0))
		Expect(child.versions("s1-web")[0]).To(And(
			carry(v1alpha1.LabelParent, "s1-payments"), carry(v1alpha1.LabelBound, "true"),
			standing("s1-payments", "1"), standing("s1-web", "0"), carry("team", "neco"), carry("app", "web"),
			noted(v1alpha1.AnnotationAncestry, "s1-payments/s1-web"), noted(v1alpha1.AnnotationInherited, "app,team"),
			carry(v1alpha1.LabelCreatedBy, v1alpha1.OperatorName)))
		Consistently(ctx, shared.Reasons(subNamespace("s1-payments/s1-web"))).WithTimeout(test.Quiet(2 * time.Second)).Should(BeEmpty())
	})

	It("SUB-S14 without webhooks, a SubNamespace costs the operator "+
		"three writes, finalizer, Namespace and status, and then none", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("w3-payments", "team", "neco"))
		Eventually(shared.ns("w3-payments")).WithContext(ctx).Should(standing("w3-payments", "0"))
		mark := shared.Mark(ctx)
		shared.grow(ctx, "w3-payments/w3-web")
		writes := func(ctx context.Context) ([]string, error) {
			requests, err := shared.Writes(ctx, mark)
			var ours []string
			for _, r := range requests {
				if r.Namespace == "w3-payments" || r.Name == "w3-web" {
					ours = append(ours, strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"))
				}
			}
			return ours, err
		}
		all := ConsistOf("subnamespaces", "namespaces", "subnamespaces/status")
		Eventually(ctx, writes).Should(all, "finalizer, Namespace, status")
		Consistently(ctx, writes).WithTimeout(test.Quiet(10 * time.Second)).Should(all)
	})

	It("SUB-S2 a name of 63 characters becomes a Namespace with a tree label of that name; one of 64, or with a dot, is refused: at most 63 "+
		"characters, no dots", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s2-payments"))
		longest := "s2-" + strings.Repeat("x", 60)
		shared.grow(ctx, "s2-payments/"+longest)
		Expect(shared.now(ctx, longest)).To(standing(longest, "0"))
		for _, name := range []string{longest + "x", "s2-child.01"} {
			Expect(shared.Admin().Create(ctx, build.SubNamespace("s2-payments", name))).
				To(MatchError(ContainSubstring("at most 63 characters, no dots")), name)
		}
	})

	It("SUB-S16 a name of 64 characters is refused: metadata.name: Invalid value: NAME becomes a Namespace name: at most 63 characters, no "+
		"dots; choose another", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s16-payments"))
		long := "s16-" + strings.Repeat("x", 60)
		Expect(shared.Admin().Create(ctx, build.SubNamespace("s16-payments", long))).To(MatchError(HaveSuffix(
			`is invalid: metadata.name: Invalid value: "` + long + `" becomes a Namespace name: at most 63 characters, no dots; choose another`)))
	})

	It("SUB-S3 in spec.labels, keys and values that can't be labels, keys of tenancy.warren.dev, and more than 64 keys are refused; SUB-S3 "+
		"the messages have: every key must be a valid label key, every value must be a valid label value (at most 63 characters), must have at "+
		"most 64", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s3-payments"))
		create := func(labels ...string) error {
			return shared.Admin().Create(ctx, build.SubNamespace("s3-payments", "s3-web", labels...))
		}
		Expect(create("foo-", "~")).To(MatchError(And(ContainSubstring("every key must be a valid label key"),
			ContainSubstring("every value must be a valid label value (at most 63 characters)"))))
		Expect(create(v1alpha1.LabelType, "root")).To(MatchError(ContainSubstring("keys of tenancy.warren.dev belong to the operator")))
		var many []string
		for i := range 65 {
			many = append(many, fmt.Sprintf("key-%d", i), "x")
		}
		Expect(create(many...)).To(MatchError(ContainSubstring("must have at most 64")))
	})

	It("SUB-S5 without webhooks, the Namespace gets no key that the file does not allow; the SubNamespace is Ready, and its MetadataSynced "+
		"(KeyNotAllowed) names these keys", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s5-payments"))
		sub := build.SubNamespace("s5-payments", "s5-web", "foo", "a", "app", "b")
		sub.Spec.Annotations = map[string]v1alpha1.AnnotationValue{"bar": "c"}
		shared.Create(ctx, sub)
		Eventually(shared.sub("s5-payments/s5-web")).WithContext(ctx).Should(And(beReady(),
			say(v1alpha1.ConditionMetadataSynced, metav1.ConditionFalse, v1alpha1.ReasonKeyNotAllowed, "foo", "bar")))
		Expect(shared.now(ctx, "s5-web")).To(And(carry("app", "b"), lack("foo"), unnoted("bar")))
		Eventually(ctx, shared.Reasons(subNamespace("s5-payments/s5-web"))).Should(ContainElement(string(v1alpha1.ReasonKeyNotAllowed)))
	})

	It("SUB-S7 an inherited key that the spec of a SubNamespace sets has that value there and below; without it in the spec, both have the "+
		"root's value again", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s7-payments", "team", "neco"), build.SubNamespace("s7-payments", "s7-web", "team", "tama"))
		Eventually(shared.sub("s7-payments/s7-web")).WithContext(ctx).Should(beReady())
		shared.grow(ctx, "s7-web/s7-deep")
		for _, name := range []string{"s7-web", "s7-deep"} {
			Expect(shared.now(ctx, name)).To(carry("team", "tama"))
		}
		edit(ctx, shared, subNamespace("s7-payments/s7-web"), func(sub *v1alpha1.SubNamespace) { sub.Spec.Labels = nil })
		for _, name := range []string{"s7-web", "s7-deep"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("team", "neco"))
		}
	})

	It("SUB-S8 a key that is only allowed is on that one namespace, not below; labels and annotations in the SubNamespace's metadata reach "+
		"no namespace", func(ctx SpecContext) {
		sub := build.Annotated(build.SubNamespace("s8-payments", "s8-web", "app", "web"), "memo", "mine")
		sub.Labels = map[string]string{"team": "mine", "app": "mine"}
		shared.Create(ctx, build.Root("s8-payments"), sub)
		Eventually(shared.sub("s8-payments/s8-web")).WithContext(ctx).Should(beReady())
		shared.grow(ctx, "s8-web/s8-deep")
		Expect(shared.now(ctx, "s8-web")).To(And(carry("app", "web"), lack("team"), unnoted("memo")))
		Expect(shared.now(ctx, "s8-deep")).To(And(lack("app"), lack("team"), unnoted("memo")))
	})

	It("SUB-S9 without webhooks, a SubNamespace in a plain namespace or a template is ParentNotManaged, Stalled, without a Namespace; it "+
		"gets one when the plain one becomes a root", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("s9-plain"), build.Template("s9-template"),
			build.SubNamespace("s9-plain", "s9-a"), build.SubNamespace("s9-template", "s9-b"))
		Eventually(shared.sub("s9-plain/s9-a")).WithContext(ctx).
			Should(stall(v1alpha1.ReasonParentNotManaged, "is neither a root nor a sub-namespace"))
		Eventually(shared.sub("s9-template/s9-b")).WithContext(ctx).
			Should(stall(v1alpha1.ReasonParentNotManaged, "is neither a root nor a sub-namespace"))
		shared.Absent(ctx, build.Namespace("s9-a"), build.Namespace("s9-b"))
		shared.label(ctx, "s9-plain", v1alpha1.LabelType+"=root")
		Eventually(shared.sub("s9-plain/s9-a")).WithContext(ctx).Should(beReady())
		Expect(shared.now(ctx, "s9-a")).To(standing("s9-plain", "1"))
	})
})

var _ = Describe("a name is taken", func() {
	It("SUB-K1 without webhooks, a SubNamespace with the name of a plain namespace is NameTaken and Stalled; the operator writes nothing to "+
		"that namespace", func(ctx SpecContext) {
		web := build.Namespace("k1-web")
		shared.Create(ctx, build.Root("k1-payments", "team", "neco"), web, build.SubNamespace("k1-payments", "k1-web"))
		Eventually(shared.sub("k1-payments/k1-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonNameTaken))
		Consistently(shared.ns("k1-web")).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).
			Should(HaveField("ObjectMeta.ResourceVersion", web.ResourceVersion))
		shared.quiet(ctx, 10*time.Second, "k1-web")
	})

	It("SUB-K2 a SubNamespace with the name of another's child in its tree is Conflict, then NamespaceTerminating, and Ready with a new "+
		"Namespace, without a restart", func(ctx SpecContext) {
		web, content := build.Child("k2-web", "k2-side"), build.Held(build.ConfigMap("k2-web", "hangs", "x"))
		shared.Create(ctx, build.Root("k2-payments", "team", "neco"), build.Child("k2-side", "k2-payments"), web, content,
			build.SubNamespace("k2-payments", "k2-web"))
		Eventually(shared.sub("k2-payments/k2-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonConflict))
		shared.Delete(ctx, web)
		Eventually(shared.sub("k2-payments/k2-web")).WithContext(ctx).Should(wait(v1alpha1.ReasonNamespaceTerminating))
		shared.LetGo(ctx, content)
		Eventually(shared.sub("k2-payments/k2-web")).WithContext(ctx).Should(beReady())
		Expect(shared.now(ctx, "k2-web")).To(And(HaveField("ObjectMeta.UID", Not(Equal(web.UID))), carry("team", "neco")))
	})

	It("SUB-K3 a SubNamespace with the name of an unbound child of "+
		"its parent is Conflict (is not bound); its deletion keeps that Namespace", func(ctx SpecContext) {
		sub := build.SubNamespace("k3-payments", "k3-legacy")
		shared.Create(ctx, build.Root("k3-payments"), build.Child("k3-legacy", "k3-payments"), sub)
		Eventually(shared.sub("k3-payments/k3-legacy")).WithContext(ctx).Should(stall(v1alpha1.ReasonConflict, "is not bound"))
		shared.Delete(ctx, sub)
		shared.Gone(ctx, sub)
		Consistently(shared.ns("k3-legacy")).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).Should(active())
	})

	It("SUB-T13 when a cluster admin removes bound, the SubNamespace is Conflict, and its Namespace unchanged; with bound again, it is "+
		"Ready, with the same UID and annotations", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t13-payments"))
		shared.grow(ctx, "t13-payments/t13-web")
		before := shared.now(ctx, "t13-web")
		shared.label(ctx, "t13-web", v1alpha1.LabelBound+"-")
		Eventually(shared.sub("t13-payments/t13-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonConflict, "is not bound"))
		shared.quiet(ctx, 3*time.Second, "t13-web")
		shared.label(ctx, "t13-web", v1alpha1.LabelBound+"="+v1alpha1.True)
		Eventually(shared.sub("t13-payments/t13-web")).WithContext(ctx).Should(beReady())
		Expect(shared.now(ctx, "t13-web")).To(And(HaveField("ObjectMeta.UID", before.UID),
			HaveField("ObjectMeta.Annotations", before.Annotations)))
	})

	It("SUB-K5 of two SubNamespaces of one name, created at once in two trees, exactly one is Ready and the other NameTaken; the Namespace "+
		"never changes its parent", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("k5-a"), build.Root("k5-b"))
		all := shared.follow(ctx)
		const times = 20
		atOnce(2*times, func(i int) {
			parent := []string{"k5-a", "k5-b"}[i%2]
			shared.Create(ctx, build.SubNamespace(parent, fmt.Sprintf("k5-x%d", i/2)))
		})
		for i := range times {
			name := fmt.Sprintf("k5-x%d", i)
			inA, inB := shared.sub("k5-a/"+name), shared.sub("k5-b/"+name)
			Eventually(func(g Gomega) {
				a, err := inA(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				b, err := inB(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(a).To(Or(beReady(), stall(v1alpha1.ReasonNameTaken)))
				g.Expect(b).To(Or(beReady(), stall(v1alpha1.ReasonNameTaken)))
				g.Expect(condition(v1alpha1.ConditionReady)(a).Status).NotTo(Equal(condition(v1alpha1.ConditionReady)(b).Status))
			}).WithContext(ctx).Should(Succeed(), name)
		}
		for i := range times {
			name := fmt.Sprintf("k5-x%d", i)
			Eventually(all.versions).WithArguments(name).ShouldNot(BeEmpty(), "the watch brings them a moment later")
			versions := all.versions(name)
			for _, version := range versions {
				Expect(version).To(carry(v1alpha1.LabelParent, versions[0].Labels[v1alpha1.LabelParent]))
			}
		}
	})
})
