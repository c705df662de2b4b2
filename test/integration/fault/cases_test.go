package fault_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// faultCase is a case that runs beside many others, on the same control plane and with the same operator, under names of its own. So many
// can run at once because they wait rather than compute.
type faultCase struct {
	// number is the number of the case. A letter at its end is a part of the case.
	number, title string
	run           func(context.Context, *scene)
}

// faultCases are the cases whose fault affects only one scene.
var faultCases = slices.Concat(answerCases, obstacleCases, livesCases, webhookCases)

// recorder remembers the requests that a scene's script was asked about.
type recorder struct {
	mu   sync.Mutex // guards sent
	sent []sent
}

type sent struct {
	method, path string
	at           time.Time
}

// record remembers a request, and returns how many it has remembered.
func (r *recorder) record(q gate.Request) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, sent{method: q.Method, path: q.URL.Path, at: time.Now()})
	return len(r.sent)
}

func (r *recorder) all() []sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.sent)
}

func (r *recorder) count() int { return len(r.all()) }

// fewInAMinute waits until a minute after began, and checks that few requests were sent in that minute (FLT-I6).
func (r *recorder) fewInAMinute(ctx context.Context, began time.Time) {
	GinkgoHelper()
	end := began.Add(time.Minute)
	inTime := func() int {
		return len(slices.DeleteFunc(r.all(), func(q sent) bool { return q.at.After(end) }))
	}
	Consistently(ctx, inTime).WithTimeout(max(time.Until(end), time.Second)).WithPolling(time.Second).
		Should(BeNumerically("<=", mostInAMinute), func() string { return fmt.Sprint(r.all()) })
}

// meet records the scene's writes that match these. Each meets the fault that at returns for its number, which begins at 1.
func (s *scene) meet(these func(gate.Request) bool, at func(n int) gate.Fault) *recorder {
	r := &recorder{}
	s.scripts.set(s.key, func(q gate.Request) (gate.Fault, bool) {
		if !isWrite(q.Request) || !these(q) {
			return gate.Fault{}, false
		}
		return at(r.record(q)), true
	})
	return r
}

// calm ends the faults of the scene.
func (s *scene) calm() { s.scripts.set(s.key, nil) }

// onPath matches requests to a path with that suffix, by that method, or by any if method is empty.
func onPath(method, suffix string) func(gate.Request) bool {
	return func(q gate.Request) bool {
		return (method == "" || q.Method == method) && strings.HasSuffix(q.URL.Path, suffix)
	}
}

// says waits until a condition of an object has that status, and its "reason: message" contains the text.
func (s *scene) says(ctx context.Context, object client.Object, conditions func() []metav1.Condition, kind v1alpha1.ConditionType,
	status metav1.ConditionStatus, text string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		c := v1alpha1.FindCondition(conditions(), kind)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(status), c.Message)
		g.Expect(c.Reason + ": " + c.Message).To(ContainSubstring(text))
	}).Should(Succeed(), s.explain)
}

// tenantSays is the method says for the scene's LNamespace.
func (s *scene) tenantSays(ctx context.Context, kind v1alpha1.ConditionType, status metav1.ConditionStatus, text string) {
	GinkgoHelper()
	lns := s.payments().Object()
	s.says(ctx, lns, func() []metav1.Condition { return lns.Status.Conditions }, kind, status, text)
}

// subSays is the method says for a SubNamespace of the scene.
func (s *scene) subSays(ctx context.Context, parent, name string, status metav1.ConditionStatus, text string) {
	GinkgoHelper()
	sub := build.SubNamespace(s.own(parent), s.own(name))
	s.says(ctx, sub, func() []metav1.Condition { return sub.Status.Conditions }, v1alpha1.ConditionReady, status, text)
}

// propagationSays is the method says for the HierarchyConfiguration of a namespace, about its copies.
func (s *scene) propagationSays(ctx context.Context, namespace string, status metav1.ConditionStatus, text string) {
	GinkgoHelper()
	hc := build.Hierarchy(s.own(namespace))
	s.says(ctx, hc, func() []metav1.Condition { return hc.Status.Conditions }, v1alpha1.ConditionPropagated, status, text)
}

// bush is a root with three children, without a tenant.
func (s *scene) bush(ctx context.Context) {
	GinkgoHelper()
	s.create(ctx, build.Root(s.own("payments")))
	for i := range 3 {
		s.create(ctx, build.Child(s.own(fmt.Sprint("n", i)), s.own("payments")))
		s.plant(ctx, s.own(fmt.Sprint("n", i)))
	}
}

// source is a Secret of the scene's root that is copied, with that value.
func (s *scene) source(name, value string) *corev1.Secret {
	return build.Source(build.Secret(s.own("payments"), name, value), v1alpha1.ModeUpdate)
}

// copied waits until a child has the copy with that value.
func (s *scene) copied(ctx context.Context, child, name, value string) {
	GinkgoHelper()
	object := build.Secret(s.own(child), name, "")
	Eventually(ctx, func(g Gomega) {
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(string(object.Data["key"])).To(Equal(value))
	}).Should(Succeed(), s.explain)
}

// skipUnlessLong leaves a case to `make test-long`, which its row on the page names.
func skipUnlessLong(why string) {
	GinkgoHelper()
	if !test.IsLong() {
		Skip(why + ": with TEST_WINDOW=full")
	}
}

// mostInAMinute is how many requests a failing object may cause in its first minute (FLT-I6).
const mostInAMinute = 10

var _ = Describe("an operator that meets a fault", Ordered, ContinueOnFailure, func() {
	ended := map[string]chan bool{}

	BeforeAll(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute)
		var running sync.WaitGroup
		for _, c := range faultCases {
			done := make(chan bool, 1)
			ended[c.number] = done
			running.Go(func() {
				well := false
				defer func() { done <- well }()
				defer GinkgoRecover()
				s := guarded.scene(strings.ToLower(c.number))
				begun := s.begin(ctx)
				c.run(ctx, s)
				s.calm()
				begun.stop()
				Expect(touchedOf(begun)).To(BeEmpty(), "FLT-I1 in FLT-%s", c.number)
				well = true
			})
		}
		DeferCleanup(func() {
			cancel()
			running.Wait()
		})
	})

	for _, c := range faultCases {
		It(fmt.Sprintf("FLT-%s %s", strings.TrimRight(c.number, "abcd"), c.title), SpecTimeout(16*time.Minute), func(ctx SpecContext) {
			var well bool
			Eventually(ctx, ended[c.number]).WithTimeout(15 * time.Minute).Should(Receive(&well))
			Expect(well).To(BeTrue(), "this case has failed; its message may stand at another")
		})
	}

	It("writes nothing in the end, and has never ended by itself", func(ctx SpecContext) {
		guarded.rests(ctx)
		guarded.checkProcess()
	})
})

// touchedOf are the objects of users that the operator has touched in a scene (FLT-I1).
func touchedOf(b *begun) []string {
	GinkgoHelper()
	requests, err := b.Requests(b.ctx, b.mark)
	Expect(err).NotTo(HaveOccurred())
	return touched(b.scene, b.eventsOf(b.key), requests)
}
