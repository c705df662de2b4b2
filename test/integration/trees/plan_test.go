package trees_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/preview"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("manager plan", Ordered, func() {
	var own cluster
	const usual = `inheritance: {labels: [team, "pod-security.kubernetes.io/*"]}
propagation:
  kinds: [{kind: Secret}, {kind: ConfigMap}, {kind: ResourceQuota}, {kind: LimitRange}, {group: networking.k8s.io, kind: NetworkPolicy}]
`

	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{
			WithoutOperator: true, Operator: devcluster.OperatorOptions{Config: "apiVersion: config.tenancy.warren.dev/v1alpha1\nkind: OperatorConfiguration\n" + usual}})
		own.put(ctx, build.Root("org", "team", "neco"), build.Child("web", "org"), build.Child("db", "web"), build.Root("shop"), build.Namespace("plain"),
			build.Source(build.Secret("org", "key", "x"), v1alpha1.ModeUpdate), build.Source(build.ConfigMap("web", "settings", "x"), v1alpha1.ModeCreate),
			build.Secret("db", "key", "mine"), build.Secret("plain", "key", "x"), build.Secret("shop", "unlabelled", "x"),
			build.Source(build.RoleBinding("org", "view", "view", build.RBACUser("v-vera")), v1alpha1.ModeUpdate))
	})

	It("PROP-M2 says before the operator's start what it writes then, and nothing afterwards", func(ctx SpecContext) {
		config := configuration(usual)
		before := own.planned(ctx, config)
		Expect(before.Notes).To(BeEmpty())
		Expect(lines(before)).To(Equal([]string{
			"conflict Secret db key", "create ConfigMap db settings", "create RoleBinding db view", "create RoleBinding web view", "create Secret web key",
			"update Namespace  db", "update Namespace  org", "update Namespace  shop", "update Namespace  web"}))
		Expect(before.Writes).To(ContainElements(
			preview.Write{Verb: preview.Create, Kind: "Secret", Namespace: "web", Name: "key", Tenant: "org", Source: "org", Reason: "it is not there yet"},
			And(HaveField("Name", "web"), HaveField("Kind", "Namespace"), HaveField("Reason", ContainSubstring("label team=neco")))))
		Expect(own.plan(ctx, config)).To(And(MatchRegexp(`(?m)^create +Secret +web +key +org +it is not there yet$`),
			HaveSuffix("4 to create, 4 to update, 0 to delete; 1 can't be written, because an unrelated object has the name.\n")))

		since := own.mark(ctx)
		_, err := own.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() []string { return lines(own.planned(ctx, config)) }).WithContext(ctx).Should(Equal([]string{"conflict Secret db key"}))
		requests, err := own.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(planLike(requests)).To(ConsistOf(slices.DeleteFunc(lines(before), func(line string) bool { return strings.HasPrefix(line, "conflict ") })))
	})

	It("PROP-M3 says what another configuration would take and give, by kind and tenant, and writes nothing", func(ctx SpecContext) {
		file := configuration("inheritance: {labels: [team, env]}\npropagation:\n  kinds: [{kind: Secret, mode: Remove}, {kind: ConfigMap, mode: All}, {group: example.com, kind: Nosuch}]\n")
		own.put(ctx, build.ConfigMap("org", "plain", "x"))
		own.label(ctx, "org", "env=test")
		Eventually(func() []string { return lines(own.planned(ctx, configuration(usual))) }).WithContext(ctx).Should(Equal([]string{"conflict Secret db key"}))
		since := own.mark(ctx)
		plan := own.planned(ctx, file)
		Expect(lines(plan)).To(Equal([]string{
			"create ConfigMap db plain", "create ConfigMap web plain", "delete Secret web key", "update Namespace  db", "update Namespace  web"}))
		Expect(plan.Writes).To(ContainElement(HaveField("Reason", "the configuration has copies of Secret removed")))
		Expect(plan.Notes).To(Equal([]string{"Nosuch.example.com: the API server doesn't serve this kind"}))
		Expect(own.done(ctx, controlplane.Admin, "config", "diff", file)).To(MatchRegexp(`^KIND +TENANT +CREATE +UPDATE +DELETE +CONFLICT +HELD
ConfigMap +org +2 +0 +0 +0 +0
Namespace +org +0 +2 +0 +0 +0
Secret +org +0 +0 +1 +0 +0
2 to create, 2 to update, 1 to delete\.
Not judged: Nosuch\.example\.com: the API server doesn't serve this kind\.
$`))
		Expect(own.done(ctx, controlplane.Admin, "config", "diff", file, "-o", "wide")).To(MatchRegexp(`(?m)^delete +Secret +web +key +org +the configuration has copies of Secret removed$`))
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

	It("PROP-M4 names every write to Namespaces, RBAC objects of tenants and copies before the operator's start, and nothing else is written", func(ctx SpecContext) {
		config := configuration(usual)
		if own.Operator == nil {
			_, err := own.StartOperator(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		own.put(ctx, build.Tenant("m4-bank").Users("v-ann").Sudoers("v-bob", "v-carl").Object())
		own.grow(ctx, "m4-bank/m4-bank-web")
		settled := Equal([]string{"conflict Secret db key"})
		Eventually(func() []string { return lines(own.planned(ctx, config)) }).WithContext(ctx).Should(settled)
		_, err := own.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())

		edit(ctx, own, build.Tenant("m4-bank").Object(), func(l *v1alpha1.LNamespace) {
			l.Spec.Users, l.Spec.Sudoers = build.Users("v-ann", "v-eve"), build.Users("v-bob")
		})
		shop := build.Tenant("m4-shop").Users("v-ann").Object()
		own.put(ctx, build.SubNamespace("org", "m4-db"), build.Source(build.Secret("m4-bank", "key", "x"), v1alpha1.ModeUpdate),
			build.Tenant("m4-pay").Users("v-ann").Managers("v-max").Sudoers("v-bob").Object(), build.Namespace("m4-shop"), shop)
		own.annotate(ctx, "m4-shop", v1alpha1.AnnotationAdopt+"="+string(shop.UID))

		before := own.planned(ctx, config)
		Expect(before.Notes).To(BeEmpty())
		Expect(lines(before)).To(ContainElements(
			"create Namespace  m4-pay", "update Namespace  m4-shop", "create Namespace  m4-db", "create Secret m4-db key", "create Secret m4-bank-web key",
			"create RoleBinding m4-pay warren:users", "create ClusterRoleBinding  warren:sudo:m4-pay", "create ClusterRole  warren:edit:m4-shop",
			"update ClusterRoleBinding  warren:sudo:m4-bank", "update ClusterRole  warren:self:v-carl", "update ClusterRole  warren:self:v-bob",
			"update RoleBinding m4-bank warren:users", "update RoleBinding m4-bank-web warren:users", "create RoleBinding m4-db view"))
		Expect(before.Writes).To(ContainElements(
			preview.Write{Verb: preview.Update, Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding", Name: "warren:sudo:m4-bank", Tenant: "m4-bank",
				Reason: "it loses User v-carl, whom LNamespace m4-bank doesn't list"},
			preview.Write{Verb: preview.Create, Kind: "Namespace", Name: "m4-db", Tenant: "org", Reason: "SubNamespace org/m4-db asks for it"}))

		since := own.mark(ctx)
		Expect(own.Operator.Start(ctx)).To(Succeed())
		Eventually(func() []string { return lines(own.planned(ctx, config)) }).WithContext(ctx).Should(settled)
		requests, err := own.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(writesOfOperator(requests)).To(ConsistOf(slices.DeleteFunc(lines(before), func(line string) bool { return strings.HasPrefix(line, "conflict ") })))
	})

	It("PROP-M5 follows deletions that are under way, required children and moves that are asked for", func(ctx SpecContext) {
		config := configuration(usual)
		if own.Operator == nil {
			_, err := own.StartOperator(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		own.put(ctx, build.Root("m5-old"), build.Root("m5-new"), build.Child("m5-web", "m5-old"), build.Child("m5-deep", "m5-web"),
			build.Source(build.Secret("m5-old", "old", "x"), v1alpha1.ModeUpdate), build.Source(build.Secret("m5-new", "new", "x"), v1alpha1.ModeUpdate),
			build.Tenant("m5-gone").Users("v-m5-ann").Sudoers("v-m5-bob").Object())
		own.wish(ctx, "m5-old", build.Cascades)
		own.grow(ctx, "m5-old/m5-end", "m5-end/m5-low")
		settled := Equal([]string{"conflict Secret db key"})
		Eventually(func() []string { return lines(own.planned(ctx, config)) }).WithContext(ctx).Should(settled)
		Eventually(own.ns("m5-gone")).WithContext(ctx).Should(standing("m5-gone", "0"))
		_, err := own.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())

		own.wish(ctx, "m5-web", build.Below("m5-new"), build.Requiring("m5-need"))
		own.drop(ctx, build.SubNamespace("m5-old", "m5-end"), build.Tenant("m5-gone").Object())
		before := own.planned(ctx, config)
		Expect(before.Notes).To(BeEmpty())
		Expect(lines(before)).To(ContainElements(
			"update Namespace  m5-web", "update Namespace  m5-deep", "create SubNamespace m5-web m5-need", "create Namespace  m5-need",
			"delete Secret m5-web old", "delete Secret m5-deep old", "create Secret m5-web new", "create Secret m5-deep new", "create Secret m5-need new",
			"update Namespace  m5-end", "delete Namespace  m5-end", "delete Namespace  m5-low",
			"delete Namespace  m5-gone", "delete RoleBinding m5-gone warren:users", "delete ClusterRoleBinding  warren:sudo:m5-gone"))
		Expect(before.Writes).To(ContainElements(
			And(HaveField("Name", "m5-web"), HaveField("Kind", "Namespace"), HaveField("Tenant", "m5-new"),
				HaveField("Reason", HavePrefix("its HierarchyConfiguration asks for parent m5-new: "))),
			preview.Write{Verb: preview.Delete, Kind: "Namespace", Name: "m5-low", Tenant: "m5-old", Reason: "SubNamespace m5-end/m5-low is being deleted"}))

		since := own.mark(ctx)
		Expect(own.Operator.Start(ctx)).To(Succeed())
		Eventually(func() []string { return lines(own.planned(ctx, config)) }).WithContext(ctx).Should(settled)
		for _, object := range []client.Object{build.Namespace("m5-end"), build.Namespace("m5-low"), build.Namespace("m5-gone"), build.Tenant("m5-gone").Object()} {
			Eventually(own.is(object)).WithContext(ctx).Should(gone(), object.GetName())
		}
		requests, err := own.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		Expect(append(writesOfOperator(requests), requiredChildren(requests)...)).To(
			ConsistOf(slices.DeleteFunc(lines(before), func(line string) bool { return strings.HasPrefix(line, "conflict ") })))
	})

	It("SUB-X15 config/samples can be applied as it says", func(ctx SpecContext) {
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

	It("PROP-O5 the guardrails of config/samples reach a tenant, and its sudoers can't take them off", func(ctx SpecContext) {
		root, err := devcluster.Root()
		Expect(err).NotTo(HaveOccurred())
		out, said, code := own.Kubectl(ctx, controlplane.Admin, "apply", "-k", filepath.Join(root, "config", "samples", "guardrails"))
		Expect(code).To(BeZero(), out+said)
		Eventually(own.ns("bounded")).WithContext(ctx).Should(And(standing("bounded", "0"), carry("pod-security.kubernetes.io/enforce", "baseline")))
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
