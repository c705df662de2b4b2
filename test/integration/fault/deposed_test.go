package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/gate"
)

// succession is a stage with two replicas, of which the old one leads first.
type succession struct {
	*stage
	old     *replica
	deposed string // the identity of old
}

// newSuccession starts the old replica, and waits until it leads.
func newSuccession(ctx context.Context) *succession {
	GinkgoHelper()
	s := &succession{stage: bareStage(ctx, devcluster.Options{})}
	s.observer = observe(s.World)
	s.old = startReplica(ctx, s.World, "old", "--leader-elect")
	Eventually(ctx, s.holder).ShouldNot(BeEmpty())
	var err error
	s.deposed, err = s.holder(ctx)
	Expect(err).NotTo(HaveOccurred())
	return s
}

// startSuccessor starts the new replica. It waits for the Lease.
func (s *succession) startSuccessor(ctx context.Context) {
	GinkgoHelper()
	s.Operator = startReplica(ctx, s.World, "new", "--leader-elect").operator
}

// freeze stops the old replica, as a machine does that sleeps.
func (s *succession) freeze() { _ = s.old.operator.Process().Signal(syscall.SIGSTOP) }

// awaitSuccessor waits until the new replica leads.
func (s *succession) awaitSuccessor(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, s.holder).ShouldNot(BeElementOf("", s.deposed))
}

// thaw lets the old replica go on, and waits until it has ended.
func (s *succession) thaw(ctx context.Context) {
	GinkgoHelper()
	process := s.old.operator.Process()
	Expect(process.Signal(syscall.SIGCONT)).To(Succeed())
	Eventually(process.Done()).Should(BeClosed(), s.old.operator.Log)
	Expect(process.ExitCode()).To(Equal(1), s.old.operator.Log)
	Expect(s.holder(ctx)).NotTo(BeElementOf("", s.deposed))
}

var _ = Describe("a leader that was frozen while another replica took over", func() {
	It("FLT-F18 a leader that was frozen until another replica led ends with status 1 at its first read of the Lease; it changes no copy "+
		"that the other wrote", func(ctx SpecContext) {
		s := newSuccession(ctx)
		copied := build.Secret("frozen-a", "source", "")
		readCopy := func() (string, error) {
			err := s.Admin().Get(ctx, client.ObjectKeyFromObject(copied), copied)
			return string(copied.Data["key"]), err
		}
		source := build.Source(build.Secret("frozen", "source", "1"), v1alpha1.ModeUpdate)
		for _, o := range []client.Object{build.Root("frozen"), build.Child("frozen-a", "frozen"), source} {
			Expect(s.Admin().Create(ctx, o)).To(Succeed())
		}
		Eventually(readCopy).Should(Equal("1"))
		s.startSuccessor(ctx)

		s.freeze()
		s.awaitSuccessor(ctx)
		source.Data = map[string][]byte{"key": []byte("2")}
		Expect(s.Admin().Update(ctx, source)).To(Succeed())
		Eventually(readCopy).Should(Equal("2"))
		version := copied.ResourceVersion

		var leaseReads atomic.Int32
		s.old.Script(func(r gate.Request) gate.Fault {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/leases/"+v1alpha1.OperatorName) {
				leaseReads.Add(1)
			}
			return gate.Fault{}
		})
		s.thaw(ctx)
		Expect(leaseReads.Load()).To(BeNumerically("<=", 1), "it ends at once, and neither tries again nor waits")
		Expect(readCopy()).To(Equal("2"))
		Expect(copied.ResourceVersion).To(Equal(version))
	})

	// The replica is frozen with copies in its queue, which it would still create for a place that the subtree has left meanwhile. No
	// precondition refuses a POST.
	It("FLT-F18 a leader that was frozen in the middle of story S5 creates, when it goes on, none of the copies that were in "+
		"its queue", func(ctx SpecContext) {
		s := newSuccession(ctx)
		scene := s.scene("f18")
		twoTenants(ctx, scene)
		s.startSuccessor(ctx)

		var created atomic.Int32
		s.old.Script(func(r gate.Request) gate.Fault {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/configmaps") {
				return gate.Fault{}
			}
			switch n := created.Add(1); {
			case n == 3:
				return gate.Fault{LoseAnswer: true, Then: s.freeze}
			case n > 3: // it stays in the queue, however many workers there are
				return gate.Fault{LoseRequest: true}
			}
			return gate.Fault{}
		})
		change(ctx, scene, build.Namespace(scene.own("m0")), func(n *corev1.Namespace) {
			n.Labels[v1alpha1.LabelParent] = scene.own("second")
		})
		s.awaitSuccessor(ctx)
		moves(ctx, scene) // the other replica goes on with it
		change(ctx, scene, build.Namespace(scene.own("m0")), func(n *corev1.Namespace) {
			n.Labels[v1alpha1.LabelParent] = scene.own("first")
		})
		for i := range 5 {
			for n := range 3 {
				scene.exist(ctx, build.ConfigMap(scene.own(fmt.Sprint("m", i)), fmt.Sprint("of-first", n), ""))
				scene.gone(ctx, build.ConfigMap(scene.own(fmt.Sprint("m", i)), fmt.Sprint("of-second", n), ""))
			}
		}
		copies := func() (from []string, err error) {
			objects, err := s.objectsOf(scene.key)
			for _, o := range objects {
				if root := o.GetLabels()[v1alpha1.LabelInheritedFrom]; o.GetKind() == "ConfigMap" && root != "" {
					from = append(from, root)
				}
			}
			return from, err
		}
		Eventually(copies).Should(And(HaveLen(15), HaveEach(scene.own("first"))), "the observer has seen the end, too")
		mark := len(s.eventsOf(scene.key))
		s.old.Script(nil)
		s.thaw(ctx)
		Consistently(ctx, func() (late []string) {
			for _, e := range s.eventsOf(scene.key)[mark:] {
				if e.object.GetKind() == "ConfigMap" {
					late = append(late, fmt.Sprint(e.kind, " ", placeOf(e.object)))
				}
			}
			return late
		}).WithTimeout(test.Quiet(time.Minute)).Should(BeEmpty())
	})
})
