package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("a Namespace", func() {
	It("SUB-T4 a parent or template that closes a longer cycle is refused, "+
		"such as would make a cycle: b -> c -> b; nothing changes", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t4-a"), build.Child("t4-b", "t4-a"), build.Child("t4-c", "t4-b"), build.Template("t4-t1"),
			build.Template("t4-t2", v1alpha1.LabelTemplate, "t4-t1"), build.Template("t4-t3", v1alpha1.LabelTemplate, "t4-t2"))
		Eventually(shared.ns("t4-c")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("t4-a"), "2"))
		Expect(shared.label(ctx, "t4-b", "parent=t4-c")).To(refuse("would make a cycle: t4-b -> t4-c -> t4-b"))
		Eventually(shared.label).WithArguments(ctx, "t4-t1", "template=t4-t3").
			Should(refuse("would make a cycle: t4-t1 -> t4-t3 -> t4-t2 -> t4-t1"))
		Expect(shared.now(ctx, "t4-b")).To(carry(v1alpha1.LabelParent, "t4-a"))
		Expect(shared.now(ctx, "t4-t1")).To(lack(v1alpha1.LabelTemplate))
	})

	It("SUB-T5 with webhooks, a Namespace below a template or terminating root is refused; below a plain one it has a Warning, and joins "+
		"the tree when that becomes a root", func(ctx SpecContext) {
		going, content := build.Root("t5-going"), build.Held(build.ConfigMap("t5-going", "hangs", "x"))
		shared.Create(ctx, build.Template("t5-template"), going, content, build.Namespace("t5-plain"))
		Expect(shared.Admin().Delete(ctx, going)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { shared.LetGo(ctx, content) })
		Expect(shared.create(ctx, build.Child("t5-a", "t5-template"))).To(refuse("t5-template is a template"))
		Eventually(shared.create).WithArguments(ctx, build.Child("t5-b", "t5-going"), "--dry-run=server").
			Should(refuse("t5-going is being terminated"))
		Expect(shared.create(ctx, build.Child("t5-c", "t5-plain"))).To(warn("t5-plain is not a root or a sub-namespace yet"))
		Consistently(shared.ns("t5-c")).WithContext(ctx).WithTimeout(quiet).Should(lack(v1alpha1.TreeLabel("t5-c")))
		Expect(shared.label(ctx, "t5-plain", "type=root")).To(allow())
		Eventually(shared.ns("t5-c")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("t5-plain"), "1"))
	})

	It("SUB-T8 label template on a root is refused for default, which is not a template namespace; a missing one has a Warning, and the "+
		"root inherits from it once it exists", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t8-a"))
		Expect(shared.label(ctx, "t8-a", "template=default")).To(refuse("default is not a template namespace"))
		Expect(shared.label(ctx, "t8-a", "template=t8-missing")).To(warn("template namespace t8-missing does not exist"))
		shared.Create(ctx, build.Template("t8-missing", "team", "t"))
		Eventually(shared.ns("t8-a")).WithContext(ctx).Should(carry("team", "t"))
	})

	It("SUB-T9 a root with a child cannot lose its type or "+
		"become a template: has 1 child (pay-web); a root without children can", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t9-root"), build.Child("t9-pay-web", "t9-root"), build.Root("t9-alone"), build.Root("t9-lonely"))
		Eventually(shared.ns("t9-pay-web")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("t9-root"), "1"))
		Expect(shared.label(ctx, "t9-root", "type-")).To(refuse("has 1 child (t9-pay-web)"))
		Expect(shared.label(ctx, "t9-root", "type=template")).To(refuse("has 1 child (t9-pay-web)"))
		Expect(shared.label(ctx, "t9-alone", "type-")).To(allow())
		Expect(shared.label(ctx, "t9-lonely", "type=template")).To(allow())
	})

	It("SUB-T16 kubectl replace without Warren's keys is refused for a tenant's root and a bound namespace (would lose this namespace); for "+
		"a placed leaf, a Warning has kubectl warren set; SUB-T16 if a cluster admin removes parent and bound, a Warning has kubectl warren "+
		"graft, and so has the SubNamespace, which is NameTaken", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("t16"))
		shared.Create(ctx, build.SubNamespace("t16", "t16-bound"), build.Child("t16-placed", "t16"))
		for _, name := range []string{"t16-bound", "t16-placed"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("t16"), "1"))
		}
		replace := func(name string) answer {
			manifest := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + name + `","labels":{"theirs":"1"}}}`
			out, problem, code := shared.KubectlWith(ctx, controlplane.Admin, manifest, "replace", "-f", "-")
			return answer{out, problem, code}
		}
		Expect(replace("t16-bound")).To(refuse("SubNamespace t16/t16-bound would lose this namespace", "kubectl warren cut t16-bound"))
		Expect(replace("t16-placed")).To(warn("namespace t16-placed leaves its tree", "kubectl warren set t16-placed --parent t16"))
		Expect(shared.label(ctx, "t16-bound", "parent-", "bound-")).To(warn("kubectl warren graft t16-bound t16"))
		Eventually(shared.ns("t16-bound")).WithContext(ctx).Should(lack(v1alpha1.TreeLabel("t16")))
		Eventually(shared.sub("t16", "t16-bound")).WithContext(ctx).Should(SatisfyAll(ready(metav1.ConditionFalse, v1alpha1.ReasonNameTaken),
			HaveField("Status.Conditions", ContainElement(HaveField("Message", ContainSubstring("kubectl warren graft t16-bound t16"))))))
		Expect(replace("t16")).To(refuse("LNamespace t16 would lose this namespace"))
	})

	It("SUB-T10 a template cannot lose its type while a root "+
		"references it: is referenced by: r1; without that reference it can", func(ctx SpecContext) {
		shared.Create(ctx, build.Template("t10-base"), build.Root("t10-r1", v1alpha1.LabelTemplate, "t10-base"))
		Eventually(shared.label).WithArguments(ctx, "t10-base", "type-").Should(refuse("is referenced by: t10-r1"))
		Expect(shared.label(ctx, "t10-r1", "template-")).To(allow())
		Eventually(shared.label).WithArguments(ctx, "t10-base", "type-").Should(allow())
	})

	It("SUB-T11 b, which has child c, cannot lose its parent (has 1 child (c)); "+
		"with type root in the same patch it can, and c stays below b", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("t11-a"), build.Child("t11-b", "t11-a"), build.Child("t11-c", "t11-b"))
		Eventually(shared.ns("t11-c")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("t11-a"), "2"))
		Expect(shared.label(ctx, "t11-b", "parent-")).To(refuse("has 1 child (t11-c)"))
		Expect(shared.label(ctx, "t11-b", "parent-", "type=root")).To(allow())
		Eventually(shared.ns("t11-c")).WithContext(ctx).Should(And(carry(v1alpha1.LabelParent, "t11-b"), lack(v1alpha1.TreeLabel("t11-a"))))
	})

	It("SUB-L5 a subtree's move to a tenant without room is refused to all users: tenant t allows 2 sub-namespaces (0 in use), or depth 3 "+
		"exceeds the limit of 2", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("l5-a"), build.Child("l5-b", "l5-a"), build.Child("l5-c", "l5-b"), build.Child("l5-d", "l5-c"))
		shared.tenant(ctx, build.Tenant("l5-small").Limits(2, -1))
		shared.tenant(ctx, build.Tenant("l5-flat").Limits(-1, 2))
		Eventually(shared.ns("l5-d")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("l5-a"), "3"))
		Expect(shared.label(ctx, "l5-b", "parent=l5-small")).To(refuse("tenant l5-small allows 2 sub-namespaces (0 in use)"))
		Expect(shared.label(ctx, "l5-b", "parent=l5-flat")).To(refuse("tenant l5-flat: depth 3 exceeds the limit of 2"))
	})

	// SUB-T6 and SUB-T7 in part: the tests of the reconcilers have the whole rows, with the ten seconds in which nothing happens.
	It("SUB-T6 SUB-T7 with webhooks, a parent that does not exist has a Warning, when the Namespace is created and when it is changed: "+
		"parent namespace r does not exist", func(ctx SpecContext) {
		Expect(shared.create(ctx, build.Child("t6-c", "t6-r"))).To(warn("parent namespace t6-r does not exist"))
		shared.Create(ctx, build.Root("t7-a", "team", "neco"), build.Child("t7-c", "t7-a"))
		Eventually(shared.ns("t7-c")).WithContext(ctx).Should(carry("team", "neco"))
		Expect(shared.label(ctx, "t7-c", "parent=t7-nowhere")).To(warn("parent namespace t7-nowhere does not exist"))
	})

	It("SUB-D10 the deletion of a bound Namespace is "+
		"refused: delete the SubNamespace pay-web in namespace payments instead", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("d10-payments"))
		shared.grow(ctx, "d10-payments/d10-pay-web")
		Expect(shared.kubectl(ctx, "delete", "namespace", "d10-pay-web")).
			To(refuse("delete the SubNamespace d10-pay-web in namespace d10-payments instead"))
		Expect(shared.now(ctx, "d10-pay-web")).To(active())
		Expect(shared.kubectl(ctx, "delete", "subnamespace", "d10-pay-web", "-n", "d10-payments")).To(allow())
		shared.Gone(ctx, build.Namespace("d10-pay-web"))
	})
})
