package trees_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
)

const copies = v1alpha1.ConditionPropagated

func source(namespace, name string) *corev1.Secret {
	return build.Source(build.Secret(namespace, name, namespace), v1alpha1.ModeUpdate)
}

// inSync matches a HierarchyConfiguration which reports that the copies in its namespace and below are what they should be.
func inSync() types.GomegaMatcher {
	return say(copies, metav1.ConditionTrue, v1alpha1.ReasonInSync)
}

var _ = Describe("copies are reported", func() {
	It("HIER-K2 a source that selects away the tree of team-b has no copy there: svc-1 loses its copy when it moves there, and "+
		"has one again when back; HIER-K3 a user's object in team-b that has the source's name is no conflict while select excludes "+
		"it; then team-b reports Conflict, org DescendantConflict, until it is deleted", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("k2-org"), build.Child("k2-team-a", "k2-org"), build.Child("k2-team-b", "k2-org"),
			build.Child("k2-svc-1", "k2-team-a"))
		key := build.Annotated(source("k2-org", "db"), v1alpha1.AnnotationSelect, "!"+v1alpha1.TreeLabel("k2-team-b"))
		shared.Create(ctx, key)
		copied := func(namespace string) client.Object { return build.Secret(namespace, "db", "") }
		shared.Exists(ctx, copied("k2-team-a"), copied("k2-svc-1"))
		shared.Absent(ctx, copied("k2-team-b"))
		shared.wish(ctx, "k2-svc-1", build.Below("k2-team-b"))
		shared.Gone(ctx, copied("k2-svc-1"))
		shared.wish(ctx, "k2-svc-1", build.Below("k2-team-a"))
		shared.Exists(ctx, copied("k2-svc-1"))

		own := build.Secret("k2-team-b", "db", "theirs")
		shared.Create(ctx, own)
		Eventually(shared.hier("k2-org")).WithContext(ctx).Should(inSync())
		edit(ctx, shared, key, func(s *corev1.Secret) { delete(s.Annotations, v1alpha1.AnnotationSelect) })
		Eventually(shared.hier("k2-team-b")).WithContext(ctx).Should(unready(copies, v1alpha1.ReasonConflict,
			`Secret "db" from "k2-org": an object of that name exists: rename or delete it`))
		Eventually(shared.hier("k2-org")).WithContext(ctx).Should(And(settled(),
			say(copies, metav1.ConditionFalse, v1alpha1.ReasonDescendantConflict, `k2-team-b: Secret "db"`)))
		Expect(shared.read(ctx, build.Secret("k2-team-b", "db", ""))).To(HaveField("Data", HaveKeyWithValue("key", []byte("theirs"))))
		shared.Delete(ctx, own)
		for _, name := range []string{"k2-team-b", "k2-org"} {
			Eventually(shared.hier(name)).WithContext(ctx).Should(And(settled(), inSync()))
		}
	})

	It("HIER-K4 if org and team-a have a source of one name, svc-1's copy is org's; team-a reports Conflict, and org "+
		"DescendantConflict, but stays Ready", func(ctx SpecContext) {
		shared.Create(ctx, build.Root("k4-org"), build.Child("k4-team-a", "k4-org"), build.Child("k4-svc-1", "k4-team-a"),
			source("k4-team-a", "db"))
		shared.Exists(ctx, build.Secret("k4-svc-1", "db", ""))
		shared.Create(ctx, source("k4-org", "db"))
		Eventually(shared.hier("k4-team-a")).WithContext(ctx).Should(unready(copies, v1alpha1.ReasonConflict, `Secret "db" from "k4-org"`))
		Eventually(shared.hier("k4-org")).WithContext(ctx).
			Should(And(settled(), say(copies, metav1.ConditionFalse, v1alpha1.ReasonDescendantConflict)))
		Eventually(shared.secret("k4-svc-1", "db")).WithContext(ctx).Should(carry(v1alpha1.LabelInheritedFrom, "k4-org"))
	})
})

var _ = Describe("where no policy stands guard", Ordered, ContinueOnFailure, func() {
	var own cluster
	BeforeAll(func(ctx SpecContext) {
		own = startWorld(ctx, devcluster.Options{WithoutPolicies: true, Operator: devcluster.OperatorOptions{Config: fixture}})
	})

	It("HIER-T5 with policies off, a tree label that a user sets on a plain namespace "+
		"is removed, and other labels stay", func(ctx SpecContext) {
		own.Create(ctx, build.Root("t5-org"), build.Namespace("t5-plain", v1alpha1.TreeLabel("t5-org"), "1", "theirs", "1"))
		Eventually(own.ns("t5-plain")).WithContext(ctx).Should(And(lack(v1alpha1.TreeLabel("t5-org")), carry("theirs", "1")))
		own.label(ctx, "t5-plain", v1alpha1.TreeLabel("t5-org")+"=1")
		Eventually(own.ns("t5-plain")).WithContext(ctx).Should(And(lack(v1alpha1.TreeLabel("t5-org")), carry("theirs", "1")))
	})

	It("HIER-V1 when svc-1 moves from team-a to team-b, the old copies are deleted before new ones are created, also of one "+
		"name; copies from org stay untouched; HIER-V2 while a foreign finalizer keeps an old copy, svc-1 reports WaitingForRemoval "+
		"and gets no new copy, but job, its child, does", func(ctx SpecContext) {
		own.Create(ctx, build.Root("v1-org"), build.Child("v1-a", "v1-org"), build.Child("v1-b", "v1-org"), build.Child("v1-svc", "v1-a"),
			build.Child("v1-job", "v1-svc"))
		for from, names := range map[string][]string{"v1-org": {"o1", "o2"}, "v1-a": {"a1", "a2", "a3", "a4", "same"},
			"v1-b": {"b1", "b2", "b3", "b4", "same"}} {
			for _, name := range names {
				own.Create(ctx, source(from, name))
			}
		}
		for _, name := range []string{"o1", "o2", "a1", "a2", "a3", "a4", "same"} {
			for _, namespace := range []string{"v1-svc", "v1-job"} {
				own.Exists(ctx, build.Secret(namespace, name, ""))
			}
		}
		same := own.read(ctx, build.Secret("v1-svc", "same", ""))
		kept := []client.Object{own.read(ctx, build.Secret("v1-svc", "o1", "")), own.read(ctx, build.Secret("v1-svc", "o2", ""))}
		held := own.read(ctx, build.Secret("v1-svc", "a1", ""))
		held.SetFinalizers([]string{"example.com/hold"})
		Expect(own.Admin().Update(ctx, held)).To(Succeed())
		seen, settled := own.secrets(ctx, "v1-svc"), own.settled(ctx)
		own.wish(ctx, "v1-svc", build.Below("v1-b"))
		for _, name := range []string{"b1", "b2", "b3", "b4"} {
			own.Exists(ctx, build.Secret("v1-job", name, ""))
		}
		Eventually(own.hier("v1-svc")).WithContext(ctx).Should(unready(copies, v1alpha1.ReasonWaitingForRemoval, `Secret "a1" from "v1-a"`))
		own.Absent(ctx, build.Secret("v1-svc", "b1", ""))
		Expect(own.settled(ctx)).To(Equal(settled))
		held = own.read(ctx, build.Secret("v1-svc", "a1", ""))
		held.SetFinalizers(nil)
		Expect(own.Admin().Update(ctx, held)).To(Succeed())
		Eventually(own.hier("v1-svc")).WithContext(ctx).Should(And(applied(), inSync()))
		for _, name := range []string{"b1", "b2", "b3", "b4", "same"} {
			own.Exists(ctx, build.Secret("v1-svc", name, ""))
		}
		Eventually(seen.order).WithContext(ctx).Should(HaveExactElements(
			watch.Deleted, watch.Deleted, watch.Deleted, watch.Deleted, watch.Deleted, watch.Added, watch.Added, watch.Added,
			watch.Added, watch.Added))
		Expect(own.read(ctx, build.Secret("v1-svc", "same", "")).GetUID()).NotTo(Equal(same.GetUID()))
		for _, was := range kept {
			now := own.read(ctx, build.Secret("v1-svc", was.GetName(), ""))
			Expect([]string{string(now.GetUID()), now.GetResourceVersion()}).To(Equal([]string{string(was.GetUID()), was.GetResourceVersion()}))
		}
		Eventually(own.settled).WithArguments(ctx).Should(Equal(settled+1), "the move was measured when all was there")
	})

	It("HIER-V3 an operator that is killed between deletes and creates of a move completes it after its start; killed at rest, "+
		"it then writes nothing", func(ctx SpecContext) {
		own.Create(ctx, build.Root("v3-org"), build.Child("v3-a", "v3-org"), build.Child("v3-b", "v3-org"), build.Child("v3-svc", "v3-a"),
			source("v3-org", "o1"), source("v3-a", "a1"), source("v3-a", "same"), source("v3-b", "b1"), source("v3-b", "same"))
		for _, name := range []string{"o1", "a1", "same"} {
			own.Exists(ctx, build.Secret("v3-svc", name, ""))
		}
		kept := own.read(ctx, build.Secret("v3-svc", "o1", ""))
		held := build.Held(own.read(ctx, build.Secret("v3-svc", "a1", "")))
		Expect(own.Admin().Update(ctx, held)).To(Succeed())
		own.wish(ctx, "v3-svc", build.Below("v3-b"))
		Eventually(own.hier("v3-svc")).WithContext(ctx).Should(unready(copies, v1alpha1.ReasonWaitingForRemoval, `Secret "a1" from "v3-a"`))
		Expect(own.Operator.Kill()).To(Succeed())
		own.LetGo(ctx, held)
		Expect(own.Operator.Start(ctx)).To(Succeed())
		own.Exists(ctx, build.Secret("v3-svc", "b1", ""))
		Eventually(own.hier("v3-svc")).WithContext(ctx).Should(And(applied(), inSync()))
		Eventually(own.secret("v3-svc", "same")).WithContext(ctx).Should(carry(v1alpha1.LabelInheritedFrom, "v3-b"))
		own.Gone(ctx, build.Secret("v3-svc", "a1", ""))
		Expect(own.read(ctx, build.Secret("v3-svc", "o1", "")).GetResourceVersion()).To(Equal(kept.GetResourceVersion()))

		own.rests(ctx)
		Expect(own.Operator.Kill()).To(Succeed())
		since := own.Mark(ctx)
		Expect(own.Operator.Start(ctx)).To(Succeed())
		Consistently(own.wrote(since)).WithContext(ctx).WithTimeout(test.Quiet(5 * time.Second)).WithPolling(500 * time.Millisecond).
			Should(BeEmpty())
	})
})

// settled is how many moves the operator has measured.
func (c cluster) settled(ctx context.Context) float64 {
	GinkgoHelper()
	m, err := c.Operator.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	return m.Value("warren_hierarchy_settle_seconds_count", nil)
}

// wrote are the writes since a mark to Namespaces, their HierarchyConfigurations, and copies that exist.
func (c cluster) wrote(since audit.Position) func(context.Context) ([]string, error) {
	return c.writesThat(since, func(r audit.Request) bool {
		return r.Resource == "namespaces" || r.Resource == "hierarchyconfigurations" || r.Resource == "secrets" && r.Verb != "create"
	})
}

// rests waits until the operator has nothing left to write.
func (c cluster) rests(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Consistently(c.wrote(c.Mark(ctx))).WithContext(ctx).WithTimeout(3 * time.Second).Should(BeEmpty())
	}).WithContext(ctx).Should(Succeed(), "everything is settled")
}

// happened are the events of the Secrets of a namespace, without the changes.
type happened struct {
	mu     sync.Mutex
	events []watch.EventType
}

func (h *happened) order() []watch.EventType {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events
}

// secrets watches the Secrets of a namespace from now until the case ends.
func (c cluster) secrets(ctx context.Context, namespace string) *happened {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(c.Admin().List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	w, err := c.Admin().Watch(ctx, &corev1.SecretList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	h := &happened{}
	go func() {
		for event := range w.ResultChan() {
			if event.Type == watch.Modified {
				continue
			}
			h.mu.Lock()
			h.events = append(h.events, event.Type)
			h.mu.Unlock()
		}
	}()
	return h
}

var _ = Describe("the operator starts anew in a forest with problems", Ordered, ContinueOnFailure, func() {
	var own restarted
	BeforeAll(func(ctx SpecContext) { own.begin(ctx) })

	It("HIER-R1 an operator that restarts in a forest of 500 namespaces, beside 10 that are halted, writes no Namespace and no "+
		"HierarchyConfiguration, and changes no copy", func(ctx SpecContext) {
		const many, orphans = 500, 10
		own.Create(ctx, build.Root("r1-org"), source("r1-org", "db"))
		atOnce(10, func(i int) {
			for j := range many / 10 {
				own.Create(ctx, build.Child(fmt.Sprintf("r1-%d", i*many/10+j), "r1-org"))
			}
		})
		for i := range orphans {
			own.Create(ctx, build.Child(fmt.Sprintf("r1-orphan-%d", i), fmt.Sprintf("r1-gone-%d", i)))
		}
		own.Create(ctx, build.Secret("r1-0", "blocked", "x"), source("r1-org", "blocked"))
		for i := range orphans {
			Eventually(own.hier(fmt.Sprintf("r1-orphan-%d", i))).WithContext(ctx).Should(unready(halted, v1alpha1.ReasonParentMissing))
		}
		Eventually(own.hier("r1-0")).WithContext(ctx).Should(unready(copies, v1alpha1.ReasonConflict))
		Eventually(own.hier("r1-org")).WithContext(ctx).Should(And(HaveField("Status.ChildCount", BeEquivalentTo(many)),
			say(copies, metav1.ConditionFalse, v1alpha1.ReasonDescendantConflict)))
		for i := range many {
			own.Exists(ctx, build.Secret(fmt.Sprintf("r1-%d", i), "db", ""))
		}
		own.rests(ctx)
		own.stop()
		since := own.Mark(ctx)
		own.start(ctx)
		Consistently(own.wrote(since)).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).WithPolling(500 * time.Millisecond).
			Should(BeEmpty())
		// The new namespace is last in the operator's queue: when it has its copy, the operator has looked at every copy.
		own.Create(ctx, build.Child("r1-last", "r1-org"))
		own.Exists(ctx, build.Secret("r1-last", "db", ""))
		Eventually(own.wrote(since)).WithContext(ctx).ShouldNot(BeEmpty(), "what it writes for the new namespace")
		Consistently(own.wrote(since)).WithContext(ctx).WithTimeout(test.Quiet(3 * time.Second)).
			Should(HaveEach(Or(ContainSubstring("r1-last"), ContainSubstring("r1-org/hierarchy"))))
	})
})
