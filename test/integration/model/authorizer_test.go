package model_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

const (
	tenants = 20
	// editors work at once, each on any tenant.
	editors = 10
)

// questions are asked before and after so many edits. `make test-load` asks a million.
var questions, edits = test.Many(10_000, 1_000), test.Many(1_000, 100)

// patience is the back-off after conflicts: other editors and the operator write the same LNamespaces.
var patience = wait.Backoff{Steps: 200, Duration: 5 * time.Millisecond, Jitter: 1}

var _ = Describe("access", func() {
	It("as the server's authorizer answers is what the LNamespaces say, and so it is after many edits", func(ctx SpecContext) {
		s := seed()
		AddReportEntry("seed", fmt.Sprintf("MODEL_SEED=%d", s))
		p := populated(tenants)
		By(fmt.Sprintf("making tenants from seed %d", s))
		p.plant(ctx, world, s)
		settled(ctx, world, p)

		By("asking")
		compare(ctx, world, p, rand.New(rand.NewPCG(s, 1)))

		By("editing")
		p.storm(ctx, world, s)
		settled(ctx, world, p)

		By("asking again")
		compare(ctx, world, p, rand.New(rand.NewPCG(s, 2)))
	}, SpecTimeout(time.Hour))
})

// plant makes the tenants and their trees, and then lists people: a service account is listed for a namespace that is there.
func (p population) plant(ctx context.Context, w *devcluster.World, seed uint64) {
	GinkgoHelper()
	Expect(w.Admin().Create(ctx, build.Namespace("ci"))).To(Succeed())
	for _, name := range p.tenants {
		Expect(w.Admin().Create(ctx, build.Tenant(name).Object())).To(Succeed(), "making LNamespace %s", name)
	}
	for level := 1; level < 4; level++ { // so that the parent of each exists, or will exist soon
		for _, name := range p.tenants {
			if tree := p.trees[name]; level < len(tree) {
				Eventually(func() error {
					return w.Admin().Create(ctx, build.SubNamespace(parentOf(tree, level), tree[level]))
				}).WithContext(ctx).Should(Succeed(), "making SubNamespace %s as soon as its parent is there", tree[level])
			}
		}
	}
	for _, s := range p.subjects {
		if s.Namespace != "" {
			Eventually(func() error { return w.Admin().Get(ctx, client.ObjectKey{Name: s.Namespace}, &corev1.Namespace{}) }).
				WithContext(ctx).Should(Succeed(), "Namespace %s is there", s.Namespace)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range p.tenants {
		drawn := build.Tenant(name).Object()
		for _, list := range listsOf(drawn) {
			p.redraw(r, drawn, list)
		}
		Expect(retry.RetryOnConflict(patience, func() error {
			lns := &v1alpha1.LNamespace{}
			if err := w.Admin().Get(ctx, client.ObjectKey{Name: name}, lns); err != nil {
				return err
			}
			lns.Spec = drawn.Spec
			return w.Admin().Update(ctx, lns)
		})).To(Succeed(), "listing people in LNamespace %s", name)
	}
}

// storm edits the lists of random tenants, many at once.
func (p population) storm(ctx context.Context, w *devcluster.World, seed uint64) {
	GinkgoHelper()
	var all errgroup.Group
	for editor := range editors {
		all.Go(func() error {
			r := rand.New(rand.NewPCG(seed, 100+uint64(editor)))
			for range edits / editors {
				name := pick(r, p.tenants)
				err := retry.RetryOnConflict(patience, func() error {
					lns := &v1alpha1.LNamespace{}
					if err := w.Admin().Get(ctx, client.ObjectKey{Name: name}, lns); err != nil {
						return err
					}
					p.edit(r, lns)
					return w.Admin().Update(ctx, lns)
				})
				if err != nil {
					return fmt.Errorf("editing LNamespace %s: %w", name, err)
				}
			}
			return nil
		})
	}
	Expect(all.Wait()).To(Succeed())
}

// compare asks the authorizer and the model the same questions and expects the same answers, and enough of each.
func compare(ctx context.Context, w *devcluster.World, p population, r *rand.Rand) {
	GinkgoHelper()
	m := stated(ctx, w, p)
	drawn := make([]question, questions)
	for i := range drawn {
		drawn[i] = p.question(r, m)
	}
	answers := make([]answer, questions)
	asking, askingCtx := errgroup.WithContext(ctx)
	asking.SetLimit(16)
	for i, q := range drawn {
		asking.Go(func() (err error) {
			answers[i], err = ask(askingCtx, w, q)
			return err
		})
	}
	Expect(asking.Wait()).To(Succeed())

	var differ []string
	yes := map[bool]int{}
	count := map[bool]int{}
	for i, q := range drawn {
		want := m.answer(q)
		if answers[i] != want {
			differ = append(differ, fmt.Sprintf("%s: the authorizer says %+v, the LNamespaces %+v", q, answers[i], want))
		}
		count[q.as != ""]++
		if q.yes(want) {
			yes[q.as != ""]++
		}
	}
	AddReportEntry("answers", fmt.Sprintf("%d of %d yes without sudo, %d of %d with sudo, %d differ",
		yes[false], count[false], yes[true], count[true], len(differ)))
	Expect(differ[:min(len(differ), 10)]).To(BeEmpty(), "%d of %d answers differ", len(differ), questions)
	for _, sudo := range []bool{false, true} {
		share := float64(yes[sudo]) / float64(count[sudo])
		Expect(share).To(And(BeNumerically(">", 0.05), BeNumerically("<", 0.95)), "a share of yes, with sudo %t, that tells something", sudo)
	}
}

// stated is the model of the present LNamespaces.
func stated(ctx context.Context, w *devcluster.World, p population) model {
	GinkgoHelper()
	list := &v1alpha1.LNamespaceList{}
	Expect(w.Admin().List(ctx, list)).To(Succeed())
	m := model{tenants: map[string]v1alpha1.LNamespaceSpec{}, tenantOf: p.tenantOf()}
	for _, lns := range list.Items {
		m.tenants[lns.Name] = lns.Spec
	}
	Expect(m.tenants).To(HaveLen(len(p.tenants)))
	return m
}
