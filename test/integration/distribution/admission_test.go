package distribution_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("admission", Ordered, func() {
	var f *field
	BeforeAll(func(ctx SpecContext) {
		for _, o := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "distributors"}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{v1alpha1.Domain}, Resources: []string{"resourcedistributions"}, Verbs: []string{"*"}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "distributors"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "distributors"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "carol"}}},
		} {
			Expect(client.IgnoreAlreadyExists(judged.Admin().Create(ctx, o))).To(Succeed())
		}
	})
	BeforeEach(func(ctx SpecContext) {
		f = plough(ctx, judged)
		for _, o := range []client.Object{
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.d1, Name: "secrets"}, Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}}}},
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.d1, Name: "secrets"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "secrets"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "carol"}}},
		} {
			Expect(f.Admin().Create(ctx, o)).To(Succeed())
		}
	})

	// tries creates the case's object by dry run.
	tries := func(ctx context.Context, user string, changes ...change) error {
		GinkgoHelper()
		return f.As(user).Create(ctx, f.object(changes...), client.DryRunAll)
	}
	included := func(names ...string) change {
		return targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)})
	}
	says := func(text string) OmegaMatcher { return MatchError(ContainSubstring(text)) }

	It("DIST-D04 allNamespaces true with a selector, false alone, and a name of 64 characters are refused; "+
		"63 characters and dots are accepted, and the label has that name; "+
		"DIST-D09 included kube-system is refused, and a namespace both included and excluded", func(ctx SpecContext) {
		yes, no := true, false
		all := f.selecting()
		all.AllNamespaces = &yes
		Expect(tries(ctx, "admin", targeting(all))).To(says("allNamespaces can't be combined"))
		Expect(tries(ctx, "admin", targeting(v1alpha1.DistributionTargets{AllNamespaces: &no}))).To(says("no target: set includedNamespaces"))
		naming := func(name string) change { return func(rd *v1alpha1.ResourceDistribution) { rd.Name = name } }
		Expect(tries(ctx, "admin", naming(strings.Repeat("a", 63)))).To(Succeed())
		Expect(tries(ctx, "admin", naming(strings.Repeat("a", 64)))).To(says("no more than 63 characters"))
		Expect(tries(ctx, "admin", naming("a.b-c"))).To(Succeed())
		Expect(tries(ctx, "admin", included("kube-system"))).To(says("kube-system is a protected namespace"))
		both := v1alpha1.DistributionTargets{IncludedNamespaces: references(f.d1), ExcludedNamespaces: references(f.d1)}
		Expect(tries(ctx, "admin", targeting(both))).To(says("is both included and excluded"))

		By("DIST-D04: a name with dots is the value of the copies' label")
		dotted := f.object(naming(f.id + ".b-c"))
		Expect(f.Admin().Create(ctx, dotted)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, dotted) })
		f.distributed(ctx, "v=1", f.d1, f.d2, f.d3)
		for _, namespace := range []string{f.d1, f.d2, f.d3} {
			Expect(f.at(ctx, namespace).Labels).To(HaveKeyWithValue(v1alpha1.LabelDistributedBy, dotted.Name))
		}
	})

	It("DIST-D30 Overwrite is refused if the configuration does not allow it", func(ctx SpecContext) {
		Expect(tries(ctx, "admin", onConflict(v1alpha1.ConflictOverwrite))).To(says("Overwrite is disabled by the configuration"))
	})

	It("DIST-D51 a change of the name in spec.resource is refused; the message says to create another "+
		"ResourceDistribution", func(ctx SpecContext) {
		f.create(ctx)
		Expect(f.attempt(ctx, "admin", f.with(func(r map[string]any) { r["metadata"] = map[string]any{"name": "other"} }))).
			To(says("are immutable; create another ResourceDistribution"))
	})

	It("DIST-D52 refused, with its reason: no name, other metadata, Warren's keys, Secret types token, bootstrap and Helm, "+
		"name kube-root-ca.crt, a List, a kind not configured", func(ctx SpecContext) {
		Expect(client.IgnoreAlreadyExists(f.Admin().Create(ctx, build.CustomResource("example.com", "Widget", "widgets")))).To(Succeed())
		meta := func(key string, value any) change {
			return f.with(func(r map[string]any) { r["metadata"].(map[string]any)[key] = value })
		}
		typed := func(name string) change { return f.with(func(r map[string]any) { r["type"] = name }) }
		kind := func(apiVersion, kind, name string) change {
			return func(rd *v1alpha1.ResourceDistribution) {
				rd.Spec.Resource = raw(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}})
			}
		}
		owner := []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "0d21e2c4-0000-4000-8000-000000000001"}}
		const more = "spec.resource.metadata may hold name, labels and annotations only"
		for _, c := range []struct {
			message string
			change  change
		}{
			{"spec.resource.metadata.name is required", meta("name", "")},
			{more, meta("generateName", "a-")},
			{more, meta("namespace", f.d1)},
			{more, meta("ownerReferences", owner)},
			{more, meta("finalizers", []any{"example.com/hold"})},
			{"keys of tenancy.warren.dev belong to the operator", meta("labels", map[string]any{v1alpha1.LabelPropagate: "update"})},
			{"a Secret of type kubernetes.io/service-account-token can't be distributed", typed("kubernetes.io/service-account-token")},
			{"a Secret of type bootstrap.kubernetes.io/token can't be distributed", typed("bootstrap.kubernetes.io/token")},
			{"a Secret of type helm.sh/release.v1 can't be distributed", typed("helm.sh/release.v1")},
			{"Kubernetes writes one in every namespace", kind("v1", "ConfigMap", "kube-root-ca.crt")},
			{"kind List is a list of objects; a ResourceDistribution holds one", kind("v1", "List", f.id)},
			{"kind SecretList is a list of objects; a ResourceDistribution holds one", kind("v1", "SecretList", f.id)},
			{"kind Role is not allowed: allowed are ConfigMap, Secret", kind("rbac.authorization.k8s.io/v1", "Role", f.id)},
			{"kind Widget is not allowed: allowed are ConfigMap, Secret", kind("example.com/v1", "Widget", f.id)},
		} {
			Expect(tries(ctx, "admin", c.change)).To(says(c.message))
		}
	})

	It("DIST-D53 refused, with the field and no value: wrong type, unknown field, invalid base64, missing tls.key, invalid name, "+
		"data over 1 MiB", func(ctx SpecContext) {
		data := func(key string, value any) change {
			return f.with(func(r map[string]any) { r["data"] = map[string]any{key: value} })
		}
		for _, c := range []struct {
			message string
			change  change
		}{
			{"spec.resource: Invalid value: Secret in version \"v1\" cannot be handled as a Secret: json: cannot unmarshal number into Go struct " +
				"field Secret.data", data("a", 1)},
			{`unknown field "nonsense"`, f.with(func(r map[string]any) { r["nonsense"] = "s3ntinel" })},
			{"spec.resource: Invalid value: data[a]: must be base64", data("a", "s3ntinel%")},
			{"spec.resource: Invalid value: data[tls.key]: Required value", f.with(func(r map[string]any) {
				r["type"], r["data"] = "kubernetes.io/tls", map[string]any{"tls.crt": "eA=="}
			})},
			{`spec.resource.metadata.name "Not_Ok" must be a DNS subdomain`, f.with(func(r map[string]any) {
				r["metadata"] = map[string]any{"name": "Not_Ok"}
			})},
			{"spec.resource: Invalid value: data: Too long", f.holding(map[string]string{"v": strings.Repeat("s3ntinel", 1<<17) + "x"})},
		} {
			err := tries(ctx, "admin", c.change)
			Expect(err).To(MatchError(And(ContainSubstring("spec.resource"), ContainSubstring(c.message))))
			Expect(err.Error()).NotTo(ContainSubstring("s3ntinel"))
		}
		Expect(tries(ctx, "admin", f.holding(map[string]string{"v": strings.Repeat("x", 1<<20)}))).To(Succeed())
	})

	It("DIST-D55 a ConfigMap of 1.45 MiB is refused: \"the limit is 1500000\"", func(ctx SpecContext) {
		Expect(tries(ctx, "admin", f.configMap(map[string]string{"v": strings.Repeat("x", 1485<<10)}))).To(says("the limit is 1500000"))
	})

	It("DIST-D58 carol's RD for d1 is accepted; it is refused with d2, which the message names, a tree, the selector, or all namespaces; "+
		"DIST-D60 with `--as=carol` carol's rights count; a dry run has the same answer, and nothing is written", func(ctx SpecContext) {
		Eventually(ctx, func() error { return tries(ctx, "carol", included(f.d1)) }).Should(Succeed())
		Expect(tries(ctx, "carol")).To(says(`user "carol" may not create secrets cluster-wide, as this ResourceDistribution requires`))
		Expect(tries(ctx, "carol", included(f.d1, f.d2))).To(says(`user "carol" may not create secrets in namespace "` + f.d2 + `"`))
		Expect(tries(ctx, "carol", included(f.d2, f.d3, f.d1))).To(says(`"` + f.d2 + `" (and 1 more)`))
		Expect(tries(ctx, "carol", targeting(v1alpha1.DistributionTargets{Trees: []v1alpha1.NamespaceName{v1alpha1.NamespaceName(f.d2)}}))).
			To(says("may not create secrets"))
		Expect(tries(ctx, "carol", included(f.d1), onConflict(v1alpha1.ConflictAdoptIdentical))).To(says("may not update secrets"))
		rd := f.object(included(f.d1))
		Expect(f.As("carol").Create(ctx, rd)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { _ = f.Admin().Delete(ctx, rd) })
		f.distributed(ctx, "v=1", f.d1)
		Expect(f.attempt(ctx, "carol", targeting(v1alpha1.DistributionTargets{}))).To(says("cluster-wide, as this ResourceDistribution requires"))

		By("DIST-D60: a dry run is answered as the request, and nothing is written")
		Expect(f.Admin().Delete(ctx, rd)).To(Succeed())
		Eventually(ctx, f.gone).WithArguments(rd).Should(BeTrue())
		f.absent(ctx, f.d1)
		for _, targets := range []change{included(f.d1), included(f.d1, f.d2)} {
			rehearsed := tries(ctx, "carol", targets)
			Consistently(ctx, f.gone).WithArguments(f.object()).WithTimeout(test.Quiet(soon)).Should(BeTrue())
			f.absent(ctx, f.d1)
			made := f.object(targets)
			if err := f.As("carol").Create(ctx, made); rehearsed == nil {
				Expect(err).NotTo(HaveOccurred())
				Expect(f.Admin().Delete(ctx, made)).To(Succeed())
				Eventually(ctx, f.gone).WithArguments(made).Should(BeTrue())
				f.absent(ctx, f.d1)
			} else {
				Expect(err).To(MatchError(rehearsed.Error()))
			}
		}

		By("DIST-D60: an admin acts as carol")
		_, stderr,
			code := f.KubectlWith(ctx, "admin", `{apiVersion: `+v1alpha1.GroupVersion.String()+`, kind: ResourceDistribution, metadata: {name: `+
			f.id+`-x}, spec: {resource: {apiVersion: v1, kind: Secret, metadata: {name: a}}}}`,
			"create", "--as=carol", "-f", "-")
		Expect(code).NotTo(BeZero())
		Expect(stderr).To(ContainSubstring(`user "carol" may not create secrets cluster-wide, as this ResourceDistribution requires`))
	})

	It("DIST-D59 without rights in all targets, carol may change annotations and suspend, and remove targets; "+
		"she may not change data", func(ctx SpecContext) {
		f.create(ctx, included(f.d1, f.d2, f.d3))
		f.becomes(ctx, "True/Distributed")
		as := func(changes ...change) error { return f.attempt(ctx, "carol", changes...) }
		Eventually(ctx, func() error {
			return as(func(rd *v1alpha1.ResourceDistribution) { rd.Annotations = map[string]string{"a": "b"} })
		}).Should(Succeed())
		Expect(as(f.holding(map[string]string{"v": "2"}))).To(says("may not create secrets in namespace"))
		Eventually(ctx, func() error { return as(func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Suspend = true }) }).Should(Succeed())
		Eventually(ctx, func() error { return as(included(f.d1)) }).Should(Succeed())
	})

	It("DIST-D81 CREATE has Warnings that name the namespace with an obstacle and the missing one; DELETE warns \"this removes the copy "+
		"from 2 namespaces\"", func(ctx SpecContext) {
		Expect(f.Admin().Create(ctx, build.Secret(f.d2, f.id, "mine"))).To(Succeed())
		manifest := `{apiVersion: ` + v1alpha1.GroupVersion.String() + `, kind: ResourceDistribution, metadata: {name: ` + f.id +
			`}, spec: {resource: {apiVersion: v1, kind: Secret, metadata: {name: ` + f.id +
			`}}, targets: {includedNamespaces: [{name: ` + f.d1 + `}, {name: ` + f.d2 + `}, {name: ` + f.id + `-ghost}]}}}`
		_, stderr, code := f.KubectlWith(ctx, "admin", manifest, "create", "-f", "-")
		Expect(code).To(BeZero(), stderr)
		Expect(stderr).To(And(ContainSubstring("Warning: 1 namespace already has a Secret "+f.id+
			" that is no copy of this ResourceDistribution, or is being deleted: "+f.d2),
			ContainSubstring("Warning: not found: "+f.id+"-ghost")))
		Expect(f.Admin().Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.d2, Name: f.id}})).To(Succeed())
		Eventually(ctx, func() int32 { return f.read(ctx).Status.Current }).Should(BeEquivalentTo(2), f.explain)
		_, stderr, code = f.Kubectl(ctx, "admin", "delete", "rdist", f.id)
		Expect(code).To(BeZero())
		Expect(stderr).To(ContainSubstring("Warning: this removes the copy from 2 namespaces"))
	})
})
