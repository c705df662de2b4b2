package fault_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/warren-tenancy/warren/test/gate"
	"github.com/warren-tenancy/warren/test/suite"
)

// fault is what may happen at a write.
type fault struct {
	name string
	// at decides what happens to the write; life is the life of the operator in which it was sent.
	at func(s *stage, life int, r gate.Request) gate.Fault
	// twice is set if the first write of the operator's next life meets the fault, too.
	twice bool
	// blinds is set if the fault affects the watches, and so all scenes that run at the time.
	blinds bool
}

// faults are all faults. Their order decides which of them a story meets if it does not meet all.
var faults = []fault{
	{name: "kill-after", at: func(s *stage, life int, _ gate.Request) gate.Fault {
		return gate.Fault{LoseAnswer: true, Then: func() { s.kill(life) }}
	}},
	{name: "kill-before", at: func(s *stage, life int, _ gate.Request) gate.Fault {
		return gate.Fault{LoseRequest: true, Then: func() { s.kill(life) }}
	}},
	{name: "kill-twice", twice: true, at: func(s *stage, life int, _ gate.Request) gate.Fault {
		return gate.Fault{LoseAnswer: true, Then: func() { s.kill(life) }}
	}},
	{name: "lose-answer", at: func(*stage, int, gate.Request) gate.Fault { return gate.Fault{LoseAnswer: true} }},
	{name: "fail", at: func(*stage, int, gate.Request) gate.Fault { return gate.Fault{Code: http.StatusInternalServerError} }},
	{name: "delay", at: func(*stage, int, gate.Request) gate.Fault { return gate.Fault{Delay: 2 * time.Second} }},
	{name: "duplicate", at: func(*stage, int, gate.Request) gate.Fault { return gate.Fault{Twice: true} }},
	{name: "freeze-watch", blinds: true, at: func(s *stage, _ int, _ gate.Request) gate.Fault {
		s.blind(false)
		return gate.Fault{}
	}},
	{name: "gap", blinds: true, at: func(s *stage, _ int, _ gate.Request) gate.Fault {
		s.blind(true)
		return gate.Fault{}
	}},
	{name: "lag", blinds: true, at: func(s *stage, life int, _ gate.Request) gate.Fault {
		return gate.Fault{LoseAnswer: true, Then: func() { s.lag(life) }}
	}},
}

// plan is a fault at one write of a story, counted from 1.
type plan struct {
	fault fault
	write int
}

// String is the plan's part of the scene's key.
func (p plan) String() string {
	return fmt.Sprintf("%s%d", strings.ReplaceAll(cmp.Or(p.fault.name, "at"), "-", ""), p.write)
}

// plans are the plans of a story with so many writes: with everyFault, each fault at each write. Otherwise kill-after meets each
// sparse-th write. Of the other faults, every second one meets one write, each at another place. Stories with odd numbers have one half
// of these faults, stories with even numbers the other half.
func (s story) plans(writes int) (all []plan) {
	half := int(s.id[1]) % 2
	for i, fault := range faults {
		for write := 1; write <= writes; write++ {
			if everyFault || i == 0 && (write-1)%max(s.sparse, 1) == 0 || i > 0 && i%2 == half && write == 1+(i*writes/len(faults))%writes {
				all = append(all, plan{fault: fault, write: write})
			}
		}
	}
	return all
}

// counter counts the writes of a scene, and lets one meet its fault.
type counter struct {
	stage *stage
	plan  plan

	mu     sync.Mutex // guards what follows
	writes int
	// objects counts the writes that FLT-I6 is about. It leaves out the writes of a status, whose number depends on time. It also leaves out
	// the first deletion of an object, which Kubernetes itself may do first.
	objects int
	sent    []string    // all writes, in their order
	lives   map[int]int // writes by life of the operator
	met     []int       // the lives that met the fault
	blinded int         // how often the operator was blind before the scene began
	cut     int         // writes that were in flight when the operator died
}

func (c *counter) decide(r gate.Request) (gate.Fault, bool) {
	if !isWrite(r.Request) {
		return gate.Fault{}, false
	}
	life := c.stage.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	write := r.Method + " " + r.URL.Path
	if !strings.HasSuffix(write, "/status") && (r.Method != http.MethodDelete || slices.Contains(c.sent, write)) {
		c.objects++
	}
	c.sent = append(c.sent, write)
	c.lives[life]++
	context.AfterFunc(r.Context(), func() { // the request has ended, perhaps with the operator
		time.AfterFunc(100*time.Millisecond, func() {
			if isDead := c.stage.now() != life || !c.stage.isAlive(); isDead {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.cut++
			}
		})
	})
	again := c.plan.fault.twice && len(c.met) == 1 && c.met[0] != life
	if c.plan.write == 0 || c.writes != c.plan.write && !again {
		return gate.Fault{}, false
	}
	c.met = append(c.met, life)
	return c.plan.fault.at(c.stage, life, r), true
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// faults counts what a scene has met: the lives of the operator that ended in its course, the times that the operator was blind, and the
// scene's own fault.
func (c *counter) faults() int {
	blinded := c.stage.blindings()
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(len(c.lives)-1, 0) + blinded - c.blinded + max(len(c.met), 1)
}

// amplifies reports whether more of the writes that count for FLT-I6 were sent than the faults explain: two for each fault, or those that
// were in flight when the operator died, if these are more. It doesn't judge a scene during which the operator was blind: a blind operator
// repeats writes that it doesn't see yet.
func (c *counter) amplifies(calm int) bool {
	most, wasBlind := 2*c.faults(), c.stage.blindings() != c.blinded
	c.mu.Lock()
	defer c.mu.Unlock()
	return !wasBlind && c.objects > calm+max(most, c.cut+2*max(len(c.met), 1))
}

// scene is a story under names of its own.
func (s *stage) scene(key string) *scene { return &scene{stage: s, key: key, rights: &rights{}} }

// newScene is a scene of a story, after story.given. Its writes count from then on.
func (s *stage) newScene(ctx context.Context, story story, key string, plan plan) (*scene, *counter) {
	GinkgoHelper()
	scene := s.scene(strings.ToLower(story.id) + "-" + key)
	scene.withoutClaims = len(story.goes) > 0
	story.given(ctx, scene)
	c := &counter{stage: s, plan: plan, lives: map[int]int{}, blinded: s.blindings()}
	s.scripts.set(scene.key, c.decide)
	return scene, c
}

// ending is how a story ends without a fault.
type ending struct {
	state map[string]string
	// writes counts all writes of the story, objects those that FLT-I6 is about.
	writes, objects int
}

// rehearse plays a story without a fault, once for each stage.
func (s *stage) rehearse(ctx context.Context, story story) ending {
	GinkgoHelper()
	s.mu.Lock()
	calm, known := s.endings[story.id]
	s.mu.Unlock()
	if known {
		return calm
	}
	scene, c := s.newScene(ctx, story, "calm", plan{})
	begun := scene.begin(ctx)
	story.play(ctx, scene)
	Eventually(ctx, func(g Gomega) {
		before := c.count()
		g.Consistently(ctx, c.count).WithTimeout(soon / 2).Should(Equal(before))
	}).Should(Succeed())
	state, err := scene.state()
	Expect(err).NotTo(HaveOccurred())
	Expect(begun.check(story, c, c.objects)).To(BeEmpty())
	s.scripts.set(scene.key, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	calm = ending{state: state, writes: c.count(), objects: c.objects}
	s.endings[story.id] = calm
	s.calmPeak = max(s.calmPeak, peakOf(s.Operator.Process().PID()))
	return calm
}

// settle waits until a scene is as it would be without a fault, and returns the difference that is left.
func (s *scene) settle(ctx context.Context, calm ending) (err error) {
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, suite.Patience, true, func(context.Context) (bool, error) {
		var state map[string]string
		if state, err = s.state(); err == nil {
			err = differs(state, calm.state)
		}
		return err == nil, nil
	})
	return err
}

// endsAs waits until a scene is as it would be without a fault.
func (s *scene) endsAs(ctx context.Context, calm ending) {
	GinkgoHelper()
	Expect(s.settle(ctx, calm)).To(Succeed(), s.explain)
}

// calmPlan is a plan without a fault; n makes the key of its scene unique.
func calmPlan(n int) plan { return plan{write: -n} }

// outcome is the result of one plan: its counter, and the differences from the ending without a fault.
type outcome struct {
	*counter
	wrong []string
}

// String is the plan, and the number of writes in each life of the operator.
func (o outcome) String() string {
	var lives []string
	for _, life := range slices.Sorted(maps.Keys(o.lives)) {
		lives = append(lives, fmt.Sprint(o.lives[life]))
	}
	return fmt.Sprintf("%s: %s", o.plan, strings.Join(lives, "+"))
}

// play plays a story with a fault, and waits until it has ended as it would have ended without.
func (s *stage) play(ctx context.Context, story story, plan plan, calm ending) outcome {
	GinkgoHelper()
	var wrong []string
	scene, c := s.newScene(ctx, story, plan.String(), plan)
	kept := scene.uids()
	begun := scene.begin(ctx)
	story.play(ctx, scene)
	if err := scene.settle(ctx, calm); err != nil {
		wrong = append(wrong, fmt.Sprintf("%s with %s: %s", story.id, plan, err))
	}
	for name, now := range scene.uids() {
		if before, known := kept[name]; known && before != now {
			wrong = append(wrong, fmt.Sprintf("%s with %s: %s was made anew", story.id, plan, name))
		}
	}
	most := calm.objects
	if plan.write <= 0 {
		most = c.objects
	}
	wrong = append(wrong, begun.check(story, c, most)...)
	s.scripts.set(scene.key, nil)
	return outcome{c, wrong}
}

// uids are the UIDs of a scene's namespaces, by name.
func (s *scene) uids() map[string]types.UID {
	GinkgoHelper()
	objects, err := s.objectsOf(s.key)
	Expect(err).NotTo(HaveOccurred())
	uids := map[string]types.UID{}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			uids[object.GetName()] = object.GetUID()
		}
	}
	return uids
}

// atOnce is how many plans run at the same time. With more, a scene would have too little time with an operator between the kills of the
// others. The API server would delete namespaces too slowly.
const atOnce = 10

// rehearseTogether plays a story without a fault, as many times at once as plans run later. It returns the ending with the most writes
// that count for FLT-I6. This number depends on the load, because the operator deletes what a busy namespace controller has not deleted
// yet.
func (s *stage) rehearseTogether(ctx context.Context, story story, calm ending) ending {
	GinkgoHelper()
	var plans []plan
	for n := range atOnce {
		plans = append(plans, calmPlan(n+1))
	}
	for _, one := range s.playPlans(ctx, story, calm, plans) {
		Expect(one.wrong).To(BeEmpty())
		calm.objects = max(calm.objects, one.objects)
	}
	return calm
}

// batches divides plans into batches that are played at once, each of at most so many. Plans that blind the operator have batches of
// their own, because the writes of the others are counted.
func batches(plans []plan, most int) [][]plan {
	isBlind := func(p plan) bool { return p.fault.blinds }
	seeing, blind := slices.DeleteFunc(slices.Clone(plans), isBlind),
		slices.DeleteFunc(slices.Clone(plans), func(p plan) bool { return !isBlind(p) })
	return slices.AppendSeq(slices.Collect(slices.Chunk(seeing, most)), slices.Chunk(blind, most))
}

// playPlans plays a story with these plans, many at once. In the end the operator sees all again.
func (s *stage) playPlans(ctx context.Context, story story, calm ending, plans []plan) []outcome {
	GinkgoHelper()
	outcomes := make([]outcome, len(plans))
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, plan := range plans {
		room <- struct{}{}
		outcomes[i] = outcome{&counter{plan: plan}, []string{plan.String() + " came to no end"}}
		all.Go(func() {
			defer func() { <-room }()
			defer GinkgoRecover()
			outcomes[i] = s.play(ctx, story, plan, calm)
		})
	}
	all.Wait()
	Eventually(ctx, s.seesAll).WithTimeout(2 * behindFor).Should(BeTrue())
	return outcomes
}

// wrongOf are the differences of all outcomes from the ending without a fault.
func wrongOf(outcomes []outcome) (wrong []string) {
	for _, one := range outcomes {
		wrong = append(wrong, one.wrong...)
	}
	return wrong
}

// report adds the outcomes of a story's plans to the test report.
func report(story story, calm ending, deaths int, outcomes []outcome) {
	differ := 0
	var lines []string
	for _, one := range outcomes {
		if len(one.wrong) > 0 {
			differ++
		}
		lines = append(lines, one.String())
	}
	AddReportEntry(story.id, fmt.Sprintf("%d writes, %d of them count for FLT-I6, %d plans, %d deaths, %d differ\nwrites by life: %s",
		calm.writes, calm.objects, len(outcomes), deaths, differ, strings.Join(lines, ", ")))
}

// tries plays a story with all its plans. It adds to the report how many there were and how many differ.
func (s *stage) tries(ctx context.Context, story story) {
	GinkgoHelper()
	calm := s.rehearse(ctx, story)
	Expect(calm.writes).To(BeNumerically(">", 0))
	if everyFault {
		calm = s.rehearseTogether(ctx, story, calm)
	}
	before := s.now()
	var outcomes []outcome
	for _, batch := range batches(story.plans(calm.writes), math.MaxInt) {
		outcomes = append(outcomes, s.playPlans(ctx, story, calm, batch)...)
	}
	report(story, calm, s.now()-before, outcomes)
	Expect(wrongOf(outcomes)).To(BeEmpty(), "the end of the operator's log:\n%s", s.Operator.Process().LogTail(20))
}

var _ = Describe("an operator that meets a fault at each of its writes", Ordered, ContinueOnFailure, func() {
	for _, story := range stories {
		It(fmt.Sprintf("FLT-F01 with a fault at a write of stories S1 to S8, the invariants hold, and the cluster ends as without the fault: "+
			"story %s, %s", story.id, story.title), func(ctx SpecContext) {
			guarded.tries(ctx, story)
		})
	}

	It("FLT-F47 of 60 SubNamespaces at a limit of 50, 50 become Ready and 10 LimitExceeded, never more; POSTs kill the operator (each with "+
		"`make test-long`, else each eighth)", func(ctx SpecContext) {
		guarded.keepsLimit(ctx)
	})

	It("writes nothing in the end, nor when it starts again, and has never ended by itself", func(ctx SpecContext) {
		guarded.rests(ctx)
		life := guarded.now()
		guarded.kill(life)
		Eventually(ctx, guarded.isReady).WithArguments(life + 1).Should(BeTrue())
		guarded.rests(ctx)
		guarded.checkProcess()
	})
})
