package trees_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/preview"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("config diff", Ordered, func() {
	var own cluster
	const usual = `inheritance: {labels: [team, "pod-security.kubernetes.io/*"]}
propagation:
  kinds: [{kind: Secret}, {kind: ConfigMap}, {kind: ResourceQuota}, {kind: LimitRange}, {group: networking.k8s.io, kind: NetworkPolicy}]
`

	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{
			WithoutOperator: true, Operator: devcluster.OperatorOptions{Config: "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: " +
				"OperatorConfiguration\n" + usual}})
		own.Create(ctx, build.Root("org", "team", "neco"), build.Child("web", "org"), build.Child("db", "web"), build.Root("shop"),
			build.Namespace("plain"),
			build.Source(build.Secret("org", "key", "x"), v1alpha1.ModeUpdate), build.Source(build.ConfigMap("web", "settings", "x"),
				v1alpha1.ModeCreate),
			build.Secret("db", "key", "mine"), build.Secret("plain", "key", "x"), build.Secret("shop", "unlabelled", "x"),
			build.Source(build.RoleBinding("org", "view", "view", build.RBACUser("v-vera")), v1alpha1.ModeUpdate))
	})

	It("PROP-M2 while the operator is not running, config diff has exactly the writes that the operator does after its start, and the "+
		"conflict; afterwards it has the conflict alone", func(ctx SpecContext) {
		config := configuration(usual)
		before := own.planned(ctx, config)
		Expect(before.Notes).To(BeEmpty())
		Expect(lines(before)).To(Equal([]string{
			"conflict Secret db key", "create ConfigMap db settings", "create RoleBinding db view", "create RoleBinding web view",
			"create Secret web key",
			"update Namespace  db", "update Namespace  org", "update Namespace  shop", "update Namespace  web"}))
		Expect(before.Writes).To(ContainElements(
			preview.Write{Verb: preview.Create, Kind: "Secret", Namespace: "web", Name: "key", Tenant: "org", Source: "org",
				Reason: "it is not there yet"},
			And(HaveField("Name", "web"), HaveField("Kind", "Namespace"), HaveField("Reason", ContainSubstring("label team=neco")))))
		Expect(own.done(ctx, controlplane.Admin, "config", "diff", config, "-o", "wide")).To(And(
			MatchRegexp(`(?m)^create +Secret +web +key +org +it is not there yet$`),
			HaveSuffix("4 to create, 4 to update, 0 to delete; 1 can't be written, because an unrelated object has the name.\n")))

		since := own.Mark(ctx)
		_, err := own.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() []string { return lines(own.planned(ctx, config)) }).WithContext(ctx).Should(Equal([]string{"conflict Secret db key"}))
		requests, err := own.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(planLike(requests)).
			To(ConsistOf(slices.DeleteFunc(lines(before), func(line string) bool { return strings.HasPrefix(line, "conflict ") })))
	})

	It("PROP-M3 config diff of another file has creates and deletes, counts by kind and tenant, and a note about an unserved kind, in "+
		"each format; nothing is written; alice is refused", func(ctx SpecContext) {
		file := configuration("inheritance: {labels: [team, env]}\npropagation:\n  kinds: [{kind: Secret, mode: Remove}, {kind: ConfigMap, " +
			"mode: All}, {group: example.com, kind: Nosuch}]\n")
		own.Create(ctx, build.ConfigMap("org", "plain", "x"))
		own.label(ctx, "org", "env=test")
		Eventually(func() []string { return lines(own.planned(ctx, configuration(usual))) }).WithContext(ctx).
			Should(Equal([]string{"conflict Secret db key"}))
		since := own.Mark(ctx)
		plan := own.planned(ctx, file)
		Expect(lines(plan)).To(Equal([]string{
			"create ConfigMap db plain", "create ConfigMap web plain", "delete Secret web key", "update Namespace  db", "update Namespace  web"}))
		Expect(plan.Writes).To(ContainElement(HaveField("Reason", "propagation.kinds has Secret in mode Remove")))
		Expect(plan.Notes).To(Equal([]string{"Nosuch.example.com: the API server doesn't serve this kind"}))
		Expect(own.done(ctx, controlplane.Admin, "config", "diff", file)).To(MatchRegexp(`^KIND +TENANT +CREATE +UPDATE +DELETE +CONFLICT +HELD
ConfigMap +org +2 +0 +0 +0 +0
Namespace +org +0 +2 +0 +0 +0
Secret +org +0 +0 +1 +0 +0
2 to create, 2 to update, 1 to delete\.
Not in this plan: Nosuch\.example\.com: the API server doesn't serve this kind\.
$`))
		Expect(own.done(ctx, controlplane.Admin, "config", "diff", file, "-o", "wide")).
			To(MatchRegexp(`(?m)^delete +Secret +web +key +org +propagation.kinds has Secret in mode Remove$`))
		var document struct {
			Kind   string
			Counts []preview.Count
			Writes []preview.Write
		}
		Expect(json.Unmarshal([]byte(own.done(ctx, controlplane.Admin, "config", "diff", file, "-o", "json")), &document)).To(Succeed())
		Expect(document.Kind).To(Equal("ConfigurationDiff"))
		Expect(document.Counts).To(ContainElement(preview.Count{Kind: "Secret", Tenant: "org", Deletes: 1}))
		Expect(document.Writes).To(Equal(plan.Writes))
		Expect(own.fails(ctx, "alice", "config", "diff", file)).To(HavePrefix("you may not read what the operator reads; ask a cluster admin: "))

		requests, err := own.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(planLike(requests)).To(BeEmpty())
	})

	It("SUB-X15 kubectl apply -k config/samples, kubectl wait for the LNamespace and kubectl apply -k config/samples/tree each succeed at "+
		"the first try", func(ctx SpecContext) {
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		for _, words := range []string{
			"apply -k " + filepath.Join(root, "config", "samples"), "wait --for=condition=Ready lns/payments --timeout=60s",
			"apply -k " + filepath.Join(root, "config", "samples", "tree"),
		} {
			out, said, code := own.Kubectl(ctx, controlplane.Admin, strings.Fields(words)...)
			Expect(code).To(BeZero(), words+": "+out+said)
		}
		Eventually(own.ns("pay-ledger")).WithContext(ctx).Should(standing("payments", "1"))
	})

	It("PROP-O5 config/samples/guardrails gives root and sub-namespace label enforce and three rails; bob with sudo cannot delete a rail "+
		"(\"change the source instead\") or read the template", func(ctx SpecContext) {
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		out, said, code := own.Kubectl(ctx, controlplane.Admin, "apply", "-k", filepath.Join(root, "config", "samples", "guardrails"))
		Expect(code).To(BeZero(), out+said)
		Eventually(own.ns("bounded")).WithContext(ctx).
			Should(And(standing("bounded", "0"), carry("pod-security.kubernetes.io/enforce", "baseline")))
		own.grow(ctx, "bounded/bounded-web")
		Eventually(own.ns("bounded-web")).WithContext(ctx).Should(carry("pod-security.kubernetes.io/enforce", "baseline"))
		rails := []string{"resourcequota/warren-rail-quota", "limitrange/warren-rail-limits", "networkpolicy/warren-rail-default-deny"}
		sudo := []string{"--as", "bob", "--as-group", "bounded-sudoers"}
		for _, namespace := range []string{"bounded", "bounded-web"} {
			for _, rail := range rails {
				Eventually(func() string {
					out, _, _ := own.Kubectl(ctx, controlplane.Admin, "get", rail, "-n", namespace, "-o", "name")
					return out
				}).WithContext(ctx).Should(ContainSubstring(strings.Split(rail, "/")[1]))
				Eventually(func() string {
					_, said, _ := own.Kubectl(ctx, "bob", append([]string{"delete", rail, "-n", namespace}, sudo...)...)
					return said
				}).WithContext(ctx).Should(ContainSubstring("change the source instead"), "once the sudo of bob has reached %s", namespace)
			}
		}
		_, said, code = own.Kubectl(ctx, "bob", append([]string{"get", "resourcequota", "-n", "guardrails"}, sudo...)...)
		Expect(code).To(Equal(1))
		Expect(said).To(ContainSubstring("forbidden"))
	})
})
