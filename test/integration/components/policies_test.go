package components_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("component strict-placement, which is part of standard", func() {
	It("SEC-O19 op sets parent, type, or type with template on a namespace without a mark, or with adopt=true: refused; after cl set "+
		"adopt to a UID: allowed; SEC-O19 op sets template alone: refused even with a mark, `only managed namespaces`", func(ctx SpecContext) {
		operator := world.As(controlplane.Operator)
		world.Create(ctx, build.Root("o19-root"))
		const says = "may join a tree only after a cluster administrator has "
		for _, one := range []struct {
			name   string
			labels []string
		}{
			{"o19-parent", []string{v1alpha1.LabelParent, "o19-root"}}, // the first, because only this policy refuses it: then it is in force
			{"o19-type", []string{v1alpha1.LabelType, v1alpha1.TypeRoot}},
			{"o19-both", []string{v1alpha1.LabelType, v1alpha1.TypeRoot, v1alpha1.LabelTemplate, "o19-none"}},
			{"o19-template", []string{v1alpha1.LabelTemplate, "o19-none"}}, // the label alone makes no namespace managed
		} {
			name, labels := one.name, one.labels
			world.Create(ctx, build.Namespace(name))
			place := func(options ...client.PatchOption) error {
				return operator.Patch(ctx, build.Labelled(build.Namespace(name), labels...), client.MergeFrom(build.Namespace(name)), options...)
			}
			mark := func(value string) {
				Expect(world.Admin().Patch(ctx, build.Namespace(name), annotated(v1alpha1.AnnotationAdopt, value))).To(Succeed())
			}
			alone := name == "o19-template"
			unmarked, old := ContainSubstring(says), And(ContainSubstring(says), ContainSubstring("the value true, which names no tree"))
			if slices.Contains(labels, v1alpha1.LabelTemplate) {
				unmarked = ContainSubstring("ValidatingAdmissionPolicy 'warren-") // two policies refuse it, and either may answer
				old = unmarked
			}
			By(name + " without a mark")
			Eventually(place).WithArguments(client.DryRunAll).WithContext(ctx).Should(MatchError(unmarked), "the policies are in force")
			Expect(place()).To(MatchError(unmarked))
			By(name + " with the mark of earlier versions")
			mark("true")
			Expect(place()).To(MatchError(old))
			By(name + " with the mark of a UID")
			mark("0d21e2c4-0000-4000-8000-000000000000")
			if alone {
				Expect(place()).To(MatchError(ContainSubstring("the operator may write only managed namespaces")))
			} else {
				Expect(place()).To(Succeed())
			}
		}
		// The operator may change what is in a tree already, and what it creates itself needs no mark.
		Expect(operator.Patch(ctx, build.Namespace("o19-parent"), annotated(v1alpha1.AnnotationAncestry, "o19-root/o19-parent"))).To(Succeed())
		Expect(operator.Create(ctx, build.Child("o19-child", "o19-root"))).To(Succeed())
		// A cluster admin needs no mark either.
		world.Create(ctx, build.Namespace("o19-other"))
		Expect(world.Admin().Patch(ctx, build.Namespace("o19-other"), labelled(v1alpha1.LabelParent, "o19-root"))).To(Succeed())
	})
})

var _ = Describe("component hierarchy-authority", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		// Labelled as by an operator: tenant payments of alice with pay-web, which is not bound, and tenant victim.
		for _, n := range []struct{ name, parent, ancestry string }{
			{"payments", "", "payments"}, {"pay-web", "payments", "payments/pay-web"}, {"pay-db", "pay-web", "payments/pay-web/pay-db"},
			{"pay-bound", "payments", "payments/pay-bound"}, {"victim", "", "victim"}, {"plain", "-", ""}, {"carols", "", "carols"},
			{"alices", "", "alices"}, {"legacy", "-", ""},
		} {
			namespace := build.Namespace(n.name)
			switch n.parent {
			case "-":
			case "":
				namespace = build.Root(n.name)
			default:
				namespace = build.Child(n.name, n.parent)
			}
			if n.name == "pay-bound" {
				build.Labelled(namespace, v1alpha1.LabelBound, v1alpha1.True)
			}
			if n.ancestry != "" {
				build.Annotated(namespace, v1alpha1.AnnotationAncestry, n.ancestry)
			}
			world.Create(ctx, namespace)
		}
		editor := build.Rule(v1alpha1.Domain, "lnamespaces", "get", "update", "patch")
		editor.ResourceNames = []string{"payments"}
		for _, namespace := range []string{"payments", "pay-web", "pay-db", "pay-bound"} {
			world.Create(ctx, build.RoleBinding(namespace, "alice", "admin", build.RBACUser("alice")),
				build.RoleBinding(namespace, "sudoers", "cluster-admin", build.RBACUser("bob")))
		}
		world.Create(ctx, build.RoleBinding("pay-web", "dave", "admin", build.RBACUser("dave")),
			build.RoleBinding("plain", "carol", "cluster-admin", build.RBACUser("carol")),
			build.RoleBinding("carols", "carol", "cluster-admin", build.RBACUser("carol")),
			build.RoleBinding("alices", "alice", "cluster-admin", build.RBACUser("alice")), build.RoleBinding("alices", "bob", "cluster-admin",
				build.RBACUser("bob")),
			build.RoleBinding("legacy", "alice", "admin", build.RBACUser("alice")),
			// The operator would grant this, so that managers and sudoers can change their tenant.
			build.ClusterRole("edit-payments", editor), build.ClusterRoleBinding("edit-payments", "edit-payments", build.RBACUser("bob")))
		eventuallyRefused(ctx, "proposed parent", func() error { return configure(ctx, "carol", "plain", "victim", client.DryRunAll) })
		for _, c := range [][]string{{"dave", "pay-web", "payments"}, {"alice", "pay-db", "payments"}, {"carol", "plain", "carols"},
			{"bob", "pay-web", "alices"}} {
			Eventually(func() error { return configure(ctx, c[0], c[1], c[2], client.DryRunAll) }).WithContext(ctx).Should(Succeed(),
				"%s's rights are known", c[0])
		}
	})

	DescribeTable("SEC-H1 alice or bob sets the parent of pay-web to victim, or carol that of plain to victim, a missing name or none: "+
		"refused, with the missing right; admin may", func(ctx SpecContext, user, namespace, parent, question string) {
		eventuallyRefused(ctx, fmt.Sprintf(`user %q may not move namespace %q: needs update on %s`, user, namespace, question),
			func() error { return configure(ctx, user, namespace, parent, client.DryRunAll) })
		Expect(configure(ctx, controlplane.Admin, namespace, parent, client.DryRunAll)).To(Succeed())
	},
		Entry("a user moves into another tenant", "alice", "pay-web", "victim",
			`hierarchyconfigurations in namespace "victim" (proposed parent)`),
		Entry("a sudoer does", "bob", "pay-web", "victim", `hierarchyconfigurations in namespace "victim" (proposed parent)`),
		Entry("an owner of a plain namespace does", "carol", "plain", "victim",
			`hierarchyconfigurations in namespace "victim" (proposed parent)`),
		Entry("below what isn't there", "carol", "plain", "nosuch", `hierarchyconfigurations in namespace "nosuch" (proposed parent)`),
		Entry("a root of one's own", "carol", "plain", "", `namespaces cluster-wide (it would become a root)`),
		Entry("a user takes a namespace out of the tree", "alice", "pay-web", "", `namespaces cluster-wide (it would become a root)`),
		Entry("the admin of a child alone moves it", "dave", "pay-web", "pay-web",
			`hierarchyconfigurations in namespace "payments" (root of the current tree)`),
	)

	It("SEC-H2 alice moves pay-web to a root of her own: refused, `needs update on LNamespace \"payments\"`; legacy, where she is only "+
		"admin: refused, `needs every right in namespace \"legacy\"`; SEC-H2 bob, who may update LNamespace payments, moves pay-web there; "+
		"alice moves pay-db up to payments; carol places plain below her own root: all allowed", func(ctx SpecContext) {
		for _, namespace := range []string{"pay-web", "pay-db"} {
			eventuallyRefused(ctx,
				`user "alice" may not move namespace "`+namespace+`": needs update on LNamespace "payments" (it may leave that tenant)`,
				func() error { return configure(ctx, "alice", namespace, "alices", client.DryRunAll) })
		}
		eventuallyRefused(ctx, `user "alice" may not move namespace "legacy": needs every right in namespace "legacy" (it may join another tree)`,
			func() error { return configure(ctx, "alice", "legacy", "alices", client.DryRunAll) })
		Expect(configure(ctx, "bob", "pay-web", "alices", client.DryRunAll)).To(Succeed(), "a sudoer may change the tenant that it leaves")
		Expect(configure(ctx, "alice", "pay-db", "payments", client.DryRunAll)).To(Succeed(), "within her tenant, upwards")
		Expect(configure(ctx, "carol", "plain", "carols", client.DryRunAll)).To(Succeed(), "her own, below her own root")
		Expect(configure(ctx, controlplane.Admin, "legacy", "alices", client.DryRunAll)).To(Succeed())
	})

	It("lets pass what moves nothing, and moves by those who hold both ends", func(ctx SpecContext) {
		Expect(configure(ctx, "dave", "pay-web", "payments", client.DryRunAll)).To(Succeed(), "where it stands already")
		Expect(configure(ctx, "alice", "pay-db", "payments", client.DryRunAll)).To(Succeed(), "within her tree")
		Expect(configure(ctx, "carol", "plain", "carols", client.DryRunAll)).To(Succeed(), "below her own root")
		Expect(world.As(controlplane.Operator).Create(ctx, build.Hierarchy("payments"), client.DryRunAll)).To(Succeed())
		Expect(configure(ctx, "alice", "pay-bound", "pay-web", client.DryRunAll)).
			To(MatchError(ContainSubstring("pay-bound is bound to SubNamespace payments/pay-bound, which owns its place")))
	})

	It("asks when a parent is taken away, and not when something else changes", func(ctx SpecContext) {
		Expect(configure(ctx, controlplane.Admin, "pay-web", "payments")).To(Succeed())
		patch := func(user, text string) error {
			return world.As(user).Patch(ctx, build.Hierarchy("pay-web"), client.RawPatch(types.MergePatchType, []byte(text)))
		}
		Expect(patch("dave", `{"spec":{"allowCascadingDeletion":true}}`)).To(Succeed())
		for _, list := range []string{"propagatedLabels", "propagatedAnnotations", "overriddenLabels", "overriddenAnnotations"} {
			Expect(patch("dave", `{"spec":{"`+list+`":["cost"]}}`)).To(MatchError(ContainSubstring(
				`user "dave" may not add keys that namespace "pay-web" propagates or overrides: needs update on namespaces cluster-wide`)))
			Expect(patch(controlplane.Admin, `{"spec":{"`+list+`":["cost","price"]}}`)).To(Succeed())
			Expect(patch("dave", `{"spec":{"`+list+`":["price"]}}`)).To(Succeed(), "a key less")
		}
		Expect(patch("dave", `{"spec":{"requiredChildren":["c1"]}}`)).To(Succeed(), "an admin may make SubNamespaces")
		Expect(patch(controlplane.Admin, `{"spec":{"requiredChildren":[]}}`)).To(Succeed())
		world.Create(ctx, build.ClusterRole("hierarchy-editor", build.Rule(v1alpha1.Domain, "hierarchyconfigurations", "update", "patch")),
			build.RoleBinding("pay-web", "erin", "hierarchy-editor", build.RBACUser("erin")))
		Eventually(func() error { return patch("erin", `{"spec":{"requiredChildren":["c1"]}}`) }).WithContext(ctx).
			Should(MatchError(ContainSubstring(
				`user "erin" may not require children of namespace "pay-web": needs create on subnamespaces in namespace "pay-web"`)))
		err := patch("alice", `{"spec":{"parent":null}}`)
		Expect(err).To(MatchError(ContainSubstring("needs update on")))
		Expect(strings.Count(err.Error(), "may not move")).To(Equal(1))
		Expect(patch(controlplane.Admin, `{"spec":{"parent":null}}`)).To(Succeed())
	})
})

// configure asks, as a user, for a parent of namespace.
func configure(ctx context.Context, user, namespace, parent string, options ...client.CreateOption) error {
	return world.As(user).Create(ctx, build.Hierarchy(namespace, build.Below(parent)), options...)
}

func labelled(key, value string) client.Patch  { return metadata("labels", key, value) }
func annotated(key, value string) client.Patch { return metadata("annotations", key, value) }

func metadata(field, key, value string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{%q:{%q:%q}}}`, field, key, value))
}
