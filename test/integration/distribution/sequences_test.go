package distribution_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/suite"
)

const (
	// sequenceSteps is how many steps a sequence has, before it comes to rest.
	sequenceSteps = 12
	// players run sequences side by side, each in namespaces of its own.
	players = 12
)

// stranger is an object that is not the operator's.
type stranger struct {
	namespace       string
	uid             types.UID
	resourceVersion string
	// A guarded stranger is never taken over, whatever the conflictPolicy. An exposed one existed under a conflictPolicy that takes objects
	// over: it may be changed, but never deleted.
	guarded, exposed bool
}

// sequence is a random story of one distribution, with what the operator must leave alone.
type sequence struct {
	*field
	random    *rand.Rand
	there     bool // the ResourceDistribution exists
	takesOver bool // the operator may still follow a conflictPolicy that takes objects over
	strangers map[types.UID]*stranger
	value     int
	story     []string
}

func (s *sequence) note(format string, arguments ...any) {
	s.story = append(s.story, fmt.Sprintf(format, arguments...))
}

func (s *sequence) namespaces() []string { return []string{s.d1, s.d2, s.d3, s.x1} }

func (s *sequence) anyNamespace() string { return s.namespaces()[s.random.IntN(4)] }

// get is the Secret of the sequence in a namespace; nil if there is none.
func (s *sequence) get(ctx context.Context, namespace string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.id}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, err
}

// make makes the ResourceDistribution.
func (s *sequence) make(ctx context.Context) error {
	if s.there {
		return nil
	}
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: s.id}}
	rd.Spec.Targets = s.selecting()
	s.vary(rd)
	s.there = true
	if err := s.Admin().Create(ctx, rd); err != nil {
		return err
	}
	s.note("made: %s", describe(rd))
	return s.settlePolicy(ctx, rd)
}

func describe(rd *v1alpha1.ResourceDistribution) string {
	return fmt.Sprint(rd.Spec.ConflictPolicy, " ", rd.Spec.DriftPolicy, " ", rd.Spec.DeletionPolicy, " suspended ", rd.Spec.Suspend,
		" without ", rd.Spec.Targets.ExcludedNamespaces)
}

// vary fills the spec of a ResourceDistribution at random.
func (s *sequence) vary(rd *v1alpha1.ResourceDistribution) {
	s.value++
	resource := s.secret(map[string]string{"v": strconv.Itoa(s.value)})
	rd.Spec.Resource = raw(resource)
	rd.Spec.ConflictPolicy = draw(s.random, v1alpha1.ConflictFail, v1alpha1.ConflictSkip, v1alpha1.ConflictAdoptIdentical,
		v1alpha1.ConflictOverwrite)
	rd.Spec.DriftPolicy = draw(s.random, v1alpha1.DriftIgnore, v1alpha1.DriftRevert)
	rd.Spec.DeletionPolicy = draw(s.random, v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan)
	rd.Spec.Suspend = s.random.IntN(5) == 0
	rd.Spec.Targets.ExcludedNamespaces = nil
	if s.random.IntN(3) == 0 {
		rd.Spec.Targets.ExcludedNamespaces = references(s.anyNamespace())
	}
}

func draw[T any](random *rand.Rand, all ...T) T { return all[random.IntN(len(all))] }

// settlePolicy records whether the operator may take over objects from now on. If the new policy forbids it, that is so only after the
// operator has read it.
func (s *sequence) settlePolicy(ctx context.Context, rd *v1alpha1.ResourceDistribution) error {
	if rd.Spec.ConflictPolicy == v1alpha1.ConflictAdoptIdentical || rd.Spec.ConflictPolicy == v1alpha1.ConflictOverwrite {
		s.takesOver = true
		for _, one := range s.strangers {
			one.exposed = true
		}
		return nil
	}
	if !s.takesOver {
		return nil
	}
	err := s.await(ctx, "the operator reads the policy", func(ctx context.Context) (bool, error) {
		now := &v1alpha1.ResourceDistribution{}
		err := s.Admin().Get(ctx, client.ObjectKey{Name: s.id}, now)
		return err == nil && now.Status.ObservedGeneration == now.Generation, err
	})
	s.takesOver = false
	return err
}

func (s *sequence) await(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, suite.Patience, true, done); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// alter changes the ResourceDistribution.
func (s *sequence) alter(ctx context.Context) error {
	if !s.there {
		return s.make(ctx)
	}
	rd := &v1alpha1.ResourceDistribution{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := s.Admin().Get(ctx, client.ObjectKey{Name: s.id}, rd); err != nil {
			return err
		}
		s.vary(rd)
		return s.Admin().Update(ctx, rd)
	})
	if err != nil {
		return err
	}
	s.note("changed: %s", describe(rd))
	return s.settlePolicy(ctx, rd)
}

// discard deletes the ResourceDistribution, in one of two ways.
func (s *sequence) discard(ctx context.Context) error {
	if !s.there {
		return nil
	}
	how := draw(s.random, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan)
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: s.id}}
	err := s.Admin().Delete(ctx, rd, client.PropagationPolicy(how))
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is not in force") {
		return nil
	}
	if err != nil {
		return err
	}
	s.note("deleted, %s", how)
	s.there = false
	return s.await(ctx, "the ResourceDistribution is gone", func(ctx context.Context) (bool, error) {
		err := s.Admin().Get(ctx, client.ObjectKey{Name: s.id}, rd)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// check returns an error if a stranger was changed or deleted that should not have been.
func (s *sequence) check(ctx context.Context) error {
	for uid, one := range s.strangers {
		secret, err := s.get(ctx, one.namespace)
		switch {
		case err != nil:
			return err
		case secret == nil || secret.UID != uid:
			return fmt.Errorf("the stranger in %s was deleted", one.namespace)
		case secret.ResourceVersion != one.resourceVersion && (one.guarded || !one.exposed):
			return fmt.Errorf("the stranger in %s was changed: labels %v, annotations %v, data %s", one.namespace, secret.Labels,
				secret.Annotations, secret.Data)
		}
	}
	return nil
}

// rest ends a sequence: it gives the distribution a spec with only one right outcome, and waits for that outcome.
func (s *sequence) rest(ctx context.Context) error {
	if err := s.make(ctx); err != nil {
		return err
	}
	rd := &v1alpha1.ResourceDistribution{}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := s.Admin().Get(ctx, client.ObjectKey{Name: s.id}, rd); err != nil {
			return err
		}
		s.vary(rd)
		rd.Spec.ConflictPolicy, rd.Spec.DeletionPolicy, rd.Spec.Suspend = v1alpha1.ConflictSkip, v1alpha1.DeletionDelete, false
		rd.Spec.Targets = v1alpha1.DistributionTargets{IncludedNamespaces: references(s.namespaces()...)}
		return s.Admin().Update(ctx, rd)
	})
	if err != nil {
		return err
	}
	s.note("at last: %s", describe(rd))
	last := ""
	err = s.await(ctx, "every target has its copy", func(ctx context.Context) (bool, error) {
		if err := s.Admin().Get(ctx, client.ObjectKey{Name: s.id}, rd); err != nil {
			return false, err
		}
		last = fmt.Sprintf("%+v", rd.Status)
		copies := 0
		for _, namespace := range s.namespaces() {
			secret, err := s.get(ctx, namespace)
			if err != nil {
				return false, err
			}
			if secret != nil && string(secret.Data["v"]) == strconv.Itoa(s.value) &&
				strings.HasSuffix(secret.Annotations[v1alpha1.AnnotationSourceHash], ":"+rd.Status.ResourceHash) {
				copies++
			}
		}
		ready := v1alpha1.FindCondition(rd.Status.Conditions, v1alpha1.ConditionReady)
		done := rd.Status.ObservedGeneration == rd.Generation && ready != nil && ready.Status == metav1.ConditionTrue
		return done && int(rd.Status.Current) == copies && copies+int(rd.Status.Conflicts) == 4, nil
	})
	if err != nil {
		return fmt.Errorf("%w; the status is %s", err, last)
	}
	return nil
}

// play runs one sequence, and deletes its distribution at the end.
func (s *sequence) play(ctx context.Context) error {
	for namespace, value := range map[string]string{s.d1: s.id, s.d2: s.id, s.d3: s.id, s.x1: "none"} {
		if err := s.label(ctx, namespace, value); err != nil {
			return err
		}
	}
	steps := []func(context.Context) error{s.plant, s.plant, s.touch, s.touch, s.alter, s.alter, s.alter, s.make, s.discard, s.move, s.raze}
	for range sequenceSteps {
		if err := errors.Join(draw(s.random, steps...)(ctx), s.check(ctx)); err != nil {
			return err
		}
	}
	if err := errors.Join(s.rest(ctx), s.check(ctx)); err != nil {
		return err
	}
	if err := s.Admin().Delete(ctx, &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: s.id}}); err != nil {
		return err
	}
	return s.check(ctx)
}

// interrupt kills the operator again and again until ctx is done, and leaves it running.
func interrupt(ctx context.Context, o *devcluster.Operator, random *rand.Rand) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second + time.Duration(random.Int64N(int64(5*time.Second)))):
		}
		if err := o.Kill(); err != nil {
			return err
		}
		if err := o.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// seed is DISTRIBUTION_SEED, if it is set, or random. All sequences are drawn from it.
func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("DISTRIBUTION_SEED"), 10, 64); err == nil {
		return n
	}
	return rand.Uint64N(1 << 32)
}

var _ = Describe("any sequence of conflicts, edits, moves, deletions and kills", func() {
	It("DIST-D85 1,000 random sequences (`make test-long`; else 60): no object of others is removed, only Overwrite or AdoptIdentical "+
		"changes one; then every target has its copy, and is counted", func(ctx SpecContext) {
		number, from := int64(test.Many(1000, 60)), seed()
		GinkgoWriter.Printf("DISTRIBUTION_SEED=%d draws these %d sequences\n", from, number)
		w, err := devcluster.Start(ctx, devcluster.Options{Components: []string{overwriteComponent},
			Operator: devcluster.OperatorOptions{Config: configuration}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		killing, enough := context.WithCancel(ctx)
		var killer, all errgroup.Group
		killer.Go(func() error { return interrupt(killing, w.Operator, rand.New(rand.NewPCG(from, 0))) })
		var next atomic.Int64
		for range players {
			ground := plough(ctx, w)
			all.Go(func() error {
				defer GinkgoRecover()
				for n := next.Add(1); n <= number; n = next.Add(1) {
					own := *ground
					own.id = fmt.Sprintf("s%d", n)
					s := &sequence{field: &own, random: rand.New(rand.NewPCG(from, uint64(n))), strangers: map[types.UID]*stranger{}}
					if err := s.play(ctx); err != nil {
						return fmt.Errorf("sequence %d of seed %d: %w\n%s", n, from, err, strings.Join(s.story, "\n"))
					}
				}
				return nil
			})
		}
		err = all.Wait()
		enough()
		Expect(errors.Join(err, killer.Wait())).To(Succeed())
	})
})
