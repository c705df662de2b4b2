// Package fault_test kills the operator at each of its writes, and takes the API server's answers away from it. It checks that the
// cluster ends as it would have ended without these faults: docs/behaviour/faults.md.
//
// A rehearsal plays a story without a fault. It determines how many writes the story has, and the state in which the story ends. A plan
// is a fault at one write. A scene is one run of a story, with names of its own. Many scenes run at once, so each of them is also
// affected by the ends of the operator and the frozen watches that the others cause: each end of a process counts as a fault (FLT-I6).
// Beside a plan that affects the watches, no writes are counted, because the operator repeats writes that its watches don't show yet.
//
// The invariants are measured so:
//
//   - FLT-I1, FLT-I5, FLT-I8: a watch runs during the scene. Each change and deletion is matched with its author in the audit log.
//     Objects that a user has in each namespace (a ConfigMap, a Secret, a claim, a custom resource) must keep their UID and content.
//   - FLT-I2: SubjectAccessReviews are sent all the while, for each revoked subject and for a user on no list.
//   - FLT-I3, FLT-I6: the audit log.
//   - FLT-I4: the state, with its conditions, is compared with that of the rehearsal, without UIDs, versions, times and generated names.
//   - FLT-I7: exit status, log, memory.
//
// The patterns come from two papers. A kill between two writes shows defects in intermediate states, late watches show those of stale
// states, and lost events show those of unobserved states: Sieve (OSDI 2022) found 46 bugs in ten controllers so. That different ways to
// a state must end in the same state is the oracle of Acto (SOSP 2023), which found 56 bugs in eleven operators. FLT-F01, FLT-F10,
// FLT-F14 and FLT-F26 are failures of operators like this one.
package fault_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/gate"
	"github.com/warren-tenancy/warren/test/suite"
)

// everyFault has each story meet each fault at each write. By default, kill-after meets each write, or fewer in stories with many writes,
// and some other faults meet one write each.
var everyFault = os.Getenv("WARREN_FAULTS") == "all"

// soon is how long a case watches that nothing happens.
const soon = 5 * time.Second

func TestFault(t *testing.T) { suite.Run(t, "fault") }

const configuration = `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
propagation:
  kinds:
  - {kind: Secret}
  - {kind: ConfigMap}
  - {group: rbac.authorization.k8s.io, kind: RoleBinding}
  - {group: rbac.authorization.k8s.io, kind: Role}
  - {group: example.com, kind: Gadget}
`

// withConfiguration are the options of a World whose operator has the suite's configuration.
var withConfiguration = devcluster.Options{Operator: devcluster.OperatorOptions{Config: configuration}}

// stage is a World whose operator reaches the API server through a gate. It can be killed at any moment, and is started again.
type stage struct {
	*devcluster.World
	*gate.Gate
	*observer
	scripts  scripts
	together rendezvous
	dead     chan struct{}
	// whenTerminated, unless nil, is called when a life has ended by SIGTERM, before the next begins.
	whenTerminated func()

	mu       sync.Mutex // guards what follows
	life     int        // counts the starts of the operator
	alive    bool
	ends     []string          // how lives ended that the stage did not end
	peak     int               // the most memory of any life, in KiB
	calmPeak int               // the most memory while stories were rehearsed, in KiB; 0 if none was
	endings  map[string]ending // by story, how it ends without a fault
	codes    []int             // the exit codes of lives that SIGTERM ended
	blinded  int               // how often its watches were frozen, lost events or were late
	sees     time.Time         // until when its watches are disturbed
}

// guarded is the stage that the cases of a process share. The policies are in force on it.
var guarded *stage

var _ = BeforeSuite(func(ctx SpecContext) {
	guarded = newStage(ctx, devcluster.Options{})
})

func newStage(ctx context.Context, options devcluster.Options) *stage {
	GinkgoHelper()
	if options.Operator.Config == "" {
		options.Operator.Config = configuration
	}
	s := bareStage(ctx, options)
	s.StartOperatorWith(ctx, s.World, options.Operator)
	s.observer, s.dead = observe(s.World), make(chan struct{}, 1)
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

// bareStage is a stage without an operator. It has a gate alone: no observer, which would keep thousands of objects, and nothing that
// starts an operator again.
func bareStage(ctx context.Context, options devcluster.Options) *stage {
	GinkgoHelper()
	options.WithoutOperator = true
	options.Components = append(options.Components, "config/components/distribution")
	w, err := devcluster.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	for _, crd := range []string{"Widget", "Gadget"} {
		Expect(w.Admin().Create(ctx, build.CustomResource("example.com", crd, strings.ToLower(crd)+"s"))).To(Succeed())
	}
	s := &stage{World: w, Gate: gate.New(w), life: 1, alive: true, endings: map[string]ending{}}
	s.Gate.Script(s.scripts.decide)
	return s
}

// now is the life that the operator is in.
func (s *stage) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

func (s *stage) isAlive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alive
}

// kill ends that life of the operator, unless it is over.
func (s *stage) kill(life int) { s.end(life, s.Operator.Kill) }

// terminate ends that life of the operator by SIGTERM, unless it is over.
func (s *stage) terminate(life int) {
	s.end(life, func() error {
		code, err := s.Operator.Stop()
		if s.whenTerminated != nil {
			s.whenTerminated()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.codes = append(s.codes, code)
		return err
	})
}

func (s *stage) end(life int, by func() error) {
	s.mu.Lock()
	if s.life != life || !s.alive {
		s.mu.Unlock()
		return
	}
	s.alive = false
	s.measure()
	if !s.Operator.Process().Running() {
		s.ends = append(s.ends, fmt.Sprintf("life %d ended by itself: %s", life, s.Operator.Process().LogTail(20)))
	}
	s.mu.Unlock()
	_ = by() // it fails where the operator has ended by itself; its log then says why
	s.dead <- struct{}{}
}

// measure keeps the most memory that the operator has had.
func (s *stage) measure() { s.peak = max(s.peak, peakOf(s.Operator.Process().PID())) }

// peakOf is the most memory that a process has had, in KiB; 0 where the machine doesn't say.
func peakOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	var peak int
	_, _ = fmt.Sscan(after, &peak)
	return peak
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
