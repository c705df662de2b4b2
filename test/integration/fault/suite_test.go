// Package fault_test takes the operator down at each of its writes, and the API server's answers from it, and looks whether the
// cluster ends as it would have ended without: docs/behaviour/faults.md.
package fault_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/gate"
	"github.com/warren-tenancy/warren/test/suite"
)

// everyFault has each story meet each fault at each write. By default only kill-after does, and stories that write much are
// thinned out.
var everyFault = os.Getenv("WARREN_FAULTS") == "all"

// soon is how long a case looks on where nothing shall happen.
const soon = 5 * time.Second

func TestFault(t *testing.T) { suite.Run(t, "fault") }

const configuration = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
propagation:
  retry: {min: 200ms, max: 2s}
  kinds:
  - {kind: Secret}
  - {kind: ConfigMap}
  - {group: rbac.authorization.k8s.io, kind: RoleBinding}
  - {group: rbac.authorization.k8s.io, kind: Role}
`

// stage is a World whose operator stands behind a gate, and can be killed at any moment; it comes back by itself.
type stage struct {
	*devcluster.World
	*gate.Gate
	dead chan struct{}

	mu    sync.Mutex
	life  int // counts the starts of the operator
	alive bool
}

// guarded is the stage that the cases of a process share, one after the other. The policies are in force on it.
var guarded *stage

var _ = BeforeSuite(func(ctx SpecContext) {
	guarded = newStage(ctx, devcluster.Options{})
})

func newStage(ctx context.Context, options devcluster.Options) *stage {
	GinkgoHelper()
	options.WithoutOperator, options.Operator.Config = true, configuration
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	s := &stage{World: w, Gate: gate.New(w), dead: make(chan struct{}, 1), life: 1, alive: true}
	s.Gate.StartOperator(ctx, w, configuration)
	reviving, enough := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.revive(reviving)
	}()
	DeferCleanup(func() {
		enough()
		<-done
	})
	return s
}

// now is the life that the operator is in.
func (s *stage) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// kill ends that life of the operator, unless it is over.
func (s *stage) kill(life int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != life || !s.alive {
		return
	}
	s.alive = false
	_ = s.Operator.Kill() // it fails where the operator has ended by itself; its log then says why
	s.dead <- struct{}{}
}

// revive starts the operator whenever it has been killed, until ctx is done.
func (s *stage) revive(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dead:
		}
		s.mu.Lock()
		s.life, s.alive = s.life+1, true
		s.mu.Unlock()
		_ = s.Operator.Start(ctx) // it fails where the operator is killed before it is ready
	}
}
