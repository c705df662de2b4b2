package fault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// watches matches watches of a resource whose label selector begins with selector.
func watches(resource, selector string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		query := r.URL.Query()
		return query.Get("watch") == "true" && strings.HasSuffix(r.URL.Path, "/"+resource) && strings.HasPrefix(query.Get("labelSelector"),
			selector)
	}
}

// playAll plays the stories of endings at once, and checks that each ends as it does without a fault.
func playAll(ctx context.Context, st *stage, key string, endings map[string]ending) {
	GinkgoHelper()
	var all sync.WaitGroup
	for _, story := range stories {
		if calm, wanted := endings[story.id]; wanted {
			all.Go(func() {
				defer GinkgoRecover()
				s := st.scene(strings.ToLower(story.id) + "-" + key)
				s.withoutClaims = len(story.goes) > 0
				story.given(ctx, s)
				story.play(ctx, s)
				s.endsAs(ctx, calm)
			})
		}
	}
	all.Wait()
}

// rehearseAll rehearses stories at once.
func rehearseAll(ctx context.Context, st *stage, ids ...string) map[string]ending {
	GinkgoHelper()
	var mu sync.Mutex
	var all sync.WaitGroup
	endings := map[string]ending{}
	for _, story := range stories {
		if !slices.Contains(ids, story.id) {
			continue
		}
		all.Go(func() {
			defer GinkgoRecover()
			calm := st.rehearse(ctx, story)
			mu.Lock()
			defer mu.Unlock()
			endings[story.id] = calm
		})
	}
	all.Wait()
	return endings
}

// pair is two tenants with a source each, and a namespace that moves from the first to the second.
type pair struct {
	*scene
	first, second, moves string
}

func newPair(ctx context.Context, st *stage, key string) *pair {
	GinkgoHelper()
	p := &pair{scene: st.scene(key)}
	p.first, p.second, p.moves = p.own("first"), p.own("second"), p.own("moves")
	p.create(ctx, build.Root(p.first), build.Root(p.second))
	p.create(ctx, build.Child(p.moves, p.first))
	p.create(ctx, p.source(p.first, "of-first", "old-value"), p.source(p.second, "of-second", "old-value"))
	p.has(ctx, "of-first", "old-value")
	return p
}

func (p *pair) source(namespace, name, value string) *corev1.Secret {
	return build.Source(build.Secret(namespace, name, value), v1alpha1.ModeUpdate)
}

// move places the namespace below the second tenant.
func (p *pair) move(ctx context.Context) {
	GinkgoHelper()
	change(ctx, p.scene, build.Namespace(p.moves), func(n *corev1.Namespace) { n.Labels[v1alpha1.LabelParent] = p.second })
}

// has waits until the namespace has that copy.
func (p *pair) has(ctx context.Context, name, value string) *corev1.Secret {
	GinkgoHelper()
	object := build.Secret(p.moves, name, "")
	Eventually(ctx, func(g Gomega) {
		g.Expect(p.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		g.Expect(string(object.Data["key"])).To(Equal(value))
	}).Should(Succeed(), p.explain)
	return object
}

// wrote gives the first tenant's source another value.
func (p *pair) wrote(ctx context.Context, value string) {
	GinkgoHelper()
	change(ctx, p.scene, p.source(p.first, "of-first", ""), func(s *corev1.Secret) { s.Data["key"] = []byte(value) })
}

// contains tells whether a request writes a Secret with that value, in whatever encoding.
func contains(r gate.Request, value string) bool {
	return bytes.Contains(r.Body, []byte(value)) || bytes.Contains(r.Body, []byte(base64.StdEncoding.EncodeToString([]byte(value))))
}

var _ = Describe("an operator whose view of the cluster is late or broken", Ordered, ContinueOnFailure, func() {
	var endings map[string]ending

	BeforeAll(func(ctx SpecContext) {
		endings = rehearseAll(ctx, guarded, "S1", "S2", "S3", "S4", "S5", "S6")
	})

	AfterEach(func() {
		guarded.Thaw()
		guarded.Script(nil)
	})

	// bystands makes a copy that the case does not concern, and checks at the end that it was not changed.
	bystands := func(ctx context.Context, key string) {
		GinkgoHelper()
		p := newPair(ctx, guarded, key)
		before := p.has(ctx, "of-first", "old-value")
		DeferCleanup(func(ctx SpecContext) {
			now := p.has(ctx, "of-first", "old-value")
			Expect([]any{now.UID, now.ResourceVersion}).To(Equal([]any{before.UID, before.ResourceVersion}))
		})
	}

	It("FLT-F06 while a random fifth of all requests, reads too, gets 500, 502, 503 or 504 for a minute, stories S1 to S6 end as without; "+
		"no other copy changes", func(ctx SpecContext) {
		bystands(ctx, "f06")
		seed := GinkgoRandomSeed()
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		var mu sync.Mutex
		end := time.Now().Add(time.Minute)
		guarded.Script(func(r gate.Request) gate.Fault {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().After(end) || strings.Contains(r.URL.Path, "/leases/") || random.IntN(5) > 0 {
				return gate.Fault{}
			}
			return gate.Fault{Code: []int{500, 502, 503, 504}[random.IntN(4)]}
		})
		playAll(ctx, guarded, "errors", endings)
	})

	It("FLT-F09 while all watches end every second for a minute, stories S1 to S6 end as without; each list is sent at most once "+
		"a second", func(ctx SpecContext) {
		bystands(ctx, "f09")
		end := time.Now().Add(time.Minute)
		mark, err := guarded.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		begin := time.Now()
		guarded.Script(func(r gate.Request) gate.Fault {
			if r.URL.Query().Get("watch") != "true" || time.Now().After(end) {
				return gate.Fault{}
			}
			return gate.Fault{Ends: time.Second}
		})
		guarded.Freeze(func(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }) // open ones end with their next event
		guarded.ThawWithGap()
		playAll(ctx, guarded, "ends", endings)
		requests, err := guarded.Requests(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		lists := map[string]int{}
		for _, r := range requests {
			if r.Verb == "list" && strings.HasPrefix(r.User, "system:serviceaccount:") {
				lists[r.Event.RequestURI]++
			}
		}
		for uri, n := range lists {
			Expect(n).To(BeNumerically("<=", 1+int(time.Since(begin).Seconds())), uri)
		}
	})

	It("FLT-F11 a subtree that moves, and whose old source changes, while events of Namespaces are held back, then has its new tree's "+
		"copies alone; no later change of it writes one", func(ctx SpecContext) {
		p := newPair(ctx, guarded, "f11")
		below := func(name string) client.Object { return build.Secret(p.own("below"), name, "") }
		p.create(ctx, build.Child(p.own("below"), p.moves))
		p.exist(ctx, below("of-first"))
		guarded.Freeze(watches("namespaces", ""))
		p.move(ctx)
		p.wrote(ctx, "new-value")
		p.has(ctx, "of-first", "new-value") // the operator still sees the old tree
		guarded.Thaw()
		p.gone(ctx, build.Secret(p.moves, "of-first", ""), below("of-first"))
		p.has(ctx, "of-second", "old-value")
		p.exist(ctx, below("of-second"))
		p.wrote(ctx, "newer-value")
		for _, object := range []client.Object{build.Secret(p.moves, "of-first", ""), below("of-first")} {
			Consistently(ctx, func() error {
				return p.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)
			}).WithTimeout(test.Quiet(soon)).ShouldNot(Succeed())
		}
	})

	It("FLT-F12 if a source is deleted and created with other data while its events are held back, the old data are never written after the "+
		"new", func(ctx SpecContext) {
		p := newPair(ctx, guarded, "f12")
		guarded.Freeze(watches("secrets", v1alpha1.LabelPropagate))
		source := p.source(p.first, "of-first", "")
		p.remove(ctx, source)
		p.create(ctx, p.source(p.first, "of-first", "new-value"))
		var mu sync.Mutex
		var seen bool
		var stale []string
		guarded.Script(func(r gate.Request) gate.Fault {
			if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/"+p.moves+"/secrets") {
				mu.Lock()
				defer mu.Unlock()
				seen = seen || contains(r, "new-value")
				if seen && contains(r, "old-value") && contains(r, "of-first") {
					stale = append(stale, r.Method+" "+r.URL.Path)
				}
			}
			return gate.Fault{}
		})
		guarded.Thaw()
		p.has(ctx, "of-first", "new-value")
		Consistently(ctx, func(g Gomega) {
			mu.Lock()
			defer mu.Unlock()
			g.Expect(stale).To(BeEmpty())
		}).WithTimeout(test.Quiet(soon)).Should(Succeed())
		Expect(seen).To(BeTrue())
	})

	It("FLT-F10 if watches of Namespaces, sources or copies lose events and get 410 during a move, copies of the old tree and of deleted "+
		"sources go; others stay", func(ctx SpecContext) {
		resources := map[string]func(*http.Request) bool{
			"namespaces": watches("namespaces", ""), "sources": watches("secrets", v1alpha1.LabelPropagate),
			"copies": watches("secrets", v1alpha1.LabelInheritedFrom),
		}
		var all sync.WaitGroup
		pairs := map[string]*pair{}
		for name := range resources {
			pairs[name] = newPair(ctx, guarded, "f10-"+name)
			pairs[name].create(ctx, pairs[name].source(pairs[name].second, "stays", "old-value"))
		}
		for name, of := range resources {
			p := pairs[name]
			guarded.Freeze(of)
			p.move(ctx)
			p.remove(ctx, p.source(p.second, "of-second", ""))
			guarded.ThawWithGap()
			all.Go(func() {
				defer GinkgoRecover()
				p.gone(ctx, build.Secret(p.moves, "of-first", ""))
				p.has(ctx, "stays", "old-value")
				p.gone(ctx, build.Secret(p.moves, "of-second", ""))
			})
			all.Wait()
		}
	})

	It("FLT-F13 with policies off and events of copies held back, a user's object in place of a deleted copy stays; neither a change nor "+
		"the deletion of the source changes it", func(ctx SpecContext) {
		st := newStage(ctx, devcluster.Options{WithoutPolicies: true})
		p := newPair(ctx, st, "f13")
		st.Freeze(watches("secrets", v1alpha1.LabelInheritedFrom))
		p.remove(ctx, build.Secret(p.moves, "of-first", ""))
		own := build.Secret(p.moves, "of-first", "own-value")
		p.create(ctx, own)
		untouched := func(g Gomega) {
			now := build.Secret(p.moves, "of-first", "")
			g.Expect(p.Admin().Get(ctx, client.ObjectKeyFromObject(now), now)).To(Succeed())
			g.Expect([]any{now.UID, now.ResourceVersion}).To(Equal([]any{own.UID, own.ResourceVersion}))
		}
		p.wrote(ctx, "new-value")
		p.create(ctx, p.source(p.first, "proof", "1"))
		p.has(ctx, "proof", "1") // to make a copy, the operator needs no watch of copies
		Consistently(ctx, untouched).WithTimeout(test.Quiet(soon)).Should(Succeed())
		p.remove(ctx, p.source(p.first, "of-first", ""))
		Consistently(ctx, untouched).WithTimeout(test.Quiet(soon)).Should(Succeed())
		st.Thaw()
		Consistently(ctx, untouched).WithTimeout(test.Quiet(soon)).Should(Succeed())
	})
})
