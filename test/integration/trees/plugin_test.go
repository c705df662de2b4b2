package trees_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// warren runs the plugin as a user.
func (c cluster) warren(ctx context.Context, user string, args ...string) (stdout, stderr string, code int) {
	return c.Kubectl(ctx, user, append([]string{"warren"}, args...)...)
}

var _ = Describe("kubectl warren shows trees", func() {
	It("SUB-X3 kubectl warren tree payments shows a user without rights in the cluster the whole tree; without a root it is an "+
		"error: your rights name no tenant: name a root", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("x3-payments"),
			build.Source(build.RoleBinding("x3-payments", "alice", "admin", build.RBACUser("alice")), v1alpha1.ModeUpdate))
		shared.grow(ctx, "x3-payments/x3-web", "x3-web/x3-db", "x3-payments/x3-ops")
		const tree = `x3-payments
├── [s] x3-ops
└── [s] x3-web
    └── [s] x3-db

[s] bound: deleting its SubNamespace deletes the namespace
`
		Eventually(func() string {
			out, problems, _ := shared.warren(ctx, "alice", "tree", "x3-payments")
			return out + problems
		}).WithContext(ctx).Should(Equal(tree), "once her RoleBindings are in the tree")
		out, problems, code := shared.warren(ctx, "alice", "tree")
		Expect(code).To(Equal(1))
		Expect(out).To(BeEmpty())
		Expect(problems).To(HavePrefix("error: you may not list namespaces, and your rights name no tenant, " +
			"as those of a user never do: name a root, or "))
	})

	It("SUB-X1 kubectl warren create honours each flag behind "+
		"it: --context, --as, --as-group, -s, --token, --kubeconfig, --request-timeout", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("x1-payments"), build.ClusterRole("x1-maker", build.Rule(v1alpha1.Domain, "subnamespaces", "create")),
			build.ClusterRoleBinding("x1-maker", "x1-maker", build.RBACUser("x1-carl")))
		config := shared.Config(controlplane.Admin)
		create := func(flags ...string) (string, string, int) {
			return shared.warren(ctx, "alice", append([]string{"create", "x1-web", "-n", "x1-payments", "--dry-run=server"}, flags...)...)
		}
		for _, flags := range [][]string{
			{"--kubeconfig", shared.Kubeconfig(controlplane.Admin)},
			{"--token", config.BearerToken},
			{"--kubeconfig", shared.Kubeconfig(controlplane.Admin), "--context", "warren"},
			{"--kubeconfig", shared.Kubeconfig(controlplane.Admin), "--as", "x1-carl"},
			{"--kubeconfig", shared.Kubeconfig(controlplane.Admin), "--as", "x1-nobody", "--as-group", "system:masters"},
			{"--kubeconfig", shared.Kubeconfig(controlplane.Admin), "-s", config.Host, "--request-timeout", "1m"},
		} {
			Eventually(func(g Gomega) {
				out, problems, code := create(flags...)
				g.Expect(code).To(BeZero(), problems)
				g.Expect(out).To(Equal("subnamespace.tenancy.warren.dev/x1-web created (server dry run)\n"))
			}).WithContext(ctx).Should(Succeed(), "%v", flags)
		}
		for part, flags := range map[string][]string{
			"nosuch":                   {"--context", "nosuch"},
			"https://127.0.0.1:1":      {"-s", "https://127.0.0.1:1"},
			"you may not impersonate":  {"--as", "bob"},
			"try a longer":             {"--kubeconfig", shared.Kubeconfig(controlplane.Admin), "--request-timeout", "1ns"},
			"401 Unauthorized":         {"--token", "wrong"},
			"x1-nosuch does not exist": {"-n", "x1-nosuch"},
		} {
			out, problems, code := create(flags...)
			Expect(code).To(Equal(1), "%v: %s", flags, problems)
			Expect(out).To(BeEmpty())
			Expect(problems).To(And(HavePrefix("error: "), ContainSubstring(part)), "%v", flags)
		}
	})
})

var _ = Describe("kubectl warren set", func() {
	It("says where a namespace is to stand, and what its deletion may take along", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("set-org"), build.Namespace("set-solo"))
		set := func(args ...string) string {
			GinkgoHelper()
			out, problems, code := shared.warren(ctx, controlplane.Admin, append([]string{"set", "set-solo"}, args...)...)
			Expect(code).To(BeZero(), problems)
			return out
		}
		const hier = "hierarchyconfiguration.tenancy.warren.dev/hierarchy "
		Expect(set("--parent", "set-org", "--dry-run=client")).To(Equal(hier + "created (dry run)\n"))
		Expect(set("--parent", "set-org", "--dry-run=server")).To(Equal(hier + "created (server dry run)\n"))
		shared.Absent(ctx, build.Hierarchy("set-solo"))
		Expect(set("-p", "set-org")).To(Equal(hier + "created\n"))
		Eventually(shared.hier("set-solo")).WithContext(ctx).Should(And(applied(), shown("set-org", 1)))
		Expect(set("-p", "set-org")).To(Equal(hier + "unchanged\n"))
		Expect(set("--allow-cascading-deletion", "-o", "name")).To(Equal("hierarchyconfiguration.tenancy.warren.dev/hierarchy\n"))
		Eventually(shared.ns("set-solo")).WithContext(ctx).
			Should(And(standing("set-org", "1"), noted(v1alpha1.AnnotationCascading, v1alpha1.True)))
		out := set("--root", "--forbid-cascading-deletion", "-o", "json")
		read := &v1alpha1.HierarchyConfiguration{}
		Expect(json.Unmarshal([]byte(out), read)).To(Succeed())
		Expect(read.Spec).To(Equal(v1alpha1.HierarchyConfigurationSpec{Parent: new(string)}))
		Eventually(shared.ns("set-solo")).WithContext(ctx).Should(And(carry(v1alpha1.LabelType, v1alpha1.TypeRoot),
			unnoted(v1alpha1.AnnotationCascading)))
		_, problems, code := shared.warren(ctx, controlplane.Admin, "set", "set-nosuch", "--root")
		Expect(code).To(Equal(1))
		Expect(problems).To(Equal("error: namespaces \"set-nosuch\" not found\n"))
	})
})

var _ = Describe("kubectl warren shows a cluster of 1,000 namespaces", Ordered, ContinueOnFailure, func() {
	var own cluster

	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{WithoutOperator: true, ControlPlane: controlplane.Options{WithoutControllers: true}})
		Expect(own.RecordConfig(ctx)).To(Succeed())
		own.Create(ctx,
			build.Root("org"), build.Root("payments", v1alpha1.LabelTemplate, "base"), build.Root("shop"),
			build.Child("pay-web", "payments", v1alpha1.LabelBound, "true"), build.Child("pay-db", "pay-web", v1alpha1.LabelBound, "true"),
			build.Child("legacy", "payments"),
			build.Template("base"), build.Template("ci", v1alpha1.LabelTemplate, "base"), build.Namespace("solo", v1alpha1.LabelTemplate, "ci"),
			build.Child("lost", "gone"), build.Child("lost-2", "lost"),
			build.Child("a", "b"), build.Child("b", "c"), build.Child("c", "a"), build.Namespace("plain"), build.Namespace("x8-plain"))
		const many = 1000
		atOnce(8, func(i int) {
			for j := i; j < many; j += 8 {
				own.Create(ctx, build.Child(fmt.Sprintf("z-%d", j), "org"))
			}
		})
		own.Create(ctx, build.ClusterRoleBinding("carol", "view", build.RBACUser("carol")),
			build.ClusterRole("namespaces", build.Rule("", "namespaces", "list")), build.ClusterRoleBinding("namespaces", "namespaces",
				build.RBACUser("carol")))
	})

	It("SUB-X2 kubectl warren tree shows roots, templates, a namespace with a missing parent and a cycle as in 2.10, with status 0; tree "+
		"nosuch has status 1", func(ctx SpecContext) {
		out, problems, code := own.warren(ctx, controlplane.Admin, "tree")
		Expect(code).To(BeZero(), problems)
		var lines []string
		for line := range strings.Lines(out) {
			if !strings.Contains(line, " z-") {
				lines = append(lines, line)
			}
		}
		Expect(strings.Join(lines, "")).To(Equal(shapes))
		Expect(strings.Count(out, " z-")).To(Equal(1000))
		out, problems, code = own.warren(ctx, controlplane.Admin, "tree", "nosuch")
		Expect(code).To(Equal(1))
		Expect(out).To(BeEmpty())
		Expect(problems).To(And(HavePrefix("error: "), ContainSubstring("nosuch")))
	})

	It("SUB-X4 kubectl warren tree with 1,000 namespaces makes at most 8 requests", func(ctx SpecContext) {
		since := own.Mark(ctx)
		out, problems, code := own.warren(ctx, "carol", "tree")
		Expect(code).To(BeZero(), problems)
		Expect(out).To(ContainSubstring("z-999"))
		requests, err := own.Requests(ctx, since)
		Expect(err).NotTo(HaveOccurred())
		asked := 0
		for _, r := range requests {
			if r.User == "carol" {
				asked++
			}
		}
		Expect(asked).To(And(BeNumerically(">", 0), BeNumerically("<=", 8)))
	})

	It("SUB-X8 with -o json, each command that prints has valid JSON; in an error case its stdout is empty", func(ctx SpecContext) {
		for _, args := range [][]string{
			{"tree"}, {"get", "cm", "--tenant", "payments"}, {"ns"}, {"ns", "--tenant", "payments"},
			{"tree", "payments", "base"}, {"version"},
			{"create-lns", "x8", "--dry-run=client"}, {"create-lns", "x8", "--dry-run=server"}, {"create-lns", "x8"},
			{"create", "x8-a", "-n", "org"}, {"create", "x8-b", "-n", "org"}, {"create", "x8-c", "-n", "org", "--dry-run=client"},
			{"delete", "x8-b", "-n", "org"},
			{"move", "pay-db", "org"}, {"cut", "legacy"}, {"graft", "legacy", "org"},
			{"describe", "pay-web"}, {"describe", "plain"}, {"set-type", "plain", "root"}, {"template", "list"},
			{"template", "list", "base"},
			{"template", "set", "plain", "base"}, {"template", "unset", "plain"}, {"config", "view"},
			{"trace", "secret/x", "-n", "pay-web"}, {"who-can", "get", "pods", "-n", "org"}, {"why", "carol", "get", "pods", "-n", "org"},
			{"set", "solo", "-a"}, {"protect", "x8-plain", "--off"}, {"protect", "x8-plain"},
		} {
			out, problems, code := own.warren(ctx, controlplane.Admin, append(args, "-o", "json")...)
			Expect(code).To(BeZero(), "%v: %s", args, problems)
			Expect(json.Valid([]byte(out))).To(BeTrue(), "%v: %s", args, out)
		}
		for _, args := range [][]string{
			{"get", "nosuch"}, {"get", "cm", "--tenant", "nosuch"}, {"ns", "--tenant", "nosuch"}, {"ns", "list"},
			{"tree", "nosuch"}, {"version", "nosuch"}, {"create-lns", "kube-x"}, {"create-lns"}, {"nosuch"},
			{"create", "x8-a", "-n", "nosuch"}, {"delete", "nosuch"}, {"move", "nosuch", "org"}, {"graft", "nosuch", "org"},
			{"cut", "nosuch"},
			{"describe", "nosuch"}, {"set-type", "nosuch", "root"}, {"template", "list", "nosuch"}, {"template", "set", "nosuch", "base"},
			{"template", "unset", "nosuch"}, {"config", "view", "--operator-namespace", "nosuch"}, {"trace", "secret/x", "-n", "nosuch"},
			{"trace", "nosuch/x", "-n", "pay-web"}, {"trace", "pod/x", "-n", "pay-web"},
		} {
			out, problems, code := own.warren(ctx, controlplane.Admin, append(args, "-o", "json")...)
			Expect(code).To(Equal(1), "%v", args)
			Expect(out).To(BeEmpty(), "%v", args)
			Expect(problems).To(HavePrefix("error: "), "%v", args)
		}
	})
})

// shapes is what list prints, without the thousand namespaces z-….
const shapes = `org
payments
├── legacy
└── [s] pay-web
    └── [s] pay-db
shop
base (template)
└── ci (template)
    └── solo
a (cycle) (1)
└── c (cycle) (1)
    └── b (cycle) (1)
(missing) gone
└── lost (2)
    └── lost-2 (3)

[s] bound: deleting its SubNamespace deletes the namespace
(1) Halted=True (InCycle): a -> b -> c -> a
(2) Halted=True (ParentMissing): parent namespace gone does not exist
(3) Halted=True (AncestorHalted): ancestor lost is halted (ParentMissing); resolve that first
`
