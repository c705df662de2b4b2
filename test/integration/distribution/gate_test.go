package distribution_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/gate"
)

// ofDistribution reports whether a request writes a copy or a status.
func ofDistribution(r *http.Request) bool {
	return gate.OfSecrets(r) || r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/resourcedistributions/")
}

var _ = Describe("an operator that is interrupted", Ordered, func() {
	var (
		w *devcluster.World
		g *gate.Gate
	)
	BeforeAll(func(ctx SpecContext) {
		var err error
		w, err = devcluster.Start(ctx, devcluster.Options{
			Components: []string{overwriteComponent}, Operator: devcluster.OperatorOptions{Config: configuration}, WithoutOperator: true,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		g = gate.New(w)
		g.StartOperator(ctx, w, configuration)
	})

	It("DIST-D73 an update of a copy that another user has changed meanwhile (409) is repeated on the newer object; "+
		"no copy is read", func(ctx SpecContext) {
		f := plough(ctx, w)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		mark := f.Mark(ctx)
		g.HoldBack(gate.OfSecrets)
		f.change(ctx, f.holding(map[string]string{"v": "2"}))
		Eventually(ctx, g.Stopped).Should(BeNumerically(">=", 3))
		Expect(f.edit(ctx, "admin", f.d1, func(s *corev1.Secret) { s.Labels["theirs"] = "yes" })).To(Succeed())
		g.Release()
		f.distributed(ctx, "v=2", f.d1, f.d2, f.d3)
		f.becomes(ctx, "True/Distributed")
		Expect(f.at(ctx, f.d1).Labels).To(HaveKeyWithValue("theirs", "yes"))
		asked := f.requests(ctx, mark)
		Expect([]int{asked["get secrets"], asked["list secrets"]}).To(Equal([]int{0, 0}), f.explain)
		// Four are needed. Until the watch has delivered the newer object, the operator repeats one of them once a second.
		Expect(asked["update secrets"]).To(And(BeNumerically(">=", 4), BeNumerically("<=", 8)), f.explain)
	})

	It("DIST-D84 killed after any write while copies are created, updated, changed for Orphan and back, and removed, "+
		"the operator completes each change; an unrelated Secret stays unchanged", func(ctx SpecContext) {
		f := plough(ctx, w)
		obstacle := f.obstacle(ctx, f.x1, "theirs")
		Expect(f.Admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.d1, Name: "bystander"}})).To(Succeed())
		selected, narrowed := f.selecting(), f.selecting()
		narrowed.ExcludedNamespaces = references(f.d2)
		f.create(ctx, targeting(narrowed))
		f.becomes(ctx, "True/Distributed")
		value := 1
		for after := range 5 {
			for _, act := range []func(){
				func() { f.change(ctx, targeting(selected)) },                                           // create
				func() { value++; f.change(ctx, f.holding(map[string]string{"v": fmt.Sprint(value)})) }, // update
				func() { f.change(ctx, onDeletion(v1alpha1.DeletionOrphan)) },                           // new marks
				func() { f.change(ctx, onDeletion(v1alpha1.DeletionDelete)) },                           // and the old ones again
				func() { f.change(ctx, targeting(narrowed)) },                                           // delete
			} {
				g.HoldAfter(after, ofDistribution)
				act()
				Eventually(ctx, func() bool { return g.Stopped() > 0 || f.isObserved(ctx) }).Should(BeTrue(), f.explain)
				Expect(w.Operator.Kill()).To(Succeed())
				g.Release()
				Expect(w.Operator.Start(ctx)).To(Succeed())
				f.becomes(ctx, "True/Distributed")
				f.distributed(ctx, fmt.Sprintf("v=%d", value), f.d1, f.d3)
			}
			f.absent(ctx, f.d2)
		}
		f.untouched(ctx, obstacle)
		Expect(f.Admin().Get(ctx, client.ObjectKey{Namespace: f.d1, Name: "bystander"}, &corev1.Secret{})).To(Succeed())
	})

	It("DIST-D86 under Fail, each time a tenant replaces d2's copy by an obstacle, only d2 is in conflict; the others get new data; "+
		"when the obstacle is deleted, d2 its copy", func(ctx SpecContext) {
		f := plough(ctx, w)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		for _, value := range []string{"2", "3", "4"} {
			g.HoldBack(gate.OfSecrets)
			Expect(f.Admin().Delete(ctx, f.at(ctx, f.d2))).To(Succeed())
			obstacle := f.obstacle(ctx, f.d2, "theirs")
			Eventually(ctx, g.Stopped).Should(BeNumerically(">=", 1), "the operator wants to make the copy again")
			g.Release()
			Expect(conflicts(f.becomes(ctx, "False/Conflict"))).To(Equal([]string{f.d2 + ":Unrelated"}))
			f.change(ctx, f.holding(map[string]string{"v": value}))
			f.distributed(ctx, "v="+value, f.d1, f.d3)
			f.untouched(ctx, obstacle)
			Expect(f.Admin().Delete(ctx, obstacle)).To(Succeed())
			f.distributed(ctx, "v="+value, f.d2)
			f.becomes(ctx, "True/Distributed")
		}
	})

	It("DIST-D87 d2 is deleted while its copy is created or updated: targets 2, failed 0, no Event Failed; created again, "+
		"d2 gets its copy", func(ctx SpecContext) {
		f := plough(ctx, w)
		for _, act := range []func(){
			func() { f.create(ctx) },
			func() { f.change(ctx, f.holding(map[string]string{"v": "2"})) },
		} {
			g.HoldBack(gate.OfSecrets)
			act()
			Eventually(ctx, g.Stopped).Should(BeNumerically(">=", 3), f.explain)
			Expect(f.Admin().Delete(ctx, build.Namespace(f.d2))).To(Succeed())
			Eventually(ctx, f.gone).WithArguments(build.Namespace(f.d2)).Should(BeTrue())
			g.Release()
			rd := f.becomes(ctx, "True/Distributed")
			Expect([]int32{rd.Status.Targets, rd.Status.Failed}).To(Equal([]int32{2, 0}))
			Expect(f.Messages(rd, v1alpha1.ReasonFailed)(ctx)).To(BeEmpty())
			f.namespace(ctx, f.d2, "dist", f.id)
			f.distributed(ctx, f.data(ctx, f.d1), f.d2)
			f.becomes(ctx, "True/Distributed")
		}
	})

	It("DIST-D74 if the operator may not list Secrets, Ready is False/NotObserved, and no copy is created, updated or deleted; "+
		"with the right, RD is distributed", func(ctx SpecContext) {
		f := plough(ctx, w)
		f.create(ctx)
		f.becomes(ctx, "True/Distributed")
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		f.allow(ctx, "configmaps")
		Expect(w.Operator.Start(ctx)).To(Succeed())
		rd := f.becomes(ctx, "False/NotObserved")
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).
			To(ContainSubstring("may not list or watch Secrets"))
		mark := f.Mark(ctx)
		d4 := f.id + "-d4"
		f.namespace(ctx, d4, "dist", f.id)
		f.change(ctx, func(rd *v1alpha1.ResourceDistribution) { rd.Spec.Targets.ExcludedNamespaces = references(f.d3) })
		f.becomes(ctx, "False/NotObserved")
		f.rests(ctx)
		asked := f.requests(ctx, mark)
		Expect([]int{asked["create secrets"], asked["update secrets"], asked["delete secrets"]}).To(Equal([]int{0, 0, 0}))
		f.allow(ctx, "configmaps", "secrets")
		f.distributed(ctx, "v=1", d4)
		f.absent(ctx, f.d3)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D75 without RD's kind in `distribution.kinds`, Ready is False/KindNotAllowed, and the copies stay; when the kind is added, "+
		"RD is distributed", func(ctx SpecContext) {
		f := plough(ctx, w)
		settings := func(value string) change { return f.configMap(map[string]string{"v": value}) }
		copied := func(ctx context.Context) string {
			m := &corev1.ConfigMap{}
			_ = f.Admin().Get(ctx, client.ObjectKey{Namespace: f.d1, Name: f.id}, m)
			return m.Data["v"]
		}
		f.create(ctx, settings("1"))
		f.becomes(ctx, "True/Distributed")
		only := strings.Replace(configuration, "allowOverwrite: true", `allowOverwrite: true, kinds: [{group: "", version: v1, kind: Secret}]`, 1)
		Expect(w.Operator.Configure(ctx, only)).To(Succeed())
		rd := f.becomes(ctx, "False/KindNotAllowed")
		Expect(v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady).Message).
			To(ContainSubstring("kind ConfigMap is not allowed: allowed are Secret"))
		f.change(ctx, settings("2"))
		f.becomes(ctx, "False/KindNotAllowed")
		f.rests(ctx)
		Expect(copied(ctx)).To(Equal("1"))
		Expect(w.Operator.Configure(ctx, configuration)).To(Succeed())
		Eventually(ctx, copied).Should(Equal("2"), f.explain)
		f.becomes(ctx, "True/Distributed")
	})

	It("DIST-D70 the leader is killed while it creates 40 copies: the other replica completes them, with at most 56 POSTs in "+
		"all", func(ctx SpecContext) {
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		f := plough(ctx, w)
		const many = 40
		var names []string
		for i := range many {
			names = append(names, fmt.Sprintf("%s-n%02d", f.id, i))
			f.namespace(ctx, names[i])
		}
		var replicas []*devcluster.Operator
		for i := range 2 {
			o, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
				Kubeconfig: g.Kubeconfig(w), Dir: filepath.Join(w.Dir, fmt.Sprint("replica", i)), Config: configuration,
				Args: []string{"--leader-elect"},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(o.Stop)
			replicas = append(replicas, o)
		}
		leads := func(ctx context.Context) (int, error) {
			for i, o := range replicas {
				metrics, err := o.Metrics(ctx)
				if err != nil || metrics.Value("leader_election_master_status", nil) == 1 {
					return i, err
				}
			}
			return -1, nil
		}
		var leader int
		Eventually(ctx, leads).Should(BeNumerically(">=", 0))
		leader, err = leads(ctx)
		Expect(err).NotTo(HaveOccurred())
		mark := f.Mark(ctx)
		g.HoldAfter(many/2, gate.OfSecrets)
		f.create(ctx, targeting(v1alpha1.DistributionTargets{IncludedNamespaces: references(names...)}))
		Eventually(ctx, g.Stopped).Should(BeNumerically(">", 0), f.explain)
		Expect(replicas[leader].Kill()).To(Succeed())
		g.Release()
		Expect(f.becomes(ctx, "True/Distributed").Status.Current).To(BeEquivalentTo(many))
		Expect(f.requests(ctx, mark)["create secrets"]).To(BeNumerically("<=", many+16))
		f.rests(ctx)
	})
})

// isObserved says whether the operator has reported on the newest spec.
func (f *field) isObserved(ctx context.Context) bool {
	GinkgoHelper()
	rd := f.read(ctx)
	return rd.Status.ObservedGeneration == rd.Generation
}

// allow has the operator write and see copies of these core kinds alone.
func (f *field) allow(ctx context.Context, resources ...string) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	Expect(f.Admin().Get(ctx, client.ObjectKey{Name: "warren-kinds-configured"}, role)).To(Succeed())
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch", "create",
		"update", "delete"}}}
	Expect(f.Admin().Update(ctx, role)).To(Succeed())
	gathered := func(ctx context.Context) ([]string, error) {
		all := &rbacv1.ClusterRole{}
		err := f.Admin().Get(ctx, client.ObjectKey{Name: "warren-kinds"}, all)
		var names []string
		for _, rule := range all.Rules {
			names = append(names, rule.Resources...)
		}
		return names, err
	}
	Eventually(ctx, gathered).Should(ConsistOf(resources))
}
