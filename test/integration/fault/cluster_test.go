package fault_test

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// rendezvous has scenes wait for each other before something happens to all of them.
type rendezvous struct {
	mu       sync.Mutex // guards what follows
	expected int
	waiting  []chan struct{}
}

// meet returns after all expected scenes have called it, and the last of them has called do.
func (r *rendezvous) meet(do func()) {
	r.mu.Lock()
	if len(r.waiting)+1 < r.expected {
		met := make(chan struct{})
		r.waiting = append(r.waiting, met)
		r.mu.Unlock()
		<-met
		return
	}
	waiting := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	defer func() {
		for _, met := range waiting {
			close(met)
		}
	}()
	do()
}

// leave removes a scene that has failed: no other waits for it.
func (r *rendezvous) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expected--; r.expected > 0 && len(r.waiting) == r.expected {
		for _, met := range r.waiting {
			close(met)
		}
		r.waiting = nil
	}
}

// configure has the operator start again with another configuration, once for all scenes.
func (s *scene) configure(ctx context.Context, text string) {
	GinkgoHelper()
	s.together.meet(func() {
		Expect(s.Operator.WriteConfig(text)).To(Succeed())
		life := 0
		Eventually(ctx, func() bool { // a process that has just begun does not handle SIGTERM yet: it would die as by SIGKILL
			life = s.now()
			return s.isReady(ctx, life)
		}).Should(BeTrue(), s.explain)
		s.terminate(life)
		Eventually(ctx, s.isReady).WithArguments(life+1).Should(BeTrue(), s.explain)
	})
}

// configured is a configuration that adds these kinds to the usual ones, and these lines.
func configured(kinds, more string) string {
	return `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
propagation:
  kinds: [{kind: Secret}, {group: rbac.authorization.k8s.io, kind: Role}, {group: rbac.authorization.k8s.io, kind: RoleBinding}, ` +
		kinds + "]\n" + more
}

const (
	gadgets    = "{group: example.com, kind: Gadget}"
	configMaps = "{kind: ConfigMap}"
)

// clusterStories are stories that concern the whole cluster: all plans of a batch run at once, and the operator restarts for all of them
// together.
var clusterStories = []story{
	{
		id: "S11", title: "the mode of sudo becomes Constrained, and Legacy again", sparse: 3,
		given: func(ctx context.Context, s *scene) {
			tenant(ctx, s)
			s.regrants = true
		},
		play: func(ctx context.Context, s *scene) {
			for _, mode := range []v1alpha1.SudoMode{v1alpha1.SudoConstrained, v1alpha1.SudoLegacy} {
				s.configure(ctx, configured(configMaps+","+gadgets, fmt.Sprintf("sudo: {mode: %s}\n", mode)))
				Eventually(ctx, func(g Gomega) {
					lns := s.payments().Object()
					g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(lns), lns)).To(Succeed())
					g.Expect(lns.Status.Sudo).NotTo(BeNil())
					g.Expect(lns.Status.Sudo.Mode).To(Equal(mode))
				}).Should(Succeed(), s.explain)
				s.ready(ctx)
			}
		},
	},
	{
		id: "S12", title: "a kind comes with a pattern that excludes, and another kind is removed", sparse: 2,
		given: func(ctx context.Context, s *scene) {
			s.create(ctx, build.Root(s.own("root")), build.Child(s.own("child"), s.own("root")))
			s.plant(ctx, s.own("child"))
			s.configure(ctx, configured(configMaps, ""))
			s.create(ctx, build.Source(build.ConfigMap(s.own("root"), "c", "1"), v1alpha1.ModeUpdate),
				build.Source(build.Secret(s.own("root"), "s", "1", "team/colour", "red"), v1alpha1.ModeUpdate), gadget(s.own("root")))
			s.exist(ctx, build.ConfigMap(s.own("child"), "c", ""), build.Secret(s.own("child"), "s", ""))
		},
		play: func(ctx context.Context, s *scene) {
			s.configure(ctx, configured(configMaps+","+gadgets, "  excludedLabels: [\"team/*\"]\n"))
			s.exist(ctx, gadget(s.own("child")))
			s.create(ctx, build.Source(build.Secret(s.own("root"), "later", "1", "team/colour", "red"), v1alpha1.ModeUpdate))
			later := build.Secret(s.own("child"), "later", "")
			s.exist(ctx, later)
			Expect(later.Labels).NotTo(HaveKey("team/colour"))
			s.configure(ctx, configured("{kind: ConfigMap, mode: Remove},"+gadgets, "  excludedLabels: [\"team/*\"]\n"))
			s.gone(ctx, build.ConfigMap(s.own("child"), "c", ""))
			// A source that stayed would be copied again for the next scenes. Too many copies to remove, and a configuration is refused.
			s.remove(ctx, build.ConfigMap(s.own("root"), "c", ""))
			s.remove(ctx, gadget(s.own("root"))) // a configuration without the kind is not applied while copies of the kind exist
			s.gone(ctx, gadget(s.own("child")))
		},
	},
}

// leaving has a scene that fails leave the rendezvous, so that no other waits.
func leaving(play func(context.Context, *scene)) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		ended := false
		defer func() {
			if !ended {
				s.together.leave()
			}
		}()
		play(ctx, s)
		ended = true
	}
}

var _ = Describe("an operator that meets a fault while the whole cluster changes", Ordered, ContinueOnFailure, func() {
	var st *stage

	BeforeAll(func(ctx SpecContext) {
		st = newStage(ctx, devcluster.Options{})
	})

	for _, story := range clusterStories {
		It(fmt.Sprintf("FLT-F01 with a fault at a write of stories S11 and S12, the invariants hold, and the cluster ends as without the "+
			"fault: story %s, %s", story.id, story.title), func(ctx SpecContext) {
			st.together.expected = 1
			story.play = leaving(story.play)
			calm := st.rehearse(ctx, story)
			Expect(calm.writes).To(BeNumerically(">", 0))
			before, plans := st.now(), story.plans(calm.writes)
			var outcomes []outcome
			for _, batch := range batches(plans, atOnce) { // all of a batch wait for each other
				st.together.expected = len(batch)
				outcomes = append(outcomes, st.playPlans(ctx, story, calm, batch)...)
			}
			report(story, calm, st.now()-before, outcomes)
			Expect(wrongOf(outcomes)).To(BeEmpty())
		})
	}

	It("writes nothing in the end", func(ctx SpecContext) {
		st.rests(ctx)
		st.checkProcess()
	})
})

// gadget is a source of the custom kind.
func gadget(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"colour": "red"}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
	u.SetNamespace(namespace)
	u.SetName("g")
	u.SetLabels(map[string]string{v1alpha1.LabelPropagate: v1alpha1.ModeUpdate})
	return u
}
