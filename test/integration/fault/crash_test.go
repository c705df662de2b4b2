package fault_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// faults are what may happen at a write.
var faults = []string{"kill-after", "kill-before", "lose-answer"}

// script counts the writes of the scenes, and lets each meet its fault.
type script struct {
	stage *stage

	mu     sync.Mutex
	writes map[string]int        // by key of the scene
	at     map[string]crashPoint // by key of the scene
	met    map[string]bool
}

// crashPoint is a fault at one write of a scene, counted from 1.
type crashPoint struct {
	fault string
	write int
}

// decide is the gate's script.
func (s *script) decide(r gate.Request) gate.Fault {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases/") || strings.HasSuffix(r.URL.Path, "/events") ||
		strings.HasSuffix(r.URL.Path, "reviews") {
		return gate.Fault{}
	}
	life := s.stage.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, point := range s.at {
		if !strings.Contains(r.URL.Path, key+"-") && !bytes.Contains(r.Body, []byte(key+"-")) {
			continue
		}
		s.writes[key]++
		if s.writes[key] != point.write {
			continue
		}
		s.met[key] = true
		kill := func() { s.stage.kill(life) }
		switch point.fault {
		case "kill-after":
			return gate.Fault{LoseAnswer: true, Then: kill}
		case "kill-before":
			return gate.Fault{LoseRequest: true, Then: kill}
		case "lose-answer":
			return gate.Fault{LoseAnswer: true}
		}
	}
	return gate.Fault{}
}

// watch counts the writes of a scene from now on. Its fault comes at that point.
func (s *script) watch(key string, point crashPoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes[key], s.at[key] = 0, point
}

func (s *script) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[key]
}

func (s *script) hasMet(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met[key]
}

// rehearse plays a story without a fault. It returns how it ends, and with how many writes.
func (s *script) rehearse(ctx context.Context, story story) (ending map[string]string, writes int) {
	GinkgoHelper()
	scene := &scene{stage: s.stage, key: strings.ToLower(story.id) + "-calm"}
	story.given(ctx, scene)
	s.watch(scene.key, crashPoint{})
	story.steps(ctx, scene)
	Eventually(ctx, func(g Gomega) {
		before := s.count(scene.key)
		g.Consistently(ctx, s.count).WithArguments(scene.key).WithTimeout(soon / 2).Should(Equal(before))
	}).Should(Succeed())
	ending, err := scene.state(ctx)
	Expect(err).NotTo(HaveOccurred())
	return ending, s.count(scene.key)
}

// play plays a story with a fault, and waits until it has ended as it would have ended without.
func (s *script) play(ctx context.Context, story story, point crashPoint, ending map[string]string) {
	defer GinkgoRecover()
	scene := &scene{stage: s.stage, key: fmt.Sprintf("%s-%s%d", strings.ToLower(story.id), strings.ReplaceAll(point.fault, "-", ""), point.write)}
	story.given(ctx, scene)
	kept := scene.uids(ctx)
	s.watch(scene.key, point)
	story.steps(ctx, scene)
	Eventually(ctx, func() error {
		state, err := scene.state(ctx)
		if err != nil {
			return err
		}
		return differs(state, ending)
	}).Should(Succeed(), func() string {
		return fmt.Sprintf("%s with %s at write %d: %s", story.id, point.fault, point.write, scene.explain())
	})
	for name, before := range kept {
		namespace := build.Namespace(name)
		if err := s.stage.Admin().Get(ctx, keyOf(name), namespace); err == nil {
			Expect(namespace.UID).To(Equal(before), "%s was made anew", name)
		}
	}
	if !s.hasMet(scene.key) {
		AddReportEntry(scene.key+" came to its end with fewer writes", s.count(scene.key))
	}
}

// uids are those of the namespaces of a scene.
func (s *scene) uids(ctx context.Context) map[string]types.UID {
	GinkgoHelper()
	list := &corev1.NamespaceList{}
	Expect(s.Admin().List(ctx, list)).To(Succeed())
	uids := map[string]types.UID{}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, s.key+"-") {
			uids[list.Items[i].Name] = list.Items[i].UID
		}
	}
	return uids
}

// points are the writes of a story at which it meets a fault.
func points(story story, writes int) (points []crashPoint) {
	for i, fault := range faults {
		for write := 1; write <= writes; write++ {
			if everyFault || i == 0 && (write-1)%max(story.sparse, 1) == 0 {
				points = append(points, crashPoint{fault: fault, write: write})
			}
		}
	}
	return points
}

var _ = Describe("an operator that is killed at each of its writes", Ordered, ContinueOnFailure, func() {
	var s *script

	BeforeAll(func() {
		s = &script{stage: guarded, writes: map[string]int{}, at: map[string]crashPoint{}, met: map[string]bool{}}
		s.stage.Script(s.decide)
		DeferCleanup(s.stage.Script, (func(gate.Request) gate.Fault)(nil))
	})

	for _, story := range stories {
		It(fmt.Sprintf("ends story FLT-%s as without: %s", story.id, story.title), func(ctx SpecContext) {
			ending, writes := s.rehearse(ctx, story)
			Expect(writes).To(BeNumerically(">", 0))
			crashes, before := points(story, writes), s.stage.now()
			var all sync.WaitGroup
			for _, point := range crashes {
				all.Go(func() { s.play(ctx, story, point, ending) })
			}
			all.Wait()
			AddReportEntry(story.id, fmt.Sprintf("%d writes, %d points, %d deaths", writes, len(crashes), s.stage.now()-before))
		})
	}
})
