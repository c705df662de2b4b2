package trees_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/describe"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("kubectl warren describes a namespace", func() {
	It("SUB-X14 kubectl warren describe prints Event InvalidSource of a source in the namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Tenant("x14-pay").Users("alice").Object())
		Eventually(shared.ns("x14-pay")).WithContext(ctx).Should(standing("x14-pay", "0"))
		shared.Create(ctx, build.Annotated(build.Secret("x14-pay", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate),
			v1alpha1.AnnotationSelect, "a=b=c"))
		shared.Exists(ctx, build.RoleBinding("x14-pay", "warren:users", ""))
		Eventually(func(g Gomega) {
			out, problems, code := shared.warren(ctx, "alice", "describe", "x14-pay")
			g.Expect(code).To(BeZero(), problems)
			g.Expect(out).To(MatchRegexp(`Warning +InvalidSource +secret/key `))
		}).WithContext(ctx).Should(Succeed())
	})

	It("SUB-X23 describe -o name prints the name of a namespace that exists", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("x23-plain"))
		Expect(shared.done(ctx, controlplane.Admin, "describe", "x23-plain", "-o", "name")).To(Equal("namespace/x23-plain\n"))
	})

	It("SUB-X5 kubectl warren describe shows a user of the tenant all "+
		"fields of 2.10, and sends no request to the operator's namespace", func(ctx SpecContext) {
		shared.Create(ctx, build.Tenant("x5-pay").Users("erin").Limits(5, 3).Object())
		Eventually(shared.ns("x5-pay")).WithContext(ctx).Should(standing("x5-pay", "0"))
		shared.label(ctx, "x5-pay", "team=neco")
		shared.Create(ctx, build.Secret("x5-pay", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate),
			build.SubNamespace("x5-pay", "x5-web", "app", "web"))
		Eventually(shared.sub("x5-pay/x5-web")).WithContext(ctx).Should(beReady())
		shared.grow(ctx, "x5-web/x5-deep")
		shared.Create(ctx, build.Secret("x5-web", "own", "x", v1alpha1.LabelPropagate, v1alpha1.ModeCreate))
		shared.wish(ctx, "x5-web", build.Cascades)
		Eventually(shared.ns("x5-web")).WithContext(ctx).Should(And(carry("team", "neco"), noted(v1alpha1.AnnotationCascading, "true")))
		Eventually(shared.hier("x5-web")).WithContext(ctx).Should(settled())
		shared.Exists(ctx, build.Secret("x5-web", "key", ""))

		shared.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "x5-pay", Name: "x5-web.recreated"},
			InvolvedObject: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "SubNamespace",
				Namespace: "x5-pay", Name: "x5-web"},
			Type: corev1.EventTypeWarning, Reason: string(v1alpha1.ReasonNamespaceRecreated), Message: "as the operator would say it",
			LastTimestamp: metav1.Now(),
		})

		since := shared.Mark(ctx) // erin is in no other case; other users read in the operator's namespace at the same time
		read := func(user string) (d describe.Namespace) {
			GinkgoHelper()
			Expect(json.Unmarshal([]byte(shared.done(ctx, user, "describe", "x5-web", "-o", "json")), &d)).To(Succeed())
			return d
		}
		Eventually(func() []describe.Resource { return read("erin").Resources }).WithContext(ctx).Should(ContainElement(describe.Resource{
			Kind: "RoleBinding.rbac.authorization.k8s.io", Name: "warren:users", From: "x5-pay", Mode: v1alpha1.ModeUpdate}))
		one := 1
		Eventually(func() describe.Namespace { return read("erin") }).WithContext(ctx).Should(And(
			HaveField("Type", tree.TypeSubNamespace), HaveField("Root", "x5-pay"), HaveField("Parent", "x5-pay"), HaveField("Template", ""),
			HaveField("Bound", true),
			HaveField("Depth", &one), HaveField("Phase", "Active"), HaveField("Children", ConsistOf("x5-deep")), HaveField("Instances", BeEmpty()),
			HaveField("Cascading", describe.Cascading{Allowed: true, By: "x5-web"}), HaveField("Limits", BeNil()),
			HaveField("Inherited", ConsistOf(
				describe.Inherited{Kind: "label", Key: "team", Value: "neco", From: "x5-pay"},
				describe.Inherited{Kind: "label", Key: "app", Value: "web", From: "SubNamespace x5-pay/x5-web"})),
			HaveField("Resources", ContainElements(
				describe.Resource{Kind: "Secret", Name: "key", From: "x5-pay", Mode: v1alpha1.ModeUpdate},
				describe.Resource{Kind: "Secret", Name: "own", Mode: v1alpha1.ModeCreate})),
			HaveField("Conditions", ContainElement(HaveField("Type", "Ready"))),
			HaveField("Events", ContainElement(And(HaveField("Reason", "NamespaceRecreated"), HaveField("Object", "subnamespace/x5-web"))))))
		requests, err := shared.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range requests {
			if r.User == "erin" {
				Expect(r.Namespace).NotTo(Equal("warren-system"), r.String())
			}
		}

		By("to the cluster admin, who sees the tenant too")
		five, three := int32(5), int32(3)
		Eventually(func(g Gomega) {
			all, seen := read(controlplane.Admin), read("erin")
			g.Expect(all.Limits).To(Equal(&describe.Limits{SubNamespaces: describe.Usage{Used: 2, Limit: &five},
				Depth: describe.Usage{Used: 1, Limit: &three}}))
			all.Limits, all.Resources, all.Unlisted = nil, seen.Resources, seen.Unlisted // a cluster admin may list more kinds
			g.Expect(all).To(Equal(seen))
		}).WithContext(ctx).Should(Succeed())

		By("as text, and what may not be listed is told once")
		out, said, code := shared.warren(ctx, "erin", "describe", "x5-web")
		Expect(code).To(BeZero())
		for _, line := range []string{`Name: +x5-web`, `Type: +sub-namespace`, `Root: +x5-pay`, `Parent: +x5-pay`, `Template: +<none>`,
			`Bound: +true`, `Depth: +1`,
			`Children: +x5-deep`, `Instances: +<none>`, `Cascading deletion: +allowed by x5-web`, `Limits: +<unknown>`,
			`  label +team +neco +x5-pay`,
			`  Secret +key +x5-pay +update`, `  Secret +own +\(source\) +create`, `  Ready +True +Settled .*`,
			`  \S+ +Warning +NamespaceRecreated +subnamespace/x5-web .*`} {
			Expect(out).To(MatchRegexp(`(?m)^` + line + `$`))
		}
		Expect(said).To(BeEmpty(), "she may list the kinds that are propagated")
		Expect(out).To(MatchRegexp(`(?m)^Not shown: .*PodTemplate.*: you may not list these kinds$`))
		Expect(shared.fails(ctx, "erin", "describe", "kube-system")).
			To(Equal(`namespace "kube-system" does not exist, or you may not read it; ask a manager of the tenant for access`))
		Expect(shared.fails(ctx, controlplane.Admin, "describe", "x5-nosuch")).To(Equal(`there is no namespace "x5-nosuch"`))
	})

	It("that is a template, and one that is nothing", func(ctx SpecContext) {
		shared.Create(ctx, build.Template("xd-base"), build.Root("xd-org", v1alpha1.LabelTemplate, "xd-base"), build.Namespace("xd-plain"))
		read := func(name string) (d describe.Namespace) {
			GinkgoHelper()
			Expect(json.Unmarshal([]byte(shared.done(ctx, controlplane.Admin, "describe", name, "-o", "json")), &d)).To(Succeed())
			return d
		}
		Expect(read("xd-base")).To(And(HaveField("Type", tree.TypeTemplate), HaveField("Instances", ConsistOf("xd-org")), HaveField("Root", ""),
			HaveField("Depth", BeNil())))
		Expect(read("xd-org")).To(And(HaveField("Type", tree.TypeRoot), HaveField("Template", "xd-base"), HaveField("Root", "xd-org"),
			HaveField("Limits", Not(BeNil()))))
		Expect(read("xd-plain")).To(And(HaveField("Type", tree.TypeNone), HaveField("Limits", BeNil())))
	})
})

var _ = Describe("kubectl warren sets the type and the template of a namespace", func() {
	It("SUB-X6 set-type x root labels, then prints unchanged, with status 0; type foo, --root with --parent, and -a with -f are errors with "+
		"status 1, without a request", func(ctx SpecContext) {
		shared.Create(ctx, build.Namespace("x6-x"))
		set := func(kind string, flags ...string) string {
			GinkgoHelper()
			return shared.done(ctx, controlplane.Admin, append([]string{"set-type", "x6-x", kind}, flags...)...)
		}
		Expect(set("root", "--dry-run=client")).To(Equal("namespace/x6-x labelled (dry run)\n"))
		Expect(set("root", "--dry-run=server")).To(Equal("namespace/x6-x labelled (server dry run)\n"))
		Expect(set("none")).To(Equal("namespace/x6-x unchanged\n"))
		Expect(set("root")).To(Equal("namespace/x6-x labelled\n"))
		Expect(set("root")).To(Equal("namespace/x6-x unchanged\n"))
		Eventually(shared.ns("x6-x")).WithContext(ctx).Should(standing("x6-x", "0"))
		Expect(set("none")).To(Equal("namespace/x6-x labelled\n"))
		Eventually(shared.ns("x6-x")).WithContext(ctx).Should(And(lack(v1alpha1.LabelType), lack(v1alpha1.TreeLabel("x6-x"))))

		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		DeferCleanup(server.Close)
		for why, args := range map[string][]string{
			`invalid type "foo": must be root, template or none`: {"set-type", "x6-x", "foo"},
			"contradict each other: a root has no parent":        {"set", "x6-x", "--root", "--parent", "x6-y"},
			"contradict each other: give one":                    {"set", "x6-x", "-a", "-f"},
		} {
			Expect(shared.fails(ctx, controlplane.Admin, append(args, "-s", server.URL)...)).To(ContainSubstring(why))
		}
		Expect(asked.Load()).To(BeZero())
	})

	It("by its label, and by the LNamespace of a tenant's root", func(ctx SpecContext) {
		shared.Create(ctx, build.Template("xt-base", "team", "neco"), build.Template("xt-ci"), build.Namespace("xt-solo"),
			build.Tenant("xt-pay").Object())
		Eventually(shared.ns("xt-pay")).WithContext(ctx).Should(standing("xt-pay", "0"))
		template := func(args ...string) string {
			GinkgoHelper()
			return shared.done(ctx, controlplane.Admin, append([]string{"template"}, args...)...)
		}
		Expect(template("set", "xt-ci", "xt-base")).To(Equal("namespace/xt-ci labelled\n"))
		Expect(template("set", "xt-solo", "xt-ci")).To(Equal("namespace/xt-solo labelled\n"))
		Expect(template("set", "xt-solo", "xt-ci")).To(Equal("namespace/xt-solo unchanged\n"))
		Expect(template("set", "xt-pay", "xt-base", "--dry-run=server")).
			To(Equal("lnamespace.tenancy.warren.dev/xt-pay configured (server dry run)\n"))
		Expect(template("set", "xt-pay", "xt-base")).To(Equal("lnamespace.tenancy.warren.dev/xt-pay configured\n"))
		Expect(template("set", "xt-pay", "xt-base")).To(Equal("lnamespace.tenancy.warren.dev/xt-pay unchanged\n"))
		for _, name := range []string{"xt-solo", "xt-pay"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(carry("team", "neco"))
		}
		Expect(template("list", "xt-base")).To(Equal(`xt-base (template)
├── xt-ci (template)
│   └── xt-solo
└── xt-pay
`))
		Expect(template("list", "-o", "name")).To(ContainSubstring("namespace/xt-base\nnamespace/xt-ci\nnamespace/xt-solo\nnamespace/xt-pay\n"))
		Expect(shared.fails(ctx, controlplane.Admin, "template", "list", "xt-pay")).To(Equal("namespace xt-pay is no template"))
		Expect(shared.fails(ctx, "alice", "template", "list")).To(HavePrefix("you may not list namespaces"))
		for i := range 2 {
			verbs := []string{"configured", "unchanged"}
			Expect(template("unset", "xt-pay")).To(Equal(fmt.Sprintf("lnamespace.tenancy.warren.dev/xt-pay %s\n", verbs[i])))
		}
		Expect(template("unset", "xt-solo")).To(Equal("namespace/xt-solo labelled\n"))
		Expect(template("unset", "xt-solo")).To(Equal("namespace/xt-solo unchanged\n"))
		for _, name := range []string{"xt-solo", "xt-pay"} {
			Eventually(shared.ns(name)).WithContext(ctx).Should(And(lack("team"), lack(v1alpha1.LabelTemplate)))
		}
	})
})
