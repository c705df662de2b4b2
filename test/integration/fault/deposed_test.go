package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/gate"
)

// succession is a stage with two replicas. The one that leads first is behind the gate.
type succession struct {
	*stage
	old     *devcluster.Operator
	deposed string // the identity of old
}

// newSuccession starts the first replica, and waits until it leads.
func newSuccession(ctx context.Context) *succession {
	GinkgoHelper()
	s := &succession{stage: bareStage(ctx, devcluster.Options{})}
	s.observer = observe(s.World)
	s.old = s.startReplica(ctx, "old", s.Kubeconfig(s.World))
	s.Operator = s.old
	Eventually(s.holder).ShouldNot(BeEmpty())
	s.deposed = s.holder()
	return s
}

func (s *succession) startReplica(ctx context.Context, name, kubeconfig string) *devcluster.Operator {
	GinkgoHelper()
	o, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: kubeconfig, Dir: filepath.Join(s.Dir, name), Config: configuration, Args: []string{"--leader-elect"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(o.Kill)
	return o
}

// holder is the identity of the replica that holds the Lease.
func (s *succession) holder() string {
	lease := &coordinationv1.Lease{}
	if s.Admin().Get(context.Background(), client.ObjectKey{Namespace: "warren-system", Name: v1alpha1.OperatorName}, lease) != nil ||
		lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// freeze stops the first replica, as a machine does that sleeps.
func (s *succession) freeze() { _ = s.old.Process().Signal(syscall.SIGSTOP) }

// succeeds waits until another replica leads.
func (s *succession) succeeds() {
	GinkgoHelper()
	Eventually(s.holder).ShouldNot(BeElementOf("", s.deposed))
}

// thaw lets the first replica go on, and waits until it has ended.
func (s *succession) thaw() {
	GinkgoHelper()
	Expect(s.old.Process().Signal(syscall.SIGCONT)).To(Succeed())
	Eventually(s.old.Process().Done()).Should(BeClosed(), s.old.Log)
	Expect(s.old.Process().ExitCode()).To(Equal(1), s.old.Log)
	Expect(s.holder()).NotTo(BeElementOf("", s.deposed))
}

var _ = Describe("a leader that was frozen while another replica took over", func() {
	It("FLT-F18 ends when it reads that another replica holds the Lease, and its late writes change nothing", func(ctx SpecContext) {
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
		s.Operator = s.startReplica(ctx, "new", s.World.Kubeconfig(controlplane.Operator))

		s.freeze()
		s.succeeds()
		source.Data = map[string][]byte{"key": []byte("2")}
		Expect(s.Admin().Update(ctx, source)).To(Succeed())
		Eventually(readCopy).Should(Equal("2"))
		version := copied.ResourceVersion

		var leaseReads atomic.Int32
		s.Script(func(r gate.Request) gate.Fault {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/leases/"+v1alpha1.OperatorName) {
				leaseReads.Add(1)
			}
			return gate.Fault{}
		})
		s.thaw()
		Expect(leaseReads.Load()).To(BeNumerically("<=", 1), "it ends at once, and neither tries again nor waits")
		Expect(readCopy()).To(Equal("2"))
		Expect(copied.ResourceVersion).To(Equal(version))
	})

	// The replica is frozen with copies in its queue, which it would still create for a place that the subtree has left meanwhile. No
	// precondition refuses a POST.
	It("FLT-F18 creates no copy that was in its queue when it was frozen in the middle of story FLT-S5", func(ctx SpecContext) {
		s := newSuccession(ctx)
		scene := s.scene("f18")
		twoTenants(ctx, scene)
		s.Operator = s.startReplica(ctx, "new", s.World.Kubeconfig(controlplane.Operator))

		var created atomic.Int32
		s.scripts.set(scene.key, func(r gate.Request) (gate.Fault, bool) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") && created.Add(1) == 3 {
				return gate.Fault{LoseAnswer: true, Then: s.freeze}, true
			}
			return gate.Fault{}, false
		})
		change(ctx, scene, build.Namespace(scene.own("m0")), func(n *corev1.Namespace) {
			n.Labels[v1alpha1.LabelParent] = scene.own("second")
		})
		s.succeeds()
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
		Expect(created.Load()).To(BeNumerically("<", 15), "it was frozen with copies in its queue")
		mark := len(s.eventsOf(scene.key))
		s.thaw()
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
