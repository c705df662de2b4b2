package report_test

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// warren runs the plugin as a user, and expects that it ends well.
func warren(ctx context.Context, user, line string) string {
	GinkgoHelper()
	out, problems, code := world.Kubectl(ctx, user, append([]string{"warren"}, strings.Fields(line)...)...)
	Expect(code).To(BeZero(), "%s: %s%s", line, out, problems)
	return out
}

// row matches a line of a report that begins with these cells.
func row(cells ...string) string {
	quoted := make([]string, 0, len(cells))
	for _, cell := range cells {
		quoted = append(quoted, literal.Replace(cell))
	}
	return `(?m)^` + strings.Join(quoted, ` {3,}`) + `( {3,}|$)`
}

var literal = strings.NewReplacer("(", `\(`, ")", `\)`, ".", `\.`)

var _ = Describe("kubectl warren access", func() {
	It("ACC-E01 access shows a cluster admin all subjects; a user sees those that he may see, and lines that begin "+
		"incomplete", func(ctx SpecContext) {
		out := warren(ctx, controlplane.Admin, "access payments -o wide")
		const both = "cluster-admin, warren:edit:payments"
		for _, line := range []string{
			row("KIND", "NAME", "LISTS", "WITHOUT-SUDO", "WITH-SUDO", "NAMESPACES", "VIA"),
			row("User", "alice", "users", "admin", "<none>", "all", "RoleBinding warren:users (ClusterRole admin)"),
			row("Group", "pay-devs", "users", "admin", "<none>", "all", "RoleBinding warren:users (ClusterRole admin)"),
			row("User", "mia", "managers", "warren:edit:payments", "<none>", "<none>"),
			row("User", "bob", "sudoers", "<none>", both, "all"),
			row("Group", "pay-oncall", "sudoers", "scalers", both, "all"), // scalers is bound to it in the whole cluster
			row("ServiceAccount", "ci/deployer", "sudoers", "<none>", both, "all"),
			row("User", "erin", "<none>", "edit", "<none>", "pay-web", "RoleBinding erin (ClusterRole edit)"),
			row("User", "eve", "<none>", "scalers", "<none>", "all", "ClusterRoleBinding scalers (ClusterRole scalers)"),
			row("User", "mallory", "<none>", "<none>", both, "all", "ServiceAccount ci/deployer: RoleBinding minters (ClusterRole minters)"),
			row("Group", "system:masters", "<none>", "cluster-admin"),
		} {
			Expect(out).To(MatchRegexp(line))
		}
		for _, stranger := range []string{"dave", "sue", "shop"} {
			Expect(out).NotTo(ContainSubstring(stranger))
		}
		Expect(out).NotTo(ContainSubstring("incomplete"))
		Expect(out).To(MatchRegexp(`(?m)^left out: \d+ parts of Kubernetes itself; --system shows them$`))
		Expect(out).NotTo(ContainSubstring("kube-system/"))
		Expect(warren(ctx, controlplane.Admin, "access payments --system")).To(ContainSubstring("kube-system/namespace-controller"))

		out = warren(ctx, "alice", "access payments -o wide")
		for _, line := range []string{
			row("User", "alice", "users", "admin", "<none>", "all"), row("Group", "pay-devs", "users", "admin"),
			row("Group", "payments-sudoers", "<none>", "<none>", "cluster-admin", "all"), row("User", "erin", "<none>", "edit", "<none>", "pay-web"),
		} {
			Expect(out).To(MatchRegexp(line))
		}
		Expect(out).To(HaveSuffix("\nincomplete: can't get lnamespaces/payments\n" +
			"incomplete: can't list clusterrolebindings\nincomplete: can't list clusterroles\n"))
	})

	It("ACC-E10 access shows each subject in a block of lines that fit into 80 columns, and with -o wide in one line", func(ctx SpecContext) {
		out := warren(ctx, controlplane.Admin, "access payments")
		Expect(out).To(ContainSubstring("\nUser bob\n  lists         sudoers\n  with sudo     cluster-admin, warren:edit:payments\n" +
			"  namespaces    all\n  via           Group payments-sudoers: RoleBinding warren:sudoers (ClusterRole\n" +
			"                cluster-admin)\n                Group payments-sudoers: ClusterRoleBinding warren:edit:payments\n"))
		for line := range strings.Lines(out) {
			Expect(len(line)).To(BeNumerically("<=", 81), line)
		}
	})

	It("ACC-E04 access shows a manager the lists, and unknown in other columns; a stranger sees lines that begin incomplete, "+
		"alone", func(ctx SpecContext) {
		out := warren(ctx, "mia", "access payments -o wide")
		for _, listed := range [][]string{{"User", "alice", "users"}, {"User", "mia", "managers"}, {"Group", "pay-oncall", "sudoers"}} {
			Expect(out).To(MatchRegexp(row(append(listed, "unknown", "unknown", "unknown", "unknown")...)))
		}
		Expect(out).To(ContainSubstring("\nincomplete: can't list subnamespaces in payments\n"))
		Expect(warren(ctx, "carol", "access payments -o wide")).To(Equal("incomplete: can't get lnamespaces/payments\n" +
			"incomplete: can't list clusterrolebindings\nincomplete: can't list subnamespaces in payments\n"))
	})
})

var _ = Describe("kubectl warren who-can", func() {
	It("ACC-E02 who-can lists users and erin, whom a user bound, without sudo, and sudoers with it, each with VIA", func(ctx SpecContext) {
		out := warren(ctx, controlplane.Admin, "who-can delete secrets -n pay-web")
		for _, line := range []string{
			row("SUBJECT", "SUDO", "VIA"),
			row("User alice", "no", "RoleBinding pay-web/warren:users (ClusterRole admin)"),
			row("Group pay-devs", "no", "RoleBinding pay-web/warren:users (ClusterRole admin)"),
			row("User erin", "no", "RoleBinding pay-web/erin (ClusterRole edit)"),
			row("User bob", "yes", "Group payments-sudoers: RoleBinding pay-web/warren:sudoers (ClusterRole cluster-admin)"),
			row("Group pay-oncall", "yes", "Group payments-sudoers: RoleBinding pay-web/warren:sudoers (ClusterRole cluster-admin)"),
			row("ServiceAccount ci/deployer", "yes", "Group payments-sudoers: RoleBinding pay-web/warren:sudoers (ClusterRole cluster-admin)"),
		} {
			Expect(out).To(MatchRegexp(line))
		}
		for _, stranger := range []string{"carol", "dave", "mia", "eve"} {
			Expect(out).NotTo(ContainSubstring(stranger))
		}
		Expect(out).NotTo(ContainSubstring("incomplete"))
	})

	It("ACC-E03 who-can delete leaves out and counts parts of Kubernetes, unless --system is given; it and why note that admission is "+
		"not asked; who-can get does not", func(ctx SpecContext) {
		out := warren(ctx, controlplane.Admin, "who-can delete namespaces/pay-web")
		Expect(out).To(And(ContainSubstring("Group system:masters"),
			MatchRegexp(`\nleft out: \d+ parts of Kubernetes itself; --system shows them\n`),
			ContainSubstring("\nnote: this answer covers RBAC alone; admission policies and webhooks, also Warren's, may still refuse the request"),
			Not(ContainSubstring("namespace-controller"))))
		Expect(warren(ctx, controlplane.Admin, "who-can delete namespaces/pay-web --system")).To(And(
			ContainSubstring("ServiceAccount kube-system/namespace-controller"), Not(ContainSubstring("left out:"))))
		Expect(warren(ctx, controlplane.Admin, "who-can get namespaces/pay-web")).NotTo(ContainSubstring("note:"))
		Expect(warren(ctx, controlplane.Admin, "why bob delete namespaces/pay-web")).To(ContainSubstring("\nnote: this answer covers RBAC alone"))
	})

	It("asks the authorizer of the namespace for a user who may not read the roles", func(ctx SpecContext) {
		out := warren(ctx, "alice", "who-can delete secrets -n pay-web")
		for _, line := range []string{
			row("User alice", "no"), row("Group pay-devs", "no"), row("User erin", "no"), row("Group payments-sudoers", "yes"),
		} {
			Expect(out).To(MatchRegexp(line))
		}
		Expect(out).NotTo(ContainSubstring("carol")) // bound there, by a role that grants less
		Expect(out).To(ContainSubstring("\nincomplete: can't list clusterrolebindings\n"))
	})
})

var _ = Describe("kubectl warren why", func() {
	It("tells the answer without sudo and with it", func(ctx SpecContext) {
		Expect(warren(ctx, controlplane.Admin, "why bob delete secrets -n pay-web")).To(And(
			HavePrefix("bob: delete secrets in pay-web\n"), MatchRegexp(row("no", "no", "<none>")), MatchRegexp(row("yes", "yes",
				"Group payments-sudoers: RoleBinding pay-web/warren:sudoers (ClusterRole cluster-admin), "+
					"ClusterRoleBinding warren:self:bob (ClusterRole warren:self:bob), ClusterRoleBinding warren:sudo:payments (ClusterRole "+
					"warren:sudo:payments)"))))
		Expect(warren(ctx, controlplane.Admin, "why otto get pods -n pay-web")).
			To(MatchRegexp(row("yes", "no", "otto has no sudo for this request")))
		Expect(warren(ctx, controlplane.Admin, "why otto get pods -n pay-web --group pay-oncall")).To(MatchRegexp(row("yes", "yes")))
		// With sudo, otto acts as another user, and is no longer in the group.
		Expect(warren(ctx, controlplane.Admin, "why otto get nodes --group pay-oncall")).To(And(
			MatchRegexp(row("no", "yes", "ClusterRoleBinding scalers (ClusterRole scalers)")),
			MatchRegexp(row("yes", "no", "not allowed with sudo of payments"))))
		Expect(warren(ctx, controlplane.Admin, "why bob get nodes")).To(
			MatchRegexp(row("yes", "no", "not allowed with sudo of payments or shop")))
	})

	It("tells oneself what one may ask, and a sudoer all", func(ctx SpecContext) {
		Expect(warren(ctx, "alice", "why alice get pods -n pay-web")).
			To(MatchRegexp(row("no", "yes", `RBAC: allowed by RoleBinding "warren:users/pay-web" of ClusterRole "admin" to User "alice"`)))
		Expect(warren(ctx, "mia", "why mia update lns/payments")).To(MatchRegexp(row("no", "yes")))
		Expect(warren(ctx, "bob", "why alice get pods -n pay-web")).To(MatchRegexp(row("no", "unknown")))
	})

	It("ACC-E09 of bob, who asks about himself and may not read the bindings, why answers unknown with sudo, and names the command that "+
		"knows: kubectl sudo warren why", func(ctx SpecContext) {
		Expect(warren(ctx, "bob", "why bob get pods -n pay-web")).To(And(MatchRegexp(row("no", "no")),
			MatchRegexp(row("yes", "unknown", "it depends on sudo of payments, shop, which you may use: kubectl sudo warren why has the answer")),
			ContainSubstring("\nincomplete: can't create subjectaccessreviews\n")))
		Expect(warren(ctx, "bob", "why bob get pods -n pay-web --as bob --as-group payments-sudoers")).
			To(And(MatchRegexp(row("no", "no")), MatchRegexp(row("yes", "yes"))))
	})
})

var _ = Describe("the commands of reports", func() {
	It("refuse what isn't there in one sentence", func(ctx SpecContext) {
		for line, message := range map[string]string{
			"access nosuch": `there is no tenant "nosuch": kubectl get lns lists the tenants`,
			"access a b":    "name one tenant, not 2: kubectl warren access TENANT",
			"access A": `invalid tenant name "A": must be at most 63 lower-case letters, digits and hyphens, with no ` +
				`hyphen at either end`,
			"who-can get nosuch":                 `the API server has no resource "nosuch": kubectl api-resources lists all resources`,
			"who-can get pods -n nosuch":         `there is no namespace "nosuch"`,
			"who-can get":                        "name a verb and a resource: kubectl warren who-can VERB RESOURCE[/NAME]",
			"who-can get pods/ -n shop":          "name a verb and a RESOURCE or RESOURCE/NAME, such as: delete secrets/db",
			"why bob get":                        "name a user, a verb and a resource: kubectl warren why USER VERB RESOURCE[/NAME]",
			"why bob get nosuch.apps":            `the API server has no resource "nosuch.apps": kubectl api-resources lists all resources`,
			"access payments -n shop":            "--namespace is not used by this command: leave it out",
			"who-can get pods -n shop -o nosuch": `invalid argument "nosuch" for "-o, --output" flag: must be json or yaml`,
		} {
			out, problems, code := world.Kubectl(ctx, controlplane.Admin, append([]string{"warren"}, strings.Fields(line)...)...)
			Expect(code).To(Equal(1), line)
			Expect(out).To(BeEmpty(), line)
			Expect(problems).To(Equal("error: "+message+"\n"), line)
		}
		_, problems, code := world.Kubectl(ctx, controlplane.Admin, "warren", "who-can", "get", "nodes", "-n", "shop")
		Expect(code).To(BeZero())
		Expect(problems).To(Equal("Warning: nodes are not namespaced: --namespace is not used\n"))
	})

	It("know resources as kubectl does", func(ctx SpecContext) {
		for name, whole := range map[string]string{
			"po": "pods", "deploy": "deployments.apps", "lns/payments": "lnamespaces.tenancy.warren.dev/payments", "secret/db": "secrets/db",
			"deployments.v1.apps": "deployments.apps", "groups": "groups", "ns/payments": "namespaces/payments", "*": "*.*",
		} {
			Expect(warren(ctx, controlplane.Admin, "why carol get "+name+" -n payments")).To(HavePrefix("carol: get " + whole))
		}
	})

	It("answer as JSON and as YAML", func(ctx SpecContext) {
		for kind, line := range map[string]string{
			"TenantAccess": "access payments", "WhoCan": "who-can delete secrets -n pay-web", "Why": "why bob delete secrets -n pay-web",
		} {
			var fromJSON, fromYAML map[string]any
			Expect(json.Unmarshal([]byte(warren(ctx, controlplane.Admin, line+" -o json")), &fromJSON)).To(Succeed())
			Expect(yaml.Unmarshal([]byte(warren(ctx, controlplane.Admin, line+" -o yaml")), &fromYAML)).To(Succeed())
			Expect(fromJSON).To(Equal(fromYAML))
			Expect(fromJSON).To(And(HaveKeyWithValue("kind", kind), HaveKeyWithValue("apiVersion", "cli.tenancy.warren.dev/v1alpha1")))
		}
	})

	It("are completed by the shell", func(ctx SpecContext) {
		Expect(warren(ctx, controlplane.Admin, "__complete access pay")).To(HavePrefix("payments\n:4"))
		Expect(warren(ctx, controlplane.Admin, "__complete who-can delete lnam")).To(HavePrefix("lnamespaces.tenancy.warren.dev\n:4"))
		Expect(warren(ctx, controlplane.Admin, "__complete why bob dele")).To(ContainSubstring("delete\n"))
	})
})
