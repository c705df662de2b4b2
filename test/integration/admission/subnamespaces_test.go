package admission_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("a SubNamespace", func() {
	It("SUB-S4 with webhooks, a SubNamespace with keys that the file does not allow is refused; one answer names both spec.labels[foo] and "+
		"spec.annotations[bar]", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s4-payments"))
		sub := build.SubNamespace("s4-payments", "s4-web", "foo", "a", "app", "b")
		sub.Spec.Annotations = map[string]v1alpha1.AnnotationValue{"bar": "c"}
		Eventually(shared.create).WithArguments(ctx, sub).Should(refuse("spec.labels[foo]: Forbidden: not allowed by subNamespaces.labels",
			"spec.annotations[bar]"))
	})

	// SUB-S9 with webhooks. The tests of the reconcilers have it without webhooks.
	It("SUB-S9 with webhooks, a SubNamespace in a plain namespace or "+
		"a template is refused: is neither a root nor a sub-namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("s9-p"), build.Template("s9-t"))
		for _, parent := range []string{"s9-p", "s9-t"} {
			Expect(shared.create(ctx, build.SubNamespace(parent, parent+"-c"))).
				To(refuse("forbidden", parent+" is neither a root nor a sub-namespace"))
		}
	})

	It("SUB-S10 a SubNamespace with its parent's own name, or the name of a protected namespace (kube-x, default), is refused; SUB-K7 with "+
		"webhooks, a SubNamespace with a reserved name is refused: the configuration reserves the name istio-system", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s10-payments"))
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("s10-payments", "s10-payments")).Should(refuse("own name"))
		// SUB-K7 with webhooks. The tests of the reconcilers have it without webhooks.
		Expect(shared.create(ctx, build.SubNamespace("s10-payments", "istio-system"))).
			To(refuse("the configuration reserves the name istio-system"))
		Expect(shared.create(ctx, build.SubNamespace("s10-payments", "kube-x"))).To(refuse("kube-x is a protected namespace"))
		Expect(shared.create(ctx, build.SubNamespace("s10-payments", "default"))).To(refuse("default is a protected namespace"))
	})

	It("SUB-S14 with webhooks, a SubNamespace has its finalizer from the first version on, and costs the operator two writes: Namespace and "+
		"status", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("s14-payments"))
		Eventually(shared.ns("s14-payments")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("s14-payments"), "0"))
		mark := shared.Mark(ctx)
		sub := build.SubNamespace("s14-payments", "s14-web")
		sub.Finalizers = []string{"example.com/theirs"}
		shared.Create(ctx, sub)
		Expect(sub.Finalizers).To(Equal([]string{"example.com/theirs", v1alpha1.FinalizerSubNamespace}), "what the API server answered")
		bare := build.SubNamespace("s14-payments", "s14-db")
		shared.Create(ctx, bare)
		Expect(bare.Finalizers).To(Equal([]string{v1alpha1.FinalizerSubNamespace}))
		for _, name := range []string{"s14-web", "s14-db"} {
			Eventually(shared.sub("s14-payments", name)).WithContext(ctx).Should(active())
		}
		Eventually(func(ctx context.Context) (map[string]int, error) {
			requests, err := shared.Writes(ctx, mark)
			written := map[string]int{}
			for _, r := range requests {
				if r.Namespace == "s14-payments" && r.Resource == "subnamespaces" || strings.HasPrefix(r.Name, "s14-") && r.Resource == "namespaces" {
					written[strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")]++
				}
			}
			return written, err
		}).WithContext(ctx).Should(Equal(map[string]int{"namespaces": 2, "subnamespaces/status": 2}))
		Expect(shared.Admin().Patch(ctx, sub, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":["`+v1alpha1.FinalizerSubNamespace+`"]}}`)))).To(Succeed())
	})

	It("SUB-K1 with webhooks, a SubNamespace with the name of a plain namespace is accepted with a Warning, and is NameTaken and Stalled; "+
		"that namespace does not change", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("k1-payments"), build.Namespace("k1-web"))
		version := shared.now(ctx, "k1-web").ResourceVersion
		Expect(shared.create(ctx, build.SubNamespace("k1-payments", "k1-web"))).To(warn("namespace k1-web exists"))
		Eventually(shared.sub("k1-payments", "k1-web")).WithContext(ctx).Should(And(
			ready(metav1.ConditionFalse, v1alpha1.ReasonNameTaken),
			HaveField("Status.Conditions", ContainElement(And(HaveField("Type", "Stalled"), HaveField("Status", metav1.ConditionTrue))))))
		Consistently(shared.ns("k1-web")).WithContext(ctx).WithTimeout(quiet).Should(HaveField("ObjectMeta.ResourceVersion", version))
	})

	It("SUB-D3 with webhooks, a SubNamespace whose Namespace has "+
		"children is not deleted: pay-web has sub-namespaces (deep1, deep2)", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("d3-payments"))
		shared.grow(ctx, "d3-payments/d3-pay-web", "d3-pay-web/d3-deep2", "d3-pay-web/d3-deep1")
		Expect(shared.kubectl(ctx, "delete", "subnamespace", "d3-pay-web", "-n", "d3-payments")).
			To(refuse("forbidden", "d3-pay-web has sub-namespaces (d3-deep1, d3-deep2)"))
		Expect(shared.sub("d3-payments", "d3-pay-web")(ctx)).To(active())
	})

	// kubectl may have to repeat the deletion: the webhook learns a moment later that it is allowed.
	DescribeTable("SUB-D4 once the HierarchyConfiguration of the namespace or its parent, or the LNamespace, allows cascading deletion, the "+
		"SubNamespace is deleted with all below; perhaps at kubectl's next try",
		func(ctx SpecContext, prefix string, allowIt func(ctx context.Context, tenant, child string)) {
			tenant, child := prefix+"-payments", prefix+"-pay-web"
			below := []string{prefix + "-deep1", prefix + "-deep2"}
			shared.tenant(ctx, build.Tenant(tenant))
			shared.grow(ctx, tenant+"/"+child, child+"/"+below[0], child+"/"+below[1])
			Expect(shared.kubectl(ctx, "delete", "subnamespace", child, "-n", tenant)).
				To(refuse("has sub-namespaces (" + strings.Join(below, ", ") + ")"))
			allowIt(ctx, tenant, child)
			Eventually(shared.kubectl).WithArguments(ctx, "delete", "subnamespace", child, "-n", tenant, "--wait=false").Should(allow())
			for _, name := range append(below, child) {
				shared.Gone(ctx, build.Namespace(name))
			}
		},
		Entry("by its own HierarchyConfiguration", "d4a", func(ctx context.Context, _, child string) {
			Expect(shared.wish(ctx, build.Hierarchy(child, build.Cascades))).To(allow())
		}),
		Entry("by its parent's", "d4b", func(ctx context.Context, tenant, _ string) {
			Expect(shared.wish(ctx, build.Hierarchy(tenant, build.Cascades))).To(allow())
		}),
		Entry("by its tenant", "d4c", func(ctx context.Context, tenant, _ string) {
			lns := shared.lns(ctx, tenant)
			before := lns.DeepCopy()
			lns.Spec.AllowCascadingDeletion = true
			Expect(shared.Admin().Patch(ctx, lns, client.MergeFrom(before))).To(Succeed())
		}))

	It("SUB-N1 below root app-team1, name app-team1-a is allowed; "+
		"app-team2-a and x-app-team1-a are refused: must match ^app-team1-.*", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("app-team1"))
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("app-team1", "app-team1-a")).Should(allow())
		Expect(shared.create(ctx, build.SubNamespace("app-team1", "app-team2-a"))).To(refuse(`"app-team2-a"`, "must match ^app-team1-.*"))
		Expect(shared.create(ctx, build.SubNamespace("app-team1", "x-app-team1-a"))).To(refuse(`"x-app-team1-a"`, "must match ^app-team1-.*"))
	})

	It("SUB-N2 the naming policy of the root's name decides at every depth", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("app-n2"))
		shared.grow(ctx, "app-n2/app-n2-a")
		Expect(shared.create(ctx, build.SubNamespace("app-n2-a", "app-n2-b"))).To(allow())
		Expect(shared.create(ctx, build.SubNamespace("app-n2-a", "zzz"))).To(refuse("must match ^app-n2-.*"))
	})

	It("SUB-N3 if names must match -x$, foo is refused and foo-x "+
		"allowed; below a root that has no policy, every name is allowed", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("two-i"), build.Root("n3-other"))
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("two-i", "n3-foo")).Should(refuse("must match -x$"))
		Expect(shared.create(ctx, build.SubNamespace("two-i", "n3-foo-x"))).To(allow())
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("n3-other", "n3-anything")).Should(allow())
	})

	It("SUB-L1 with limit depth 2, a SubNamespace whose Namespace would have depth 2 is allowed; depth 3 exceeds the limit of 2, and is "+
		"refused", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("l1-t").Limits(-1, 2))
		shared.grow(ctx, "l1-t/l1-u")
		Expect(shared.create(ctx, build.SubNamespace("l1-u", "l1-v"))).To(allow())
		Eventually(shared.ns("l1-v")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("l1-t"), "2"))
		Expect(shared.create(ctx, build.SubNamespace("l1-v", "l1-w"))).To(refuse("depth 3 exceeds the limit of 2"))
	})

	It("SUB-L2 with limit 3, a fourth SubNamespace is refused: allows 3 sub-namespaces (3 in use, 1 terminating); with limit 0, the first "+
		"one", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("l2-t").Limits(3, -1))
		shared.tenant(ctx, build.Tenant("l2-none").Limits(0, -1))
		shared.grow(ctx, "l2-t/l2-u", "l2-t/l2-v", "l2-t/l2-w")
		content := build.Held(build.ConfigMap("l2-w", "hangs", "x"))
		shared.Create(ctx, content)
		DeferCleanup(func(ctx SpecContext) { shared.LetGo(ctx, content) })
		Expect(shared.kubectl(ctx, "delete", "subnamespace", "l2-w", "-n", "l2-t")).To(allow())
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("l2-t", "l2-x"), "--dry-run=server").
			Should(refuse("allows 3 sub-namespaces (3 in use, 1 terminating)"))
		Expect(shared.create(ctx, build.SubNamespace("l2-none", "l2-y"))).To(refuse("allows 0 sub-namespaces"))
	})

	It("HIER-O7 with webhooks, SubNamespace mallory/p is refused to mallory while x waits for a parent p; a cluster admin may "+
		"create it", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("o7-mallory"), build.Child("o7-x", "o7-p"))
		shared.Create(ctx, build.RoleBinding("o7-mallory", "mallory", "admin", build.RBACUser("mallory")))
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("o7-mallory", "o7-p"), "--as=mallory").
			Should(refuse(`namespaces that you may not see wait for a parent named "o7-p"`))
		Expect(shared.create(ctx, build.SubNamespace("o7-mallory", "o7-p"))).To(allow())
	})

	It("HIER-O11 with webhooks, while x waits for a parent p, mallory cannot change SubNamespace mallory/p, whose name was "+
		"taken; a cluster admin can", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("o11-mallory"), build.Namespace("o11-p"))
		shared.Create(ctx, build.RoleBinding("o11-mallory", "mallory", "admin", build.RBACUser("mallory")))
		Eventually(shared.create).WithArguments(ctx, build.SubNamespace("o11-mallory", "o11-p"), "--as=mallory").Should(HaveField("Code", 0),
			"a warning tells that the name is taken")
		shared.Create(ctx, build.Child("o11-x", "o11-p"))
		Expect(shared.Admin().Delete(ctx, build.Namespace("o11-p"))).To(Succeed())
		Eventually(func() error { _, err := shared.ns("o11-p")(ctx); return err }).WithContext(ctx).
			Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
		change := func(as ...string) answer {
			return shared.kubectl(ctx, append([]string{"patch", "subnamespace", "o11-p", "-n", "o11-mallory", "--type=merge",
				`--patch={"spec":{"annotations":{}}}`, "--dry-run=server"}, as...)...)
		}
		Eventually(change).WithArguments("--as=mallory").Should(refuse(`wait for a parent named "o11-p"`))
		Expect(change()).To(allow())
	})
})
