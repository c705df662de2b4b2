package trees_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("the configuration file changes", Ordered, ContinueOnFailure, func() {
	var own configured

	BeforeAll(func(ctx SpecContext) {
		own.cluster = startWorld(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: fixture}})
	})

	It("SUB-F2 a second process with an invalid file ends with status 1; Event InvalidConfiguration on the Deployment names the problems; "+
		"the first carries out a SubNamespace, its file stays recorded", func(ctx SpecContext) {
		_, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
			Manager: built.Manager, Kubeconfig: own.Kubeconfig(controlplane.Operator), Dir: GinkgoT().TempDir(), Config: invalid,
			Args: []string{"--leader-elect"},
		})
		Expect(err).
			To(MatchError(And(ContainSubstring("ended at its start with exit code 1"), ContainSubstring(`unknown field "inheritance.lables"`))))
		Eventually(own.fileEvents(v1alpha1.ReasonInvalidConfiguration)).WithContext(ctx).Should(ConsistOf(
			And(ContainSubstring(`inheritance.lables: unknown field`), ContainSubstring("featureGates[Foo]"))))
		own.Create(ctx, build.Root("f2-payments", "team", "neco"))
		own.grow(ctx, "f2-payments/f2-web")
		Expect(own.now(ctx, "f2-web")).To(carry("team", "neco"))
		Eventually(own.recorded).WithContext(ctx).Should(Equal(fixture))
	})

	It("SUB-F3 a label that is added to inheritance.labels reaches the children of a root, and the file is recorded in ConfigMap "+
		"warren-accepted-config; SUB-N5 without webhooks, SubNamespaces whose names break the policy are NamingPolicyViolated, Stalled, "+
		"without a Namespace; once the file has no policy, they are Ready", func(ctx SpecContext) {
		own.Create(ctx, build.Root("f3-payments", "env", "prod"), build.Root("app-n5"),
			build.SubNamespace("app-n5", "n5-other"), build.SubNamespace("app-n5", "x-app-n5-a"))
		own.grow(ctx, "f3-payments/f3-web", "app-n5/app-n5-web")
		Expect(own.now(ctx, "f3-web")).To(lack("env"))
		for _, name := range []string{"n5-other", "x-app-n5-a"} {
			Eventually(own.sub("app-n5/" + name)).WithContext(ctx).Should(stall(v1alpha1.ReasonNamingPolicyViolated,
				fmt.Sprintf("name %q breaks the naming policy of root app-n5: must match ^app-n5-.*", name)))
			own.Absent(ctx, build.Namespace(name))
		}

		without, _, found := strings.Cut(fixture, "  namingPolicies:")
		Expect(found).To(BeTrue())
		text := strings.Replace(without, "labels: [team, ", "labels: [team, env, ", 1)
		own.configure(ctx, text)
		Eventually(own.ns("f3-web")).WithContext(ctx).Should(carry("env", "prod"))
		for _, name := range []string{"n5-other", "x-app-n5-a"} {
			Eventually(own.sub("app-n5/" + name)).WithContext(ctx).Should(beReady())
		}
	})

	It("SUB-F7 with an empty propagation.kinds, RoleBindings labelled propagate still reach the tree", func(ctx SpecContext) {
		own.configure(ctx, fixture+"propagation: {kinds: []}\n")
		own.Create(ctx, build.Root("f7-payments"))
		own.Create(ctx, build.Source(build.RoleBinding("f7-payments", "alice", "view", build.RBACUser("alice")), v1alpha1.ModeUpdate),
			build.Secret("f7-payments", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		own.grow(ctx, "f7-payments/f7-web", "f7-web/f7-deep")
		for _, name := range []string{"f7-web", "f7-deep"} {
			own.Exists(ctx, build.RoleBinding(name, "alice", "view"))
			own.Absent(ctx, build.Secret(name, "key", "x"))
		}
	})

	It("SUB-F10 a file that protects 24 children, or removes copies of a kind, is held back, also with another file's acceptRemovals: "+
		"nothing changes, the record stays, the process is not ready; SUB-F10 the log and Event RemovalsHeld have how many would be lost, of "+
		"how many; with its own acceptRemovals, the file is accepted", func(ctx SpecContext) {
		const children = 24
		own.configure(ctx, fixture)
		own.Create(ctx, build.Root("f10-payments"), build.Source(build.Secret("f10-payments", "key", "x"), v1alpha1.ModeUpdate),
			build.Source(build.RoleBinding("f10-payments", "viewers", "view", build.RBACUser("f10-vera")), v1alpha1.ModeUpdate))
		var names []string
		for i := range children {
			names = append(names, fmt.Sprintf("f10-web-%02d", i))
			own.Create(ctx, build.Child(names[i], "f10-payments"))
		}
		for _, name := range names {
			Eventually(own.ns(name)).WithContext(ctx).Should(standing("f10-payments", "1"))
		}
		copied := func() {
			GinkgoHelper()
			for _, name := range names {
				own.Exists(ctx, build.Secret(name, "key", "x"), build.RoleBinding(name, "viewers", "view"))
			}
		}
		copied()
		wrong := map[string]string{
			"24 of [0-9]+ places or keys of namespaces": fixture + `protectedNamespaces: ["f10-web-*"]` + "\n",
			"[0-9]+ of [0-9]+ other copies": fixture + "propagation: {kinds: [{kind: Secret, mode: Remove}, {kind: ConfigMap}, " +
				"{group: rbac.authorization.k8s.io, kind: RoleBinding}]}\n",
		}
		for loss, text := range wrong {
			since := own.Mark(ctx)
			own.expectHeld(ctx, text, "would take away [^:]*"+loss)
			Consistently(own.writes(since, names...)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).Should(BeEmpty())
			copied()
			own.expectHeld(ctx, text+"acceptRemovals: 0123456789ab\n", "would take away")
			Expect(own.recorded(ctx)).To(Equal(fixture))
		}
		Eventually(own.fileEvents(v1alpha1.ReasonRemovalsHeld)).WithContext(ctx).Should(ContainElement(ContainSubstring("acceptRemovals")))

		protecting := accepting(wrong["24 of [0-9]+ places or keys of namespaces"])
		own.configure(ctx, protecting)
		Expect(own.recorded(ctx)).To(Equal(protecting))
		own.configure(ctx, fixture)
		for _, name := range names {
			Eventually(own.ns(name)).WithContext(ctx).Should(standing("f10-payments", "1"))
		}
		copied()

		text := wrong["[0-9]+ of [0-9]+ other copies"]
		own.configure(ctx, accepting(text))
		for _, name := range names {
			own.Gone(ctx, build.Secret(name, "key", "x"))
		}
		own.configure(ctx, fixture)
		copied()
	})

	It("SUB-F13 a file without a kind that has copies is held back; log, Event and config diff name the kind, the number of copies and mode "+
		"Remove; SUB-F13 such a file is accepted with its own acceptRemovals, or after mode Remove deleted the copies",
		func(ctx SpecContext) {
			const kinds = "propagation: {kinds: [{group: rbac.authorization.k8s.io, kind: RoleBinding}, "
			own.configure(ctx, accepting(fixture+kinds+"{kind: Secret}, {kind: ConfigMap}]}\n"))
			own.Create(ctx, build.Root("f13-payments"), build.Source(build.ConfigMap("f13-payments", "m", "x"), v1alpha1.ModeUpdate))
			own.grow(ctx, "f13-payments/f13-web")
			own.Exists(ctx, build.ConfigMap("f13-web", "m", "x"))

			without := fixture + kinds + "{kind: Secret}]}\n"
			file := filepath.Join(GinkgoT().TempDir(), "config.yaml")
			Expect(os.WriteFile(file, []byte(without), 0o600)).To(Succeed())
			Expect(own.done(ctx, controlplane.Admin, "config", "diff", file)).
				To(And(ContainSubstring("The operator would not accept this file: propagation.kinds no longer names kinds of which copies exist"),
					ContainSubstring("ConfigMap (1 copy). Set the kinds to mode Remove first")))
			own.expectHeld(ctx, without,
				`propagation.kinds no longer names kinds of which copies exist; these would stay, and no user could change them: `+
					`ConfigMap \(1 copy\). Set the kinds to mode Remove first`)
			Eventually(own.fileEvents(v1alpha1.ReasonRemovalsHeld)).WithContext(ctx).
				Should(ContainElement(ContainSubstring("ConfigMap (1 copy). Set the kinds to mode Remove first")))
			own.configure(ctx, accepting(without))
			own.configure(ctx, fixture+kinds+"{kind: Secret}, {kind: ConfigMap, mode: Remove}]}\n")
			own.Gone(ctx, build.ConfigMap("f13-web", "m", "x"))
			own.configure(ctx, without)
			own.configure(ctx, fixture)
		})

	It("SUB-F8 if the file protects a managed namespace, it and all below are halted, and a SubNamespace below waits; without that pattern, "+
		"all are managed again, nothing is lost", func(ctx SpecContext) {
		own.configure(ctx, fixture)
		own.Create(ctx, build.Root("f8-payments", "team", "neco"),
			build.Secret("f8-payments", "key", "x", v1alpha1.LabelPropagate, v1alpha1.ModeUpdate))
		own.grow(ctx, "f8-payments/pay-f8", "pay-f8/f8-deep")
		for _, name := range []string{"pay-f8", "f8-deep"} {
			own.Exists(ctx, build.Secret(name, "key", "x"))
		}
		before := map[string]any{"pay-f8": own.now(ctx, "pay-f8").UID, "f8-deep": own.now(ctx, "f8-deep").UID}
		own.configure(ctx, fixture+`protectedNamespaces: ["pay-*"]`+"\n")
		Eventually(own.sub("f8-payments/pay-f8")).WithContext(ctx).Should(stall(v1alpha1.ReasonProtectedName, "is a protected namespace"))
		Eventually(own.sub("pay-f8/f8-deep")).WithContext(ctx).Should(say(v1alpha1.ConditionMetadataSynced, metav1.ConditionUnknown,
			v1alpha1.ReasonHalted))
		own.Create(ctx, build.SubNamespace("f8-deep", "f8-deeper"))
		Eventually(own.sub("f8-deep/f8-deeper")).WithContext(ctx).Should(stall(v1alpha1.ReasonParentNotManaged, "halted"))
		since := own.Mark(ctx)
		own.label(ctx, "f8-payments", "team=tama")
		own.quiet(ctx, 10*time.Second, "pay-f8", "f8-deep")
		Expect(own.writes(since, "pay-f8", "f8-deep")(ctx)).To(BeEmpty())
		for name, uid := range before {
			Expect(own.now(ctx, name)).To(And(active(), carry("team", "neco"), HaveField("ObjectMeta.UID", uid)))
			Expect(own.Read(build.Secret(name, "key", "x"))(ctx)).To(Succeed())
		}
		own.configure(ctx, fixture)
		for name, uid := range before {
			Eventually(own.ns(name)).WithContext(ctx).Should(And(carry("team", "tama"), HaveField("ObjectMeta.UID", uid)))
			Expect(own.Read(build.Secret(name, "key", "x"))(ctx)).To(Succeed())
		}
		Eventually(own.sub("f8-payments/pay-f8")).WithContext(ctx).Should(beReady())
		Eventually(own.sub("f8-deep/f8-deeper")).WithContext(ctx).Should(beReady())
	})

	It("SUB-D15 a SubNamespace whose Namespace the file protects is deleted with Event DeletionRefused; the operator sends no request about "+
		"the Namespace, which stays", func(ctx SpecContext) {
		own.configure(ctx, fixture)
		own.Create(ctx, build.Root("d15-payments"))
		own.grow(ctx, "d15-payments/pay-d15")
		own.configure(ctx, fixture+`protectedNamespaces: ["pay-*"]`+"\n")
		Eventually(own.sub("d15-payments/pay-d15")).WithContext(ctx).Should(stall(v1alpha1.ReasonProtectedName, "is a protected namespace"))
		before := own.now(ctx, "pay-d15").UID
		since := own.Mark(ctx)
		own.Delete(ctx, subNamespace("d15-payments/pay-d15"))
		own.Gone(ctx, subNamespace("d15-payments/pay-d15"))
		Eventually(ctx, own.Reasons(subNamespace("d15-payments/pay-d15"))).Should(ContainElement(string(v1alpha1.ReasonDeletionRefused)))
		Consistently(own.requests(since, "pay-d15")).WithContext(ctx).WithTimeout(test.Quiet(10*time.Second)).
			WithPolling(500*time.Millisecond).Should(BeEmpty(), "no request about the Namespace, not even a read")
		Expect(own.requests(since, "d15-payments")(ctx)).NotTo(BeEmpty(), "what was asked of the SubNamespace is seen")
		Expect(own.now(ctx, "pay-d15")).To(And(active(), HaveField("ObjectMeta.UID", before)))
		own.configure(ctx, fixture)
	})

	It("BILL-68 all namespaces of a tree have cost center and owner as labels; a change is one write each; "+
		"invalid or empty values, or removed keys, remove the labels", func(ctx SpecContext) { labelsFollow(ctx, &own) })

	It("BILL-69 the operator keeps other values of a key, and KeyTaken names them; "+
		"once they are removed, it writes and restores its labels", func(ctx SpecContext) { takenKeys(ctx, &own) })

	It("BILL-70 without webhooks a SubNamespace (KeyNotAllowed) or HierarchyConfiguration changes neither label; "+
		"a subtree that moves to a tenant without values loses them", func(ctx SpecContext) { nobodyElsePays(ctx, &own) })

	It("SUB-I5 if everything is inherited, children still don't get privileged (KeyNotAllowed), type, template, created-by, "+
		"last-applied-configuration, metadata.name or tree labels of the root; they are steady", func(ctx SpecContext) {
		own.configure(ctx, `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
inheritance: {labels: ["*", "*/*"], annotations: ["*", "*/*"]}
`)
		everythingFlows(ctx, own.cluster)
	})

	It("SUB-F5 by warren_config_kind, a kind without a CRD is pending, and active without a restart once the CRD exists; one that the "+
		"operator may not list is forbidden", func(ctx SpecContext) {
		text := fixture + `propagation:
  kinds:
  - {group: rbac.authorization.k8s.io, kind: RoleBinding}
  - {group: rbac.authorization.k8s.io, kind: Role}
  - {kind: Secret}
  - {kind: ConfigMap}
  - {group: example.com, version: v1, kind: Widget}
  - {group: apps, version: v1, kind: Deployment}
`
		own.Create(ctx, build.Labelled(build.ClusterRole("f5-widgets",
			build.Rule("example.com", "widgets", "get", "list", "watch", "create", "update", "delete")),
			v1alpha1.Domain+"/aggregate-to-kinds", "true"))
		own.configure(ctx, text)
		own.expect(ctx, "warren_config_kind", 1, "group", "example.com", "kind", "Widget", "state", "pending")
		own.expect(ctx, "warren_config_kind", 1, "group", "apps", "kind", "Deployment", "state", "forbidden")
		pid := own.Operator.Process().PID()
		own.Create(ctx, build.CustomResource("example.com", "Widget", "widgets"))
		own.expect(ctx, "warren_config_kind", 1, "group", "example.com", "kind", "Widget", "state", "active")
		Expect(own.Operator.Process().PID()).To(Equal(pid))
	})
})

// accepting returns the file with the line that accepts what this file removes.
func accepting(text string) string {
	GinkgoHelper()
	c, err := configfile.Parse("config.yaml", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	return text + "acceptRemovals: " + strconv.Quote(configfile.RemovalsHash(c)) + "\n"
}

// everythingFlows expects that children of a root inherit ordinary keys, and none that would harm.
func everythingFlows(ctx context.Context, c cluster) {
	GinkgoHelper()
	c.Create(ctx, build.Template("i5-base"))
	manifest := func(level, color string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: i5-payments
  labels:
    {%s: root, %s: i5-base, color: %s, example.com/size: big, app.kubernetes.io/created-by: mia, pod-security.kubernetes.io/enforce: %s}
  annotations: {note: hello, example.com/contact: mia}
`, v1alpha1.LabelType, v1alpha1.LabelTemplate, color, level)
	}
	apply := func(text string) {
		GinkgoHelper()
		_, problems, code := c.KubectlWith(ctx, controlplane.Admin, text, "apply", "-f", "-")
		Expect(code).To(BeZero(), problems)
	}
	apply(manifest("baseline", "red"))
	c.grow(ctx, "i5-payments/i5-web", "i5-web/i5-deep")
	for _, name := range []string{"i5-web", "i5-deep"} {
		Eventually(c.ns(name)).WithContext(ctx).Should(And(carry("color", "red"), carry("pod-security.kubernetes.io/enforce", "baseline")))
	}
	apply(manifest("privileged", "blue"))
	Eventually(c.sub("i5-payments/i5-web")).WithContext(ctx).Should(say(v1alpha1.ConditionMetadataSynced,
		metav1.ConditionFalse, v1alpha1.ReasonKeyNotAllowed, "pod-security.kubernetes.io/enforce"))
	for _, name := range []string{"i5-web", "i5-deep"} {
		Eventually(c.ns(name)).WithContext(ctx).Should(carry("color", "blue"))
		Expect(c.now(ctx, name)).To(And(carry("example.com/size", "big"), noted("note", "hello"), noted("example.com/contact", "mia"),
			carry("pod-security.kubernetes.io/enforce", "baseline"), carry("kubernetes.io/metadata.name", name),
			lack(v1alpha1.LabelType), lack(v1alpha1.LabelTemplate), unnoted("kubectl.kubernetes.io/last-applied-configuration"),
			standing("i5-payments", map[string]string{"i5-web": "1", "i5-deep": "2"}[name])))
	}
	c.Create(ctx, build.Child("i5-placed", "i5-payments"))
	Eventually(c.ns("i5-placed")).WithContext(ctx).Should(carry("color", "blue"))
	Expect(c.now(ctx, "i5-placed")).To(And(lack(v1alpha1.LabelCreatedBy), lack("pod-security.kubernetes.io/enforce")))
	c.quiet(ctx, 10*time.Second, "i5-web", "i5-deep", "i5-placed")
}
