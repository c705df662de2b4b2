package fault_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/gate"
)

// holder is the identity that holds the operator's Lease.
func (s *stage) holder(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := s.Admin().Get(ctx, client.ObjectKey{Namespace: "warren-system", Name: v1alpha1.OperatorName}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

var _ = Describe("an operator that holds a Lease", Ordered, ContinueOnFailure, func() {
	var st *stage

	BeforeAll(func(ctx SpecContext) {
		st = newStage(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Args: []string{"--leader-elect"}}})
	})

	It("FLT-F02 given SIGTERM at a write of stories S2 and S6 (with `make test-long` at each), the operator finishes its writes and "+
		"releases the Lease; the story ends as without", func(ctx SpecContext) {
		var cut, kept atomic.Int32
		terminated := fault{name: "terminate", at: func(s *stage, life int, r gate.Request) gate.Fault {
			return gate.Fault{Then: func() {
				go s.terminate(life)
				select { // the answer comes a while after the signal
				case <-time.After(time.Second):
				case <-r.Context().Done():
					cut.Add(1)
				}
			}}
		}}
		st.whenTerminated = func() {
			if holder, err := st.holder(ctx); err == nil && holder != "" {
				kept.Add(1)
			}
		}
		for _, story := range stories {
			if story.id != "S2" && story.id != "S6" {
				continue
			}
			calm := st.rehearse(ctx, story)
			var plans []plan
			for write := 1; write <= calm.writes; write += sparser(4) {
				plans = append(plans, plan{fault: terminated, write: write})
			}
			Expect(wrongOf(st.playPlans(ctx, story, calm, plans))).To(BeEmpty())
		}
		Expect(cut.Load()).To(BeZero(), "writes in flight are finished")
		Expect(kept.Load()).To(BeZero(), "the Lease is released")
		st.checkProcess()
	})

	It("FLT-F17 when the API server refuses its Lease for 20 s, the leader ends with status 1; its last write is less than 10 s after its "+
		"last renewal", func(ctx SpecContext) {
		s := st.scene("f17")
		s.bush(ctx)
		s.create(ctx, s.source("s", "0"))
		s.copied(ctx, "n0", "s", "0")
		life := st.now()
		var mu sync.Mutex // guards what follows
		var renewed, wrote time.Time
		isLast := false // the last renewal that the API server answers is under way, or was answered at renewed
		st.Script(func(r gate.Request) gate.Fault {
			mu.Lock()
			defer mu.Unlock()
			switch renews := strings.Contains(r.URL.Path, "/leases/") && r.Method != http.MethodGet; {
			case renews && !isLast:
				isLast = true
				return gate.Fault{Then: func() { mu.Lock(); defer mu.Unlock(); renewed = time.Now() }}
			case renews && (renewed.IsZero() || time.Since(renewed) < 20*time.Second):
				return gate.Fault{Code: http.StatusInternalServerError}
			case isWrite(r.Request) && st.now() == life:
				wrote = time.Now()
			}
			return gate.Fault{}
		})
		ended := st.Operator.Process().Done()
		for { // there is something to write all the while
			change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte(time.Now().String()) })
			select {
			case <-ended:
			case <-time.After(100 * time.Millisecond):
				continue
			}
			break
		}
		mu.Lock()
		Expect(wrote).To(And(BeTemporally(">", renewed), BeTemporally("<", renewed.Add(10*time.Second))), "it writes until it ends")
		mu.Unlock()
		Expect(st.Operator.Process().ExitCode()).To(Equal(1), s.explain)
		change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte("last") })
		st.succeed(life)
		s.copied(ctx, "n0", "s", "last")
		st.Script(nil)
	})
})

// sparser is the step between writes that meet a fault: 1 in long runs and with everyFault.
func sparser(step int) int {
	if everyFault || test.IsLong() {
		return 1
	}
	return step
}

// succeed starts the operator again after a life that has ended by itself, as a Deployment would.
func (s *stage) succeed(life int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == life && s.alive {
		s.alive = false
		s.dead <- struct{}{}
	}
}

// replica is an operator behind a gate of its own.
type replica struct {
	*gate.Gate
	operator *devcluster.Operator
}

func startReplica(ctx context.Context, w *devcluster.World, name string, args ...string) *replica {
	GinkgoHelper()
	r := &replica{Gate: gate.New(w)}
	var err error
	r.operator, err = devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: r.Kubeconfig(w), Dir: filepath.Join(w.Dir, name), Config: configuration, Args: args,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.operator.Kill)
	return r
}

var _ = Describe("two operators", Ordered, ContinueOnFailure, func() {
	It("FLT-F20 when the leader of two replicas is killed at a write of story S2 (with `make test-long` at each), the other leads; no "+
		"revoked right returns", func(ctx SpecContext) {
		st := newStage(ctx, devcluster.Options{Operator: devcluster.OperatorOptions{Args: []string{"--leader-elect"}}})
		var story story
		for _, of := range stories {
			if of.id == "S2" {
				story = of
			}
		}
		calm := st.rehearse(ctx, story)
		both := []*replica{{Gate: st.Gate, operator: st.Operator}, startReplica(ctx, st.World, "other", "--leader-elect")}
		killed := 0
		for write := 1; write <= calm.writes; write += sparser(max(1, calm.writes/2)) {
			s, c := st.newScene(ctx, story, plan{write: write}.String(), plan{})
			var counting sync.Mutex // decide and count belong together
			met := make(chan int, 2)
			for i, r := range both {
				r.Script(func(q gate.Request) gate.Fault {
					if !isOf(s.key, q) || !isWrite(q.Request) {
						return gate.Fault{}
					}
					counting.Lock()
					defer counting.Unlock()
					if c.decide(q); c.count() != write {
						return gate.Fault{}
					}
					return gate.Fault{LoseAnswer: true, Then: func() {
						_ = r.operator.Kill()
						met <- i
					}}
				})
			}
			begun := s.begin(ctx)
			story.play(ctx, s)
			s.endsAs(ctx, calm)
			begun.stop()
			Expect(s.rights.broken(ctx, s)).To(BeEmpty(), "FLT-I2")
			for _, r := range both {
				r.Script(nil)
			}
			if c.count() < write {
				continue // the run without a fault wrote a status more often
			}
			var dead int
			Eventually(met).Should(Receive(&dead))
			killed++
			Expect(both[1-dead].operator.Process().Running()).To(BeTrue(), "the other one has taken over")
			Expect(both[dead].operator.Start(ctx)).To(Succeed())
		}
		Expect(killed).To(BeNumerically(">", 0))
	})

	It("FLT-F19 two operators without leader election, beside each other for a minute (`make test-long`), send at most twice the writes of "+
		"one; all stories end as without", func(ctx SpecContext) {
		skipUnlessLong("two minutes of war")
		st := newStage(ctx, devcluster.Options{})
		played := []string{"S1", "S2", "S4", "S5", "S6"}
		endings := rehearseAll(ctx, st, played...)
		startReplica(ctx, st.World, "other")
		mark, err := st.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		began := time.Now()
		playAll(ctx, st, "both", endings)
		st.restsFor(ctx, time.Until(began.Add(time.Minute)))
		writes, err := st.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		calm, twice := 0, map[string]int{}
		for _, of := range endings {
			calm += of.writes
		}
		for _, w := range writes {
			if w.Code < 300 {
				twice[w.Verb+" "+w.Resource+" "+w.Namespace+"/"+w.Name]++
			}
		}
		given := 2 // the operators also write what a story is given, such as a tenant with five children, which calm does not count
		Expect(len(writes)).To(BeNumerically("<=", given*2*calm), "%v", twice)
	})
})

// restsFor waits until the operators stop writing, and checks that they write nothing for d.
func (s *stage) restsFor(ctx context.Context, d time.Duration) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		mark, err := s.Mark(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Consistently(ctx, func() ([]audit.Request, error) { return s.Writes(ctx, mark) }).
			WithTimeout(max(d, test.Quiet(soon))).WithPolling(500 * time.Millisecond).Should(BeEmpty())
	}).WithTimeout(3 * time.Minute).Should(Succeed())
}
