package trees_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("kubectl warren trace", func() {
	It("says from where an object came, or why it is not here", func(ctx SpecContext) {
		shared.Create(ctx, build.Template("xo-base"), build.Tenant("xo-pay").Template("xo-base").Users("alice").Object())
		Eventually(shared.ns("xo-pay")).WithContext(ctx).Should(standing("xo-pay", "0"))
		shared.grow(ctx, "xo-pay/xo-web", "xo-web/xo-db")
		shared.Create(ctx, build.Secret("xo-base", "top", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate),
			build.Secret("xo-pay", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeCreate),
			build.Annotated(build.Secret("xo-pay", "some", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate), v1alpha1.AnnotationSelect, "a=b"),
			build.Secret("xo-db", "taken", "own"), build.Secret("xo-web", "taken", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		for _, name := range []string{"top", "key"} {
			shared.Exists(ctx, build.Secret("xo-db", name, ""))
		}
		shared.Exists(ctx, build.RoleBinding("xo-db", "warren:users", ""))
		read := func(user, object string) (t trace.Trace) {
			GinkgoHelper()
			Expect(json.Unmarshal([]byte(shared.done(ctx, user, "trace", object, "-n", "xo-db", "-o", "json")), &t)).To(Succeed())
			return t
		}
		for _, user := range []string{"alice", controlplane.Admin} {
			Eventually(func(g Gomega) {
				g.Expect(read(user, "secret/top")).To(And(HaveField("Verdict", trace.Copy), HaveField("From", "xo-base"), HaveField("Mode", "update"),
					HaveField("Path", HaveExactElements("xo-base", "xo-pay", "xo-web", "xo-db")), HaveField("Notes", BeEmpty())), user)
				g.Expect(read(user, "secrets/key")).To(And(HaveField("Verdict", trace.Copy), HaveField("From", "xo-pay"), HaveField("Mode", "create"),
					HaveField("Path", HaveExactElements("xo-pay", "xo-web", "xo-db")),
					HaveField("Notes", HaveExactElements(ContainSubstring("written once")))))
				g.Expect(read(user, "rolebinding.rbac.authorization.k8s.io/warren:users")).
					To(And(HaveField("From", "xo-pay"), HaveField("Object.Group", "rbac.authorization.k8s.io")))
				g.Expect(read(user, "secret/some")).To(And(HaveField("Verdict", trace.Absent), HaveField("From", ""),
					HaveField("Notes", ContainElement("no source above xo-db reaches this namespace")),
					HaveField("Above", ContainElement(trace.Sight{Namespace: "xo-pay", Found: "a source (update), but only for namespaces with a=b"}))))
				g.Expect(read(user, "secret/taken")).To(And(HaveField("Verdict", trace.Other),
					HaveField("Notes", ContainElement(ContainSubstring("has the name of a copy from xo-web")))))
			}).WithContext(ctx).Should(Succeed())
		}
		Expect(read(controlplane.Admin, "serviceaccount/x").Notes).
			To(HaveExactElements("the configuration doesn't have ServiceAccount among propagation.kinds"))
		Expect(shared.done(ctx, "alice", "trace", "secret/top", "-n", "xo-db")).To(Equal(`secret/top in xo-db is a copy of that in xo-base.
Path:  xo-base -> xo-pay -> xo-web -> xo-db
Mode:  update

NAMESPACE   SECRET/TOP
xo-base     you may not read it
xo-pay      a copy of that in xo-base
xo-web      a copy of that in xo-base
`))
		for why, args := range map[string][]string{
			`there is no namespace "xo-nosuch"`:                                                  {"secret/x", "-n", "xo-nosuch"},
			`the API server has no resource "nosuch": kubectl api-resources lists all resources`: {"nosuch/x", "-n", "xo-db"},
			"pods are never propagated":                                                          {"pod/x", "-n", "xo-db"},
			"namespaces are never propagated":                                                    {"ns/x", "-n", "xo-db"},
		} {
			Expect(shared.fails(ctx, controlplane.Admin, append([]string{"trace"}, args...)...)).To(Equal(why))
		}
	})
})
