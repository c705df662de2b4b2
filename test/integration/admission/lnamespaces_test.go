package admission_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// billed is an LNamespace with that cost centre, if it is not empty.
func billed(name, costCenter string) *v1alpha1.LNamespace {
	lns := build.Tenant(name).Managers("mia").Object()
	if costCenter != "" {
		lns.Spec.Billing = &v1alpha1.Billing{CostCenter: costCenter}
	}
	return lns
}

var _ = Describe("an LNamespace", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		// These users may make LNamespaces, as all may with component open-access. carol may not.
		var makers []rbacv1.Subject
		for _, user := range []string{"alice", "mia", "dave", "eve", "mallory", "system:serviceaccount:ci:deployer", "system:admin"} {
			makers = append(makers, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user})
		}
		shared.Create(ctx, build.ClusterRole("lnamespace-maker", build.Rule(v1alpha1.Domain, "lnamespaces", "create", "get", "list")),
			build.ClusterRoleBinding("lnamespace-maker", "lnamespace-maker", makers...))
		Eventually(shared.kubectl).WithArguments(ctx, "auth", "can-i", "create", "lnamespaces", "--as=alice").Should(HaveField("Code", 0))
	})

	// by makes an LNamespace as a user with these groups.
	by := func(ctx SpecContext, lns *v1alpha1.LNamespace, user string, groups ...string) answer {
		args := []string{"--as=" + user, "--as-group=system:authenticated"}
		for _, group := range groups {
			args = append(args, "--as-group="+group)
		}
		return shared.create(ctx, lns, args...)
	}

	It("ACC-W01 alice's LNamespace without managers and sudoers gets her as both, and no users; the patch is exactly that of 2.3, also "+
		"without spec", func(ctx SpecContext) {
		Expect(by(ctx, build.Tenant("w01").Object(), "alice")).To(allow())
		lns := shared.lns(ctx, "w01")
		Expect(lns.Spec.Managers).To(Equal(build.Users("alice")))
		Expect(lns.Spec.Sudoers).To(Equal(build.Users("alice")))
		Expect(lns.Spec.Users).To(BeEmpty())
		// This configuration fills in missing billing. If the object has billing, the patch has only the two lists and the creator.
		const people = `{"op":"add","path":"/spec/managers","value":[{"kind":"User","name":"alice"}]},{"op":"add","path":"/spec/sudoers",` +
			`"value":[{"kind":"User","name":"alice"}]}`
		const paid = `"billing":{"costCenter":"9"}`
		const maker = `,{"op":"add","path":"/metadata/annotations","value":{}},{"op":"add",` +
			`"path":"/metadata/annotations/tenancy.warren.dev~1creator","value":"alice"}]`
		Expect(shared.patches(ctx, "alice", `{"spec":{`+paid+`}}`)).To(Equal(`[` + people + maker))
		const bill = `,{"op":"add","path":"/spec/billing","value":{"costCenter":"9"}}` + maker
		Expect(shared.patches(ctx, "alice", `{"spec":{}}`)).To(Equal(`[` + people + bill))
		Expect(shared.patches(ctx, "alice", `{}`)).To(Equal(`[{"op":"add","path":"/spec","value":{}},` + people + bill))
	})

	It("ACC-V11 by kubectl, a wrong name, a subject without kind, or a Group payments-sudoers is refused with field, value and next "+
		"step; users that are no list, in the schema's words", func(ctx SpecContext) {
		const head = "apiVersion: tenancy.warren.dev/v1alpha1\nkind: LNamespace\nmetadata: {name: "
		for manifest, want := range map[string]string{
			head + "v11}\nspec: {users: [alice], sudoers: [{kind: User, name: bob}, carol]}": `The LNamespace "v11" is invalid: ` + "\n" +
				`* spec.users[0]: Invalid value: "alice": name its kind too, as in {kind: User, name: alice}` + "\n" +
				`* spec.sudoers[1]: Invalid value: "carol": name its kind too, as in {kind: User, name: carol}`,
			head + "MyTenant}": `The LNamespace "MyTenant" is invalid: metadata.name: Invalid value: "MyTenant": ` +
				`an LNamespace name is a DNS label of at most 63 characters: use lowercase letters, digits and -, with a letter or digit at both ends`,
			head +
				"kube-x}": `The LNamespace "kube-x" is invalid: metadata.name: Invalid value: "kube-x": default and kube-* are reserved names: ` +
				`choose another`,
			head +
				"v11}\nspec: {users: [{kind: Group, name: payments-sudoers}]}": `The LNamespace "v11" is invalid: spec.users[0]: Invalid value: ` +
				`group names that end in -sudoers are reserved for sudo: list the group's members, or a group of another name`,
			head + "v11}\nspec: {users: alice}": `The LNamespace "v11" is invalid: ` + "\n" +
				`* spec.users: Invalid value: "string": spec.users in body must be of type array: "string"` + "\n" +
				`* <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to ` +
				`complete validation`,
		} {
			_, refusal, code := shared.KubectlWith(ctx, controlplane.Admin, manifest, "create", "-f", "-")
			refusal = strings.ReplaceAll(refusal, `Invalid value: "object": `, "Invalid value: ") // Kubernetes 1.34 has the type, too
			Expect([]any{code, refusal}).To(Equal([]any{1, want + "\n"}), manifest)
		}
	})

	It("ACC-W02 alice creates an LNamespace with managers alone; she becomes its sudoer, and the managers stay", func(ctx SpecContext) {
		Expect(by(ctx, build.Tenant("w02").Managers("mia").Object(), "alice")).To(allow())
		lns := shared.lns(ctx, "w02")
		Expect(lns.Spec.Managers).To(Equal(build.Users("mia")))
		Expect(lns.Spec.Sudoers).To(Equal(build.Users("alice")))
		Expect(lns.Spec.Users).To(BeEmpty())
	})

	It("ACC-W03 if no list is given, a ServiceAccount, or the User that an admin impersonates, becomes manager and sudoer; system:admin "+
		"is in no list, and reads a Warning", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("ci"))
		Expect(by(ctx, build.Tenant("w03-ci").Object(), "system:serviceaccount:ci:deployer")).To(allow())
		Expect(by(ctx, build.Tenant("w03-alice").Object(), "alice")).To(allow())
		Expect(by(ctx, build.Tenant("w03-nobody").Object(), "system:admin")).
			To(warn("kubernetes user system:admin can't be listed; name managers and sudoers"))
		deployer := []v1alpha1.Subject{build.ServiceAccount("ci", "deployer")}
		for name, want := range map[string][]v1alpha1.Subject{"w03-ci": deployer, "w03-alice": build.Users("alice"), "w03-nobody": nil} {
			lns := shared.lns(ctx, name)
			Expect(lns.Spec.Managers).To(Equal(want))
			Expect(lns.Spec.Sudoers).To(Equal(want))
			Expect(lns.Spec.Users).To(BeEmpty())
		}
	})

	It("ACC-W05 a manager empties the sudoers, and sudo is denied; with the managers emptied too, the answer has the Warning that only "+
		"cluster admins can edit it", func(ctx SpecContext) {
		Expect(by(ctx, build.Tenant("w05").Managers("mia").Sudoers("bob").Object(), "mia")).To(allow())
		edit := func(fields string) answer {
			return shared.kubectl(ctx, "patch", "lnamespace", "w05", "--as=mia", "--type=merge", "-p", `{"spec":`+fields+`}`)
		}
		sudo := func() int {
			_, _, code := shared.Kubectl(ctx, "bob", "get", "pods", "-n", "w05", "--as=bob", "--as-group=w05-sudoers")
			return code
		}
		Eventually(sudo).WithContext(ctx).Should(BeZero())
		Eventually(edit).WithArguments(`{"sudoers":[]}`).Should(allow())
		Eventually(sudo).WithContext(ctx).ShouldNot(BeZero())
		Expect(edit(`{"managers":[]}`)).To(warn("only cluster admins"))
		Expect(shared.lns(ctx, "w05").Spec).To(And(HaveField("Managers", BeEmpty()), HaveField("Sudoers", BeEmpty())))
	})

	It("ACC-W06 the first default that matches the requester applies; another that matches may be stated, any other is refused with the "+
		"list; cluster admins may state any", func(ctx SpecContext) {
		Expect(by(ctx, billed("w06-a", ""), "alice", "g2", "g1")).To(allow())
		Expect(by(ctx, billed("w06-b", "2"), "alice", "g2", "g1")).To(allow())
		Expect(by(ctx, billed("w06-c", "7"), "alice", "g2", "g1")).To(refuse("spec.billing.costCenter", `"1"`, `"2"`, `"9"`))
		Expect(by(ctx, billed("w06-d", ""), "dave")).To(allow())
		Expect(shared.create(ctx, billed("w06-e", "7"))).To(allow())
		for name, want := range map[string]string{"w06-a": "1", "w06-b": "2", "w06-d": "9", "w06-e": "7"} {
			Expect(shared.lns(ctx, name).Spec.Billing).To(HaveField("CostCenter", want))
		}
	})

	// ACC-V03 and ACC-N02. The tests of the reconcilers have the same cases without webhooks.
	It("ACC-N02 with webhooks, names that are reserved or of an existing Namespace, even one labelled type=root, are refused; the answer "+
		"has the command that lets alice adopt it", func(ctx SpecContext) {
		Expect(by(ctx, build.Tenant("istio-system").Object(), "alice")).To(refuse("istio-system is a reserved name"))
		Expect(by(ctx, build.Tenant("warren-system").Object(), "alice")).To(refuse("warren-system is a reserved name"))
		shared.Create(ctx, build.Namespace("n02-legacy"), build.Root("n02-root"))
		mark := "exists; a cluster admin can name who may adopt it: kubectl annotate namespace "
		for _, name := range []string{"n02-legacy", "n02-root"} {
			Expect(by(ctx, build.Tenant(name).Object(), "alice")).
				To(refuse("namespace " + name + " " + mark + name + " tenancy.warren.dev/adopt=alice"))
		}
	})

	It("ACC-N13 eve is refused what is marked for alice, also with creator alice; only who may see the Namespace reads that the mark "+
		"true names no user; alice adopts hers", func(ctx SpecContext) {
		shared.Create(ctx, build.Annotated(build.Namespace("n12-legacy"), v1alpha1.AnnotationAdopt, "alice"),
			build.Secret("n12-legacy", "theirs", "v"),
			build.Annotated(build.Namespace("n12-old"), v1alpha1.AnnotationAdopt, "true"))
		Expect(by(ctx, build.Tenant("n12-legacy").Object(), "eve")).To(refuse("a cluster admin can name who may adopt it"))
		Expect(by(ctx, build.Annotated(build.Tenant("n12-legacy").Object(), v1alpha1.AnnotationCreator, "alice"), "eve")).
			To(refuse("a cluster admin can name who may adopt it"))
		By("telling of the mark only to who may see the namespace")
		Expect(by(ctx, build.Tenant("n12-old").Object(), "eve")).To(refuse("a cluster admin can name who may adopt it"))
		shared.Create(ctx, build.RoleBinding("n12-old", "viewer", "view", build.RBACUser("alice")))
		Eventually(by).WithArguments(ctx, build.Tenant("n12-old").Object(), "alice").Should(refuse("adopt=true names no user",
			"adopt=alice --overwrite"))
		Expect(by(ctx, build.Tenant("n12-legacy").Object(), "alice")).To(allow())
		Eventually(shared.ns("n12-legacy")).WithContext(ctx).Should(carry(v1alpha1.TreeLabel("n12-legacy"), "0"))
		Expect(shared.lns(ctx, "n12-legacy").Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationCreator, "alice"))
	})

	It("ACC-X02 with webhooks, an LNamespace whose old Namespace terminates is refused; a cluster admin reads that it is being "+
		"terminated, eve the answer for taken names", func(ctx SpecContext) {
		namespace, content := build.Namespace("x02-payments"), build.Held(build.ConfigMap("x02-payments", "hangs", "x"))
		shared.Create(ctx, namespace, content)
		Expect(shared.Admin().Delete(ctx, namespace)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { shared.LetGo(ctx, content) })
		Eventually(shared.create).WithArguments(ctx, build.Tenant("x02-payments").Managers("mia").Object(), "--dry-run=server").
			Should(refuse("x02-payments is being terminated"), "as soon as the operator knows it")
		Expect(by(ctx, build.Tenant("x02-payments").Object(), "eve")).To(refuse("a cluster admin can name who may adopt it"))
	})

	It("ACC-D01 with webhooks, the deletion of an LNamespace with sub-namespaces is refused, and the answer names them and what to "+
		"do", func(ctx SpecContext) {
		shared.tenant(ctx, build.Tenant("d01"))
		shared.grow(ctx, "d01/d01-pay-web")
		Expect(shared.kubectl(ctx, "delete", "lnamespace", "d01")).
			To(refuse("d01 has sub-namespaces (d01-pay-web): delete them first or set allowCascadingDeletion"))
		Expect(shared.lns(ctx, "d01")).To(active())
	})

	It("ACC-S12 with webhooks, a ServiceAccount of the root or of a sub-namespace is refused as sudoer", func(ctx SpecContext) {
		robot := func(namespace string) *v1alpha1.LNamespace {
			lns := build.Tenant("s12").Managers("mia").Object()
			lns.Spec.Sudoers = []v1alpha1.Subject{build.ServiceAccount(namespace, "robot")}
			return lns
		}
		Expect(shared.create(ctx, robot("s12"))).To(refuse("spec.sudoers[0]", "ServiceAccount s12/robot lives in the tree of s12"))
		shared.tenant(ctx, build.Tenant("s12").Managers("mia"))
		shared.grow(ctx, "s12/s12-web")
		Expect(shared.send(ctx, "apply", robot("s12-web"), "--server-side", "--force-conflicts")).
			To(refuse("ServiceAccount s12-web/robot lives in the tree of s12"))
	})

	It("HIER-O8 with webhooks, LNamespace p is refused to mallory while x waits for a parent p; a cluster admin may create it, "+
		"and x heals", func(ctx SpecContext) {
		p := build.Root("o8-p")
		shared.Create(ctx, p, build.Child("o8-x", "o8-p"), build.Source(build.Secret("o8-p", "s", "x"), v1alpha1.ModeUpdate))
		Eventually(func(ctx SpecContext) error {
			secret := &corev1.Secret{}
			return shared.Admin().Get(ctx, client.ObjectKey{Namespace: "o8-x", Name: "s"}, secret)
		}).WithContext(ctx).Should(Succeed())
		Expect(shared.kubectl(ctx, "delete", "namespace", "o8-p")).To(warn("o8-p has children that are not bound", "o8-x"))
		Eventually(by).WithArguments(ctx, build.Tenant("o8-p").Object(), "mallory").
			Should(refuse(`namespaces that you may not see wait for a parent named "o8-p"`))
		Expect(shared.create(ctx, build.Tenant("o8-p").Managers("mia").Object())).To(allow())
		// The tree is repaired, and the operator deletes the copy, whose source is gone.
		shared.Gone(ctx, build.Secret("o8-x", "s", ""))
		Expect(shared.now(ctx, "o8-x")).To(carry(v1alpha1.TreeLabel("o8-p"), "1"))
	})
})
