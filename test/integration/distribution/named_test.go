package distribution_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

func treesOf(names ...string) []v1alpha1.NamespaceName {
	var all []v1alpha1.NamespaceName
	for _, name := range names {
		all = append(all, v1alpha1.NamespaceName(name))
	}
	return all
}

// removeNamespace deletes a namespace and waits until it is gone.
func (f *field) removeNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(f.Admin().Delete(ctx, build.Namespace(name))).To(Succeed())
	Eventually(ctx, f.gone).WithArguments(build.Namespace(name)).Should(BeTrue())
}

// subNamespace has the operator make a namespace below parent, and waits for it.
func (f *field) subNamespace(ctx context.Context, parent, name string) {
	GinkgoHelper()
	Eventually(ctx, func() error { // the parent's namespace may not be there yet
		return client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.SubNamespace(parent, name)))
	}).Should(Succeed())
	Eventually(ctx, func() error { return f.Admin().Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}) }).Should(Succeed())
}

// lnamespace has the operator make a namespace for an LNamespace, and waits for it.
func (f *field) lnamespace(ctx context.Context, lns client.Object) {
	GinkgoHelper()
	Expect(f.Admin().Create(ctx, lns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, lns) })
	Eventually(ctx, func() error { return f.Admin().Get(ctx, client.ObjectKeyFromObject(lns), &corev1.Namespace{}) }).Should(Succeed())
}

// distributor gives a user all rights to ResourceDistributions, or to a subresource of them.
func (f *field) distributor(ctx context.Context, user, resource string) {
	GinkgoHelper()
	for _, o := range []client.Object{
		build.ClusterRole(f.id, build.Rule(v1alpha1.Domain, resource, "*")),
		build.ClusterRoleBinding(f.id, f.id, build.RBACUser(user)),
	} {
		Expect(f.Admin().Create(ctx, o)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, o) })
	}
}

// staysWithout expects that a namespace gets no copy for a while.
func (f *field) staysWithout(ctx context.Context, namespace string) {
	GinkgoHelper()
	Consistently(ctx, f.data).WithArguments(namespace).WithTimeout(test.Quiet(soon)).Should(BeEmpty(), f.explain)
}

var _ = Describe("a name in the targets", func() {
	var f *field
	BeforeEach(func(ctx SpecContext) { f = plough(ctx, world) })
	included := func(names ...string) change {
		return targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)})
	}

	It("DIST-D92 a later d2 gets nothing: Ready False/NamespaceReplaced, Stalled, replaced [d2], an Event; d1 gets new data; "+
		"removed from included and added again, d2 gets its copy", func(ctx SpecContext) {
		f.create(ctx, included(f.d1, f.d2))
		f.becomes(ctx, "True/Distributed")
		f.removeNamespace(ctx, f.d2)
		f.becomes(ctx, "False/NamespaceNotFound")
		f.namespace(ctx, f.d2)
		rd := f.becomes(ctx, "False/NamespaceReplaced")
		Expect(rd.Status.Replaced).To(Equal([]string{f.d2}))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).To(And(
			ContainSubstring("another namespace has taken the name since: "+f.d2),
			ContainSubstring("take their names out of spec.targets and put them in again")))
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("NamespaceReplaced"))
		Eventually(ctx, f.Messages(rd, v1alpha1.ReasonNamespaceReplaced)).Should(HaveLen(1))
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		f.distributed(ctx, "v=2", f.d1)
		f.becomes(ctx, "False/NamespaceReplaced")
		f.staysWithout(ctx, f.d2)
		f.change(ctx, included(f.d1))
		Expect(f.becomes(ctx, "True/Distributed").Status.Replaced).To(BeEmpty())
		f.change(ctx, included(f.d1, f.d2))
		f.distributed(ctx, "v=2", f.d2)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D92 if another root has taken a name in `trees`, neither it nor a namespace below gets a copy", func(ctx SpecContext) {
		root, child, late := f.id+"-root", f.id+"-child", f.id+"-late"
		Expect(f.Admin().Create(ctx, build.Root(root))).To(Succeed())
		Expect(f.Admin().Create(ctx, build.Child(child, root))).To(Succeed())
		f.create(ctx, targeting(v1alpha1.DistributionTargets{Trees: treesOf(root)}))
		f.distributed(ctx, "v=1", root, child)
		f.removeNamespace(ctx, child)
		f.removeNamespace(ctx, root)
		f.becomes(ctx, "False/NamespaceNotFound")
		Expect(f.Admin().Create(ctx, build.Root(root))).To(Succeed())
		Expect(f.becomes(ctx, "False/NamespaceReplaced").Status.Replaced).To(Equal([]string{root}))
		Expect(f.Admin().Create(ctx, build.Child(late, root))).To(Succeed())
		f.staysWithout(ctx, root)
		f.staysWithout(ctx, late)
	})

	It("DIST-D93 a missing name that is later created directly, or by a cluster admin's LNamespace, gets the copy; "+
		"created by a tenant's LNamespace or SubNamespace, it never does",
		func(ctx SpecContext) {
			root, lain, users, admins, made := f.id+"-root", f.id+"-lain", f.id+"-users", f.id+"-admins", f.id+"-made"
			Expect(f.Admin().Create(ctx, build.Root(root))).To(Succeed())
			f.create(ctx, included(lain, users, admins, made))
			f.subNamespace(ctx, root, lain)
			f.lnamespace(ctx, build.Annotated(build.Tenant(users).Object(), v1alpha1.AnnotationCreator, "alice"))
			f.lnamespace(ctx, build.Tenant(admins).Object())
			f.namespace(ctx, made)
			f.distributed(ctx, "v=1", admins, made)
			taken := []string{lain, users}
			slices.Sort(taken)
			Eventually(ctx, func() []string { return f.read(ctx).Status.Replaced }).Should(Equal(taken), f.explain)
			By("changing the content, long after the names were taken")
			f.change(ctx, f.holding(map[string]string{"v": "2"}))
			f.distributed(ctx, "v=2", admins, made)
			f.becomes(ctx, "False/NamespaceReplaced")
			f.staysWithout(ctx, lain)
			f.staysWithout(ctx, users)
		})

	It("DIST-D95 with the root in excludedTrees, the copies in it and below are deleted, and a later namespace below gets "+
		"none", func(ctx SpecContext) {
		root, child, late := f.id+"-root", f.id+"-child", f.id+"-late"
		Expect(f.Admin().Create(ctx, build.Root(root, "dist", f.id))).To(Succeed())
		Expect(f.Admin().Create(ctx, build.Child(child, root, "dist", f.id))).To(Succeed())
		f.create(ctx)
		f.distributed(ctx, "v=1", f.d1, root, child)
		targets := f.selecting()
		targets.ExcludedTrees = treesOf(root)
		f.change(ctx, targeting(targets))
		f.absent(ctx, root, child)
		Expect(f.Admin().Create(ctx, build.Child(late, child, "dist", f.id))).To(Succeed())
		f.staysWithout(ctx, late)
		Expect(f.becomes(ctx, "True/Distributed").Status.Targets).To(BeEquivalentTo(3))
	})
})

var _ = Describe("rights to what a name means", func() {
	It("DIST-D94 a user without rights in a replaced d2 may not change data, nor targets that keep d2, but may set suspend and remove d2; "+
		"DIST-D105 included [d1] with a tree is accepted without rights in the tree",
		func(ctx SpecContext) {
			f := plough(ctx, judged)
			f.distributor(ctx, "dave", "resourcedistributions")
			for _, namespace := range []string{f.d1, f.d2} {
				Expect(f.Admin().Create(ctx, build.RoleBinding(namespace, "dave", "admin", build.RBACUser("dave")))).To(Succeed())
			}
			included := func(names ...string) change {
				return targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)})
			}
			rd := f.object(included(f.d1, f.d2))
			Eventually(ctx, func() error { return f.As("dave").Create(ctx, rd) }).Should(Succeed())
			DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, rd) })
			f.becomes(ctx, "True/Distributed")
			f.removeNamespace(ctx, f.d2)
			f.namespace(ctx, f.d2)
			f.becomes(ctx, "False/NamespaceReplaced")
			refused := MatchError(ContainSubstring(`user "dave" may not create secrets in namespace "` + f.d2 + `"`))
			Eventually(ctx, func() error { // until the API server has heard that the right has gone with the namespace
				return f.attempt(ctx, "dave", included(f.d2, f.d1))
			}).Should(refused)
			Expect(f.attempt(ctx, "dave", f.holding(map[string]string{"v": "2"}))).To(refused)
			Expect(f.attempt(ctx, "dave", func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Suspend = true })).To(Succeed())
			Expect(f.attempt(ctx, "dave", included(f.d1))).To(Succeed())

			root := f.id + "-root"
			Expect(f.Admin().Create(ctx, build.Root(root))).To(Succeed())
			both := v1alpha1.DistributionTargets{IncludedNamespaces: references(f.d1), Trees: treesOf(root)}
			Eventually(ctx, func() error { return f.attempt(ctx, "dave", targeting(both)) }).Should(Succeed())
		})

	It("DIST-D106 a user who has the RBAC right may not write the status; admin may", func(ctx SpecContext) {
		f := plough(ctx, judged)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		f.distributor(ctx, "erin", "resourcedistributions/status")
		forge := func(user string) error {
			return f.As(user).Status().Patch(ctx, f.object(), client.RawPatch("application/merge-patch+json",
				[]byte(`{"status":{"named":null,"admitted":"forged"}}`)), client.DryRunAll)
		}
		Eventually(ctx, func() error { return forge("erin") }).
			Should(forbids("only the operator and cluster administrators may write the status"))
		Expect(forge("admin")).To(Succeed())
	})
})

var _ = Describe("targets that choose nothing", func() {
	It("DIST-D107 a Warning names each root or missing name in excludedNamespaces that excludedTrees lacks: "+
		"sub-namespaces below get the copy; none for a plain namespace", func(ctx SpecContext) {
		f := plough(ctx, judged)
		root := f.id + "-root"
		Expect(f.Admin().Create(ctx, build.Root(root))).To(Succeed())
		warned := func(targets string) string {
			_, stderr, code := f.KubectlWith(ctx, "admin",
				`{apiVersion: `+v1alpha1.GroupVersion.String()+`, kind: ResourceDistribution, metadata: {name: `+f.id+
					`}, spec: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: `+f.id+`}}, targets: {allNamespaces: true, `+targets+`}}}`,
				"create", "--dry-run=server", "-f", "-")
			Expect(code).To(BeZero(), stderr)
			return stderr
		}
		passed := "spec.targets.excludedNamespaces excludes only " + root + ": sub-namespaces below get the copy if they are targets"
		Eventually(warned).WithArguments("excludedNamespaces: [{name: " + root + "}, {name: " + f.d1 + "}]").Should(ContainSubstring(passed))
		Expect(warned("excludedNamespaces: [{name: " + root + "}], excludedTrees: [" + root + "]")).NotTo(ContainSubstring("sub-namespaces"))
		Expect(warned("excludedNamespaces: [{name: " + f.d1 + "}]")).NotTo(ContainSubstring("sub-namespaces"))
		Expect(warned("excludedNamespaces: [{name: " + f.id + "-ghost}]")).To(ContainSubstring("excludes only " + f.id + "-ghost"))
	})

	It("DIST-D96 `{}`, an empty selector and excludes alone get a Warning with the number of namespaces, in `plan -f` too; "+
		"allNamespaces and included don't; a missing excluded tree does", func(ctx SpecContext) {
		f := plough(ctx, judged)
		manifest := func(targets string) string {
			return `{apiVersion: ` + v1alpha1.GroupVersion.String() + `, kind: ResourceDistribution, metadata: {name: ` + f.id +
				`}, spec: {resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: ` + f.id + `}}, targets: ` + targets + `}}`
		}
		const everybody = `Warning: spec\.targets selects all \d+ namespaces`
		for targets, said := range map[string]string{
			"{}":                           everybody + ", and every later one",
			"{namespaceLabelSelector: {}}": everybody + ", and every later one",
			"{excludedNamespaces: [{name: " + f.d1 + "}]}": everybody + " that it does not exclude",
			"{excludedTrees: [" + f.id + "-ghost]}":        "Warning: not found: " + f.id + "-ghost in spec.targets.excludedTrees",
		} {
			_, stderr, code := f.KubectlWith(ctx, "admin", manifest(targets), "create", "--dry-run=server", "-f", "-")
			Expect(code).To(BeZero(), stderr)
			Expect(stderr).To(MatchRegexp(said), targets)
		}
		for _, targets := range []string{"{allNamespaces: true}", "{includedNamespaces: [{name: " + f.d1 + "}]}"} {
			_, stderr, code := f.KubectlWith(ctx, "admin", manifest(targets), "create", "--dry-run=server", "-f", "-")
			Expect(code).To(BeZero(), stderr)
			Expect(stderr).NotTo(ContainSubstring("selects all"), targets)
		}
		out, stderr, code := f.KubectlWith(ctx, "admin", manifest("{}"), "warren", "distribution", "plan", "-f", "-")
		Expect(code).To(BeZero(), stderr)
		Expect(out).To(MatchRegexp(`^` + everybody))
	})
})
