package trees_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// done runs the plugin as a user and returns what it prints, which must succeed.
func (c cluster) done(ctx context.Context, user string, args ...string) string {
	GinkgoHelper()
	out, problems, code := c.warren(ctx, user, args...)
	Expect(code).To(BeZero(), "%v: %s", args, problems)
	return out
}

// fails runs the plugin as a user and returns its error, without a word on stdout.
func (c cluster) fails(ctx context.Context, user string, args ...string) string {
	GinkgoHelper()
	out, problems, code := c.warren(ctx, user, args...)
	Expect(code).To(Equal(1), "%v: %s", args, problems)
	Expect(out).To(BeEmpty())
	lines := strings.Split(strings.TrimSuffix(problems, "\n"), "\n")
	last := lines[len(lines)-1]
	Expect(last).To(HavePrefix("error: "))
	return strings.TrimPrefix(last, "error: ")
}

// enforced are the labels of a root whose tree has a pod-security level.
var enforced = []string{"pod-security.kubernetes.io/enforce", "baseline"}

const subResource = "subnamespace.tenancy.warren.dev/"

var _ = Describe("kubectl warren changes trees", Ordered, ContinueOnFailure, func() {
	var own cluster

	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{Webhooks: true, Operator: devcluster.OperatorOptions{Config: fixture}})
	})

	It("SUB-X16 create in a namespace that does not exist prints the API server's refusal, and the advice to check the name or ask for the "+
		"right", func(ctx SpecContext) {
		own.Create(ctx, build.Tenant("xc-pay").Users("alice").Object())
		Eventually(func() (string, error) {
			out, problems, _ := own.warren(ctx, "alice", "create", "xc-web", "-n", "xc-pay", "--labels", "app=web,team=a", "--annotations",
				"memo=x", "--dry-run=server")
			return out + problems, ctx.Err()
		}).WithContext(ctx).Should(Equal(subResource+"xc-web created (server dry run)\n"), "once she has her rights")
		own.Absent(ctx, subNamespace("xc-pay/xc-web"))
		Expect(own.done(ctx, "alice", "create", "xc-web", "-n", "xc-pay", "--labels", "app=web,team=a", "--annotations", "memo=x", "--wait")).
			To(Equal(subResource + "xc-web created\n"))
		Expect(own.now(ctx, "xc-web")).To(And(carry("app", "web"), carry("team", "a"), noted("memo", "x")))
		Expect(own.fails(ctx, "alice", "create", "xc-lost", "-n", "xc-pya")).To(And(ContainSubstring(`in the namespace "xc-pya"`),
			HaveSuffix("; namespace xc-pya does not exist, or you may not make sub-namespaces in it: check the name, or ask a manager of "+
				"its tenant or a cluster admin for the right")), "SUB-X16")
		Eventually(func() string { return own.fails(ctx, "alice", "create", "xc-web", "-n", "xc-pay") }).WithContext(ctx).
			Should(Equal("namespace xc-web already exists: choose another name"))
		Expect(own.fails(ctx, "alice", "create", "xc-x", "-n", "xc-pay", "--labels", "foo=a")).
			To(ContainSubstring("spec.labels[foo]: Forbidden: not allowed by subNamespaces.labels"))

		By("a name that she can't see is taken")
		own.Create(ctx, build.Namespace("xc-taken"))
		Expect(own.fails(ctx, "alice", "create", "xc-taken", "-n", "xc-pay", "--wait")).
			To(HavePrefix("SubNamespace xc-pay/xc-taken was created, but is not ready: NameTaken: namespace xc-taken exists outside of this tree"))
		Expect(own.fails(ctx, "alice", "delete", "xc-taken")).To(ContainSubstring("name the parent of its SubNamespace with --namespace"))
		Expect(own.done(ctx, "alice", "delete", "xc-taken", "-n", "xc-pay", "--wait", "-o", "name")).To(Equal(subResource + "xc-taken\n"))
		own.Absent(ctx, subNamespace("xc-pay/xc-taken"))
		Expect(own.now(ctx, "xc-taken")).To(active())

		read := &v1alpha1.SubNamespace{}
		Expect(json.Unmarshal([]byte(own.done(ctx, "alice", "create", "xc-db", "-n", "xc-web", "--wait", "-o", "json")), read)).To(Succeed())
		Expect(read).To(beReady())
		Expect(own.done(ctx, "alice", "delete", "xc-db", "--dry-run=client")).To(Equal(subResource + "xc-db deleted (dry run)\n"))
		Expect(own.done(ctx, "alice", "delete", "xc-db", "--dry-run=server")).To(Equal(subResource + "xc-db deleted (server dry run)\n"))
		Expect(own.now(ctx, "xc-db")).To(active())
		Expect(own.fails(ctx, "alice", "delete", "xc-pay")).To(Equal("namespace xc-pay is no sub-namespace"))
		Expect(own.fails(ctx, "alice", "delete", "xc-db", "-n", "xc-pay")).To(Equal("there is no SubNamespace xc-db in namespace xc-pay"))
	})

	It("SUB-X7 delete of a namespace with sub-namespaces fails; with --cascade --wait, stderr names the field that it sets, and it ends "+
		"when both namespaces are deleted", func(ctx SpecContext) {
		own.Create(ctx, build.Tenant("x7-pay").Users("alice").Object())
		Eventually(own.ns("x7-pay")).WithContext(ctx).Should(standing("x7-pay", "0"))
		own.grow(ctx, "x7-pay/x7-web", "x7-web/x7-deep")
		Eventually(func() string { return own.fails(ctx, "alice", "delete", "x7-web") }).WithContext(ctx).
			Should(ContainSubstring("x7-web has sub-namespaces (x7-deep): delete them first or set allowCascadingDeletion"))
		out, said, code := own.warren(ctx, "alice", "delete", "x7-web", "--cascade", "--wait")
		Expect(code).To(BeZero(), said)
		Expect(out).To(Equal(subResource + "x7-web deleted\n"))
		Expect(said).To(MatchRegexp(`^allowCascadingDeletion of HierarchyConfiguration x7-web/hierarchy: (created|configured)\n`+
			`(Waiting until namespace x7-web has ended: .*\n)*$`), "the second line where that takes longer than a few seconds")
		own.Absent(ctx, subNamespace("x7-pay/x7-web"))
		for _, name := range []string{"x7-web", "x7-deep"} {
			own.Gone(ctx, build.Namespace(name))
		}
		By("as the cluster admin, who sees the namespace to its end")
		own.grow(ctx, "x7-pay/x7-ops", "x7-ops/x7-low")
		own.done(ctx, controlplane.Admin, "delete", "x7-ops", "-n", "x7-pay", "--cascade", "--wait")
		own.Absent(ctx, build.Namespace("x7-ops"))
	})

	It("SUB-D16 kubectl warren delete --wait and describe, and the SubNamespace that is created again (NamespaceTerminating), name the "+
		"finalizer because of which the Namespace remains", func(ctx SpecContext) {
		own.Create(ctx, build.Tenant("d16-pay").Users("alice").Object())
		Eventually(own.ns("d16-pay")).WithContext(ctx).Should(standing("d16-pay", "0"))
		own.grow(ctx, "d16-pay/d16-web")
		held := build.ConfigMap("d16-web", "bucket", "x")
		held.SetFinalizers([]string{"example.com/bucket"})
		own.Create(ctx, held)
		const cause = "example.com/bucket in 1 resource instances"
		release := func(ctx SpecContext) {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(own.Admin().Patch(ctx, held.DeepCopy(), patch))).To(Succeed())
		}
		deleting := make(chan string, 1)
		go func() {
			defer GinkgoRecover()
			_, said, _ := own.warren(ctx, controlplane.Admin, "delete", "d16-web", "--wait")
			deleting <- said
		}()
		own.Gone(ctx, subNamespace("d16-pay/d16-web"))
		Eventually(func() string { return own.done(ctx, controlplane.Admin, "describe", "d16-web") }).WithContext(ctx).
			Should(And(ContainSubstring("NamespaceFinalizersRemaining"), ContainSubstring(cause)))
		By("the user of the tenant, who may no longer read the namespace, creates the SubNamespace again")
		own.Create(ctx, build.SubNamespace("d16-pay", "d16-web"))
		Eventually(own.sub("d16-pay/d16-web")).WithContext(ctx).Should(HaveField("Status.Conditions", ContainElement(And(
			HaveField("Type", "Ready"), HaveField("Reason", string(v1alpha1.ReasonNamespaceTerminating)), HaveField("Message",
				ContainSubstring(cause))))))
		DeferCleanup(release)
		Consistently(deleting).WithContext(ctx).WithTimeout(test.Quiet(10*time.Second)).ShouldNot(Receive(), "it waits")
		release(ctx)
		var said string
		Eventually(deleting).WithContext(ctx).Should(Receive(&said))
		Expect(said).To(ContainSubstring(cause))
	})

	// start makes two roots and below one of them a sub-namespace that has a sub-namespace.
	start := func(ctx SpecContext, p string) {
		GinkgoHelper()
		own.Create(ctx, build.Root(p+"-pay", append([]string{"team", "neco"}, enforced...)...), build.Root(p+"-other", enforced...),
			build.SubNamespace(p+"-pay", p+"-web", "app", "web"))
		Eventually(own.sub(p + "-pay/" + p + "-web")).WithContext(ctx).Should(beReady())
		own.grow(ctx, p+"-web/"+p+"-deep")
		Eventually(own.ns(p + "-web")).WithContext(ctx).Should(carry("team", "neco"))
	}
	// moved checks that the sub-namespaces of start are now below the other root, and that nothing is left below the first.
	moved := func(ctx SpecContext, p string) {
		GinkgoHelper()
		Eventually(own.sub(p + "-other/" + p + "-web")).WithContext(ctx).Should(And(beReady(), unnoted(v1alpha1.AnnotationMovedFrom),
			HaveField("Spec", v1alpha1.SubNamespaceSpec{Labels: map[string]v1alpha1.LabelValue{"app": "web"}})))
		Eventually(own.ns(p + "-web")).WithContext(ctx).Should(And(carry(v1alpha1.LabelParent, p+"-other"), carry("app", "web"), lack("team"),
			standing(p+"-other", "1")))
		Eventually(own.ns(p + "-deep")).WithContext(ctx).Should(And(lack("team"), standing(p+"-other", "2")))
		own.Gone(ctx, subNamespace(p+"-pay/"+p+"-web"))
		Expect(own.now(ctx, p+"-web")).To(active())
	}

	It("SUB-M1 kubectl warren move keeps UID and spec, changes parent, deletes the old SubNamespace and removes old inherited keys; a level "+
		"that both roots enforce is never absent", func(ctx SpecContext) {
		start(ctx, "m1")
		before, history := own.now(ctx, "m1-web"), own.follow(ctx, called("m1-web"))
		Expect(own.done(ctx, controlplane.Admin, "move", "m1-web", "m1-other", "--dry-run=client")).
			To(Equal("namespace/m1-web moved (dry run)\n"))
		Expect(own.done(ctx, controlplane.Admin, "move", "m1-web", "m1-other", "--dry-run=server")).
			To(Equal("namespace/m1-web moved (server dry run)\n"))
		own.Absent(ctx, subNamespace("m1-other/m1-web"))
		Expect(own.done(ctx, controlplane.Admin, "move", "m1-web", "m1-other")).To(Equal("namespace/m1-web moved\n"))
		moved(ctx, "m1")
		Expect(own.now(ctx, "m1-web").UID).To(Equal(before.UID))
		Expect(history.versions("m1-web")).To(And(Not(BeEmpty()), HaveEach(carry(enforced[0], enforced[1]))))
		Expect(own.done(ctx, controlplane.Admin, "move", "m1-web", "m1-other")).To(Equal("namespace/m1-web unchanged\n"))
	})

	It("SUB-M8 kubectl warren move, also with --dry-run=server, and graft print no Warning that a name is taken which their own next step "+
		"makes free", func(ctx SpecContext) {
		start(ctx, "m8")
		for _, words := range [][]string{{"move", "m8-web", "m8-other", "--dry-run=server"}, {"move", "m8-web", "m8-other"},
			{"graft", "m8-web", "m8-other"}} {
			_, warnings, code := own.warren(ctx, controlplane.Admin, words...)
			Expect([]any{code, warnings}).To(Equal([]any{0, ""}), "%s", words)
		}
	})

	It("SUB-M9 to move pay-web back, or graft it after cut, changes nothing until a finalizer lets the old SubNamespace go; then it is "+
		"Ready again, the UID the same; SUB-M9 label parent, set by hand meanwhile, is refused: SubNamespace payments/pay-web is being "+
		"deleted, and would take this namespace with it", func(ctx SpecContext) {
		for p, words := range map[string][2][]string{
			"m9a": {{"move", "m9a-web", "m9a-other"}, {"move", "m9a-web", "m9a-pay"}},
			"m9b": {{"cut", "m9b-web"}, {"graft", "m9b-web", "m9b-pay"}},
		} {
			start(ctx, p)
			web, pay, sub := p+"-web", p+"-pay", subNamespace(p+"-pay/"+p+"-web")
			edit(ctx, own, sub, func(s *v1alpha1.SubNamespace) { build.Held(s) })
			own.done(ctx, controlplane.Admin, words[0]...)
			ending := own.now(ctx, web)
			Expect(own.sub(pay + "/" + web)(ctx)).To(HaveField("DeletionTimestamp", Not(BeNil())))

			var back sync.WaitGroup
			back.Go(func() {
				defer GinkgoRecover()
				own.done(ctx, controlplane.Admin, words[1]...)
			})
			Consistently(own.ns(web)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).Should(Not(carry(v1alpha1.LabelParent, pay)))
			if p == "m9a" {
				labelled := build.Namespace(web, v1alpha1.LabelParent, pay)
				Expect(own.Admin().Patch(ctx, labelled, client.MergeFrom(build.Namespace(web)))).
					To(MatchError(ContainSubstring("SubNamespace " + pay + "/" + web + " is being deleted, and would take this namespace with it")))
			}
			own.LetGo(ctx, sub)
			back.Wait()
			Eventually(own.sub(pay + "/" + web)).WithContext(ctx).Should(beReady())
			Consistently(own.ns(web)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).
				Should(And(active(), carry(v1alpha1.LabelParent, pay), HaveField("UID", ending.UID)))
		}
	})

	It("SUB-M10 a kubectl warren move that succeeds, also to another tree, leaves no Warning Event about either SubNamespace",
		func(ctx SpecContext) {
			start(ctx, "m10")
			warnings := func(ctx context.Context) (found []string, err error) {
				list := &corev1.EventList{}
				err = own.Admin().List(ctx, list)
				for _, event := range list.Items {
					if event.Type == corev1.EventTypeWarning && strings.HasPrefix(event.Namespace, "m10-") {
						found = append(found, event.Namespace+": "+event.Message)
					}
				}
				return found, err
			}
			own.grow(ctx, "m10-other/m10-near")
			for _, to := range []string{"m10-other", "m10-near"} {
				own.done(ctx, controlplane.Admin, "move", "m10-web", to)
				Eventually(own.sub(to + "/m10-web")).WithContext(ctx).Should(And(beReady(), unnoted(v1alpha1.AnnotationMovedFrom)))
				Consistently(warnings).WithContext(ctx).WithTimeout(test.Quiet(2 * time.Second)).Should(BeEmpty())
			}
		})

	It("SUB-M2 a move below its own descendant, or into a full tree, has status 1 and the API server's message; it leaves no SubNamespace, "+
		"and parent is unchanged", func(ctx SpecContext) {
		start(ctx, "m2")
		own.Create(ctx, build.Tenant("m2-full").Limits(0, -1).Object())
		Eventually(own.ns("m2-full")).WithContext(ctx).Should(standing("m2-full", "0"))
		for to, why := range map[string]string{"m2-deep": "would make a cycle", "m2-full": "allows 0 sub-namespaces"} {
			Expect(own.fails(ctx, controlplane.Admin, "move", "m2-web", to)).To(ContainSubstring(why))
			own.Gone(ctx, subNamespace(to+"/m2-web"))
			Expect(own.now(ctx, "m2-web")).To(And(active(), carry(v1alpha1.LabelParent, "m2-pay")))
		}
		Expect(own.fails(ctx, controlplane.Admin, "move", "m2-pay", "m2-other")).To(Equal("namespace m2-pay is no sub-namespace"))
		Expect(own.fails(ctx, controlplane.Admin, "move", "m2-nosuch", "m2-other")).To(Equal(`namespaces "m2-nosuch" not found`))
	})

	It("SUB-M3 a move that is killed after its first, second or third write has the whole result when it runs again", func(ctx SpecContext) {
		for i, p := range []string{"m3-a", "m3-b", "m3-c"} {
			start(ctx, p)
			before := own.now(ctx, p+"-web")
			Expect(own.severed(ctx, int32(i+1), "move", p+"-web", p+"-other")).NotTo(BeZero(), "killed after write %d", i+1)
			own.done(ctx, controlplane.Admin, "move", p+"-web", p+"-other")
			moved(ctx, p)
			Expect(own.now(ctx, p+"-web").UID).To(Equal(before.UID))
		}
	})

	It("SUB-M4 after move --leave-original, the new SubNamespace is Ready and the old one NameTaken; the deletion of the old one keeps the "+
		"Namespace", func(ctx SpecContext) {
		start(ctx, "m4")
		own.done(ctx, controlplane.Admin, "move", "m4-web", "m4-other", "--leave-original")
		Eventually(own.sub("m4-other/m4-web")).WithContext(ctx).Should(beReady())
		Eventually(own.sub("m4-pay/m4-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonNameTaken))
		Expect(own.done(ctx, controlplane.Admin, "move", "m4-web", "m4-other")).To(Equal("namespace/m4-web unchanged\n"))
		own.done(ctx, controlplane.Admin, "delete", "m4-web", "-n", "m4-pay", "--wait")
		moved(ctx, "m4")
	})

	It("moves one that is not bound by its label alone, unless its HierarchyConfiguration placed it", func(ctx SpecContext) {
		own.Create(ctx, build.Root("mu-pay"), build.Root("mu-other"), build.Child("mu-web", "mu-pay"), build.Namespace("mu-solo"))
		Expect(own.done(ctx, controlplane.Admin, "move", "mu-web", "mu-other")).To(Equal("namespace/mu-web moved\n"))
		Expect(own.now(ctx, "mu-web")).To(carry(v1alpha1.LabelParent, "mu-other"))
		own.Absent(ctx, subNamespace("mu-other/mu-web"))
		Expect(own.fails(ctx, controlplane.Admin, "delete", "mu-web")).
			To(Equal("namespace mu-web is not bound: it is only placed below mu-other, and no SubNamespace owns it"))
		own.wish(ctx, "mu-solo", build.Below("mu-pay"))
		Eventually(own.hier("mu-solo")).WithContext(ctx).Should(applied())
		Expect(own.fails(ctx, controlplane.Admin, "move", "mu-solo", "mu-other")).
			To(Equal("mu-solo is placed by its HierarchyConfiguration: use kubectl warren set mu-solo --parent"))
		Expect(own.fails(ctx, controlplane.Admin, "cut", "mu-solo")).
			To(Equal("mu-solo is placed by its HierarchyConfiguration: use kubectl warren set mu-solo --root"))
		Expect(own.fails(ctx, controlplane.Admin, "graft", "mu-solo", "mu-other")).
			To(Equal("mu-solo is placed by its HierarchyConfiguration: use kubectl warren set mu-solo --parent mu-other first"))
	})

	It("SUB-M5 cut makes pay-web a root, without SubNamespace and inherited team; graft binds it again, with a Ready SubNamespace and "+
		"without type; its child deep is untouched", func(ctx SpecContext) {
		start(ctx, "m5")
		before := own.now(ctx, "m5-web")
		Expect(own.done(ctx, controlplane.Admin, "cut", "m5-web", "--dry-run=server")).To(Equal("namespace/m5-web cut (server dry run)\n"))
		Expect(own.done(ctx, controlplane.Admin, "cut", "m5-web")).To(Equal("namespace/m5-web cut\n"))
		own.Gone(ctx, subNamespace("m5-pay/m5-web"))
		Eventually(own.ns("m5-web")).WithContext(ctx).Should(And(carry(v1alpha1.LabelType, v1alpha1.TypeRoot), lack(v1alpha1.LabelParent),
			lack(v1alpha1.LabelBound), lack("team")))
		Eventually(own.ns("m5-deep")).WithContext(ctx).Should(And(standing("m5-web", "1"), lack("team")))
		Expect(own.done(ctx, controlplane.Admin, "cut", "m5-web")).To(Equal("namespace/m5-web unchanged\n"))
		deep := own.read(ctx, subNamespace("m5-web/m5-deep"))

		Expect(own.done(ctx, controlplane.Admin, "graft", "m5-web", "m5-pay", "--dry-run=client")).
			To(Equal("namespace/m5-web grafted (dry run)\n"))
		Expect(own.done(ctx, controlplane.Admin, "graft", "m5-web", "m5-pay")).To(Equal("namespace/m5-web grafted\n"))
		Eventually(own.sub("m5-pay/m5-web")).WithContext(ctx).Should(beReady())
		Eventually(own.ns("m5-web")).WithContext(ctx).Should(And(carry(v1alpha1.LabelBound, v1alpha1.True), lack(v1alpha1.LabelType),
			carry("team", "neco"), HaveField("ObjectMeta.UID", before.UID)))
		Expect(own.read(ctx, subNamespace("m5-web/m5-deep"))).To(HaveField("ObjectMeta.UID", deep.GetUID()))
		Expect(own.done(ctx, controlplane.Admin, "graft", "m5-web", "m5-pay")).To(Equal("namespace/m5-web unchanged\n"))
		Expect(own.fails(ctx, controlplane.Admin, "graft", "m5-web", "m5-other")).
			To(Equal("namespace m5-web belongs to SubNamespace m5-pay/m5-web: use kubectl warren move m5-web m5-other"))
	})

	It("SUB-T17 a SubNamespace whose Namespace lost parent and bound is NameTaken; its message has kubectl warren graft, and doctor names "+
		"it; after that command it is Ready", func(ctx SpecContext) {
		own.Create(ctx, build.Root("t17-pay"))
		own.grow(ctx, "t17-pay/t17-web")
		own.label(ctx, "t17-web", v1alpha1.LabelParent+"-", v1alpha1.LabelBound+"-")
		Eventually(own.sub("t17-pay/t17-web")).WithContext(ctx).Should(stall(v1alpha1.ReasonNameTaken,
			"if that namespace belongs here, a cluster admin can bind it: kubectl warren graft t17-web t17-pay"))
		out, _, _ := own.warren(ctx, controlplane.Admin, "doctor")
		Expect(out).To(MatchRegexp(`(?m)^warning +owners +the namespaces of these names are not theirs: .*SubNamespace t17-pay/t17-web`))
		Expect(own.done(ctx, controlplane.Admin, "graft", "t17-web", "t17-pay")).To(Equal("namespace/t17-web grafted\n"))
		Eventually(own.sub("t17-pay/t17-web")).WithContext(ctx).Should(beReady())
		out, _, _ = own.warren(ctx, controlplane.Admin, "doctor")
		Expect(out).NotTo(ContainSubstring("SubNamespace t17-pay/t17-web"))
	})

	It("SUB-N6 kubectl warren graft takes a namespace whose name breaks the naming policy; it is unchanged when the policies change and the "+
		"operator restarts", func(ctx SpecContext) {
		own.Create(ctx, build.Root("app-n6"), build.Namespace("n6-legacy"), build.Namespace("n6-plain"))
		Expect(own.fails(ctx, controlplane.Admin, "graft", "n6-legacy", "n6-plain")).
			To(Equal("namespace n6-plain is neither a root nor a sub-namespace"))
		Expect(own.now(ctx, "n6-legacy")).To(And(lack(v1alpha1.LabelParent), lack(v1alpha1.LabelBound)))
		Expect(own.fails(ctx, controlplane.Admin, "create", "n6-new", "-n", "app-n6")).
			To(ContainSubstring("breaks the naming policy of root app-n6"))
		own.done(ctx, controlplane.Admin, "graft", "n6-legacy", "app-n6")
		Eventually(own.sub("app-n6/n6-legacy")).WithContext(ctx).Should(beReady())
		Expect(own.Operator.Configure(ctx, strings.ReplaceAll(fixture, "^app-${team}-.*", "^${team}-only-"))).To(Succeed())
		Eventually(own.sub("app-n6/n6-legacy")).WithContext(ctx).Should(say(v1alpha1.ConditionReady, metav1.ConditionTrue,
			v1alpha1.ReasonNamespaceActive))
		own.quiet(ctx, 5*time.Second, "n6-legacy")
	})
})
