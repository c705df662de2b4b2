package distribution_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// liftCopyPolicies deletes, until the end of the case, the bindings of the policies that keep users from changing copies.
func liftCopyPolicies(ctx context.Context, w *devcluster.World) {
	GinkgoHelper()
	bindings := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
	Expect(w.Admin().List(ctx, bindings)).To(Succeed())
	for i := range bindings.Items {
		if b := &bindings.Items[i]; strings.HasPrefix(b.Name, "warren-copy") {
			Expect(w.Admin().Delete(ctx, b)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				b.UID, b.ResourceVersion = "", ""
				Expect(w.Admin().Create(ctx, b)).To(Succeed())
			})
		}
	}
}

var _ = Describe("an operator that ends", Ordered, func() {
	var w *devcluster.World
	BeforeAll(func(ctx SpecContext) {
		var err error
		w, err = devcluster.Start(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Config: configuration}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
	})

	It("DIST-D82 the operator runs without component `distribution`; when the component is applied, it distributes RD", func(ctx SpecContext) {
		all, err := devcluster.RenderWith("config/overlays/standard", component)
		Expect(err).NotTo(HaveOccurred())
		var added devcluster.Manifests
		for _, u := range all {
			if strings.Contains(u.GetName(), "distribution") && u.GetName() != "warren-distribution" { // without that policy: DIST-D61
				added = append(added, u)
			}
		}
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), added)).To(Succeed())
		Eventually(ctx, func() error {
			list := &v1alpha1.ResourceDistributionList{}
			return w.Admin().List(ctx, list)
		}).Should(Succeed())
		f := plough(ctx, w)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D61 an RD with an invalid resource, stored without policy and webhook: Ready False/InvalidResource, Stalled, and no copy; "+
		"once valid, it is distributed", func(ctx SpecContext) {
		f := plough(ctx, w)
		f.create(ctx, f.with(func(resource map[string]any) { resource["type"] = "kubernetes.io/service-account-token" }))
		rd := f.becomes(ctx, "False/InvalidResource")
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionStalled).Reason).To(Equal("InvalidResource"))
		Expect(f.at(ctx, f.d1)).To(BeNil())
		f.change(ctx, f.with(func(map[string]any) {}))
		f.distributed(ctx, "v=1", f.d1)
	})

	It("DIST-D19 a restart of the operator causes no write and no read of a copy, also if a copy was edited under "+
		"Ignore", func(ctx SpecContext) {
		f := plough(ctx, w)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		Expect(f.edit(ctx, "admin", f.d1, setting("v", "edited"))).To(Succeed())
		mark := f.Mark(ctx)
		Expect(w.Operator.Restart(ctx)).To(Succeed())
		f.rests(ctx)
		Expect(f.requests(ctx, mark)).To(BeEmpty())
		Expect(f.data(ctx, f.d1)).To(Equal("v=edited"))
	})

	It("DIST-D39 under Revert an edit while the operator is down is corrected after its start", func(ctx SpecContext) {
		f := plough(ctx, w)
		f.create(ctx, onDrift(v1alpha1.DriftRevert))
		f.becomes(ctx, "True/Distributed")
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		Expect(f.edit(ctx, "admin", f.d1, setting("extra", "1"))).To(Succeed())
		Expect(w.Operator.Start(ctx)).To(Succeed())
		f.distributed(ctx, "v=1", f.d1)
	})

	It("DIST-D99 policies off: alice's edits while the operator is down, also as field manager `warren`, are corrected under Revert, "+
		"and stay under Ignore", func(ctx SpecContext) {
		reverted, ignored := plough(ctx, w), plough(ctx, w)
		for _, f := range []*field{reverted, ignored} {
			f.tenant(ctx, f.d1)
			f.tenant(ctx, f.d2)
		}
		reverted.create(ctx, onDrift(v1alpha1.DriftRevert))
		reverted.becomes(ctx, "True/Distributed")
		ignored.create(ctx)
		ignored.becomes(ctx, "True/Distributed")
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		liftCopyPolicies(ctx, w)
		for _, f := range []*field{reverted, ignored} {
			Eventually(ctx, func() error { return f.edit(ctx, "alice", f.d1, setting("extra", "1")) }).Should(Succeed(), "the policies are gone")
			copied := f.at(ctx, f.d2)
			setting("v", "edited")(copied)
			Expect(f.As("alice").Update(ctx, copied, client.FieldOwner(v1alpha1.OperatorName))).To(Succeed())
		}
		Expect(w.Operator.Start(ctx)).To(Succeed())
		reverted.distributed(ctx, "v=1", reverted.d1, reverted.d2, reverted.d3)
		ignored.rests(ctx)
		Expect([]string{ignored.data(ctx, ignored.d1), ignored.data(ctx, ignored.d2)}).To(Equal([]string{"extra=1 v=1", "v=edited"}))
	})

	It("DIST-D90 after its start the operator makes each write that the specs changed meanwhile require, and no other; "+
		"none for RDs suspended or, under Fail, in conflict", func(ctx SpecContext) {
		changed, skips, fails, suspended := plough(ctx, w), plough(ctx, w), plough(ctx, w), plough(ctx, w)
		changed.create(ctx)
		changed.becomes(ctx, "True/Distributed")
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		changed.change(ctx, changed.holding(map[string]string{"v": "2"}), func(rd *v1alpha1.ResourceDistribution) {
			rd.Spec.Targets.ExcludedNamespaces = references(changed.d3)
		})
		skips.obstacle(ctx, skips.d2, "theirs")
		skips.create(ctx, onConflict(v1alpha1.ConflictSkip))
		fails.obstacle(ctx, fails.d1, "theirs")
		fails.create(ctx)
		suspended.create(ctx, func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Suspend = true })

		writes := []string{
			"create " + skips.d1, "create " + skips.d3, "update " + changed.d1, "update " + changed.d2, "delete " + changed.d3}
		since := changed.Mark(ctx)
		Expect(w.Operator.Start(ctx)).To(Succeed())
		written := func() []string { return writtenSecrets(ctx, w, since, changed, skips, fails, suspended) }
		Eventually(ctx, written).Should(ConsistOf(writes))
		changed.rests(ctx)
		Expect(written()).To(ConsistOf(writes))
	})

	It("DIST-D76 if the status has lost `admitted`, all targets are checked again before a copy is created; "+
		"one conflict then prevents all new copies", func(ctx SpecContext) {
		wiped, kept := plough(ctx, w), plough(ctx, w)
		both := []*field{wiped, kept}
		d4, d5 := func(f *field) string { return f.id + "-d4" }, func(f *field) string { return f.id + "-d5" }
		for _, f := range both {
			f.create(ctx)
			f.becomes(ctx, "True/Distributed")
		}
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		wiped.writeStatus(ctx, func(s *v1alpha1.ResourceDistributionStatus) { s.Admitted = "" })
		was := wiped.at(ctx, wiped.d1)
		obstacles := map[*field]*corev1.Secret{}
		for _, f := range both {
			f.namespace(ctx, d4(f), "dist", f.id)
			f.namespace(ctx, d5(f), "dist", f.id)
			obstacles[f] = f.obstacle(ctx, d4(f), "theirs")
		}
		mark := wiped.Mark(ctx)
		Expect(w.Operator.Start(ctx)).To(Succeed())
		kept.distributed(ctx, "v=1", d5(kept))
		for _, f := range both {
			Expect(conflicts(f.becomes(ctx, "False/Conflict"))).To(Equal([]string{d4(f) + ":Unrelated"}))
			f.rests(ctx)
			f.untouched(ctx, obstacles[f])
		}
		Expect(wiped.data(ctx, d5(wiped))).To(BeEmpty(), "the check covers d4: one conflict, and no copy is created")
		Expect(wiped.requests(ctx, mark)).NotTo(Or(HaveKey("create secrets"), HaveKey("update secrets"), HaveKey("delete secrets")))
		for _, f := range both {
			Expect(f.Admin().Delete(ctx, obstacles[f])).To(Succeed())
			f.distributed(ctx, "v=1", d4(f), d5(f))
			Expect(f.becomes(ctx, "True/Distributed").Status.Admitted).NotTo(BeEmpty())
		}
		wiped.untouched(ctx, was)
	})

	It("DIST-D69 killed while it creates, updates or removes copies in 300 namespaces, the operator completes each after its start, "+
		"with at most 316 writes", func(ctx SpecContext) {
		f := plough(ctx, w)
		const many, left = 300, 100
		names := f.namespaces(ctx, many)
		killed := func(verb string, least int, act func()) {
			GinkgoHelper()
			mark := f.Mark(ctx)
			writes := func() int { return f.requests(ctx, mark)[verb] }
			act()
			Eventually(ctx, writes).WithPolling(1).Should(BeNumerically(">=", least), f.explain)
			Expect(w.Operator.Kill()).To(Succeed())
			Expect(w.Operator.Start(ctx)).To(Succeed())
			if verb != "delete secrets" {
				Expect(f.becomes(ctx, "True/Distributed").Status.Current).To(BeEquivalentTo(many))
			}
			Expect(writes()).To(BeNumerically("<=", many+16))
		}
		targets := v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)}
		killed("create secrets", 20, func() { f.create(ctx, targeting(targets)) })
		killed("update secrets", 20, func() { f.change(ctx, f.holding(map[string]string{"v": "2"})) })
		f.distributed(ctx, "v=2", names...)
		killed("delete secrets", 20, func() {
			f.change(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names[:left]...)}))
		})
		f.absent(ctx, names[left:]...)
		Expect(f.becomes(ctx, "True/Distributed").Status.Current).To(BeEquivalentTo(left))
	})

	It("DIST-D44 under Delete the copies are deleted also if RD is deleted while the operator is down; "+
		"DIST-D45 under Orphan the copies stay when the CRD is deleted", func(ctx SpecContext) {
		f, g := plough(ctx, w), plough(ctx, w)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		g.create(ctx, onDeletion(v1alpha1.DeletionOrphan))
		g.becomes(ctx, "True/Distributed")
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		f.remove(ctx)
		f.absent(ctx, f.d1, f.d2, f.d3)
		Expect(w.Operator.Start(ctx)).To(Succeed())
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "resourcedistributions." + v1alpha1.Domain}}
		Expect(w.Admin().Delete(ctx, crd)).To(Succeed())
		Eventually(ctx, g.gone).WithArguments(crd).Should(BeTrue())
		g.rests(ctx)
		Expect(g.data(ctx, g.d1)).To(Equal("v=1"))
	})
})
