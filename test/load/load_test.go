// Package load_test has 50 people work in 1,000 namespaces for half an hour while the operator is killed every 20 seconds, asks the API
// server's authorizer all the while what people may do, and looks whether the operator touches what is not its own
// (docs/behaviour/faults.md, FLT-L1 to FLT-L3). Without LOAD_DURATION it is skipped. `make test-load` runs it.
//
// Each answer is judged by the versions of the lists. The oldest version that may still count is the last one whose effect was confirmed
// 2 s or more before the question; the newest is the last one that a user sent before the answer. Condition AccessReady with
// observedGeneration G confirms the lists of generation G, for the rights of managers and sudoers and for all rights in the root. It
// doesn't wait for copies, so in a sub-namespace the subjects of RoleBinding warren:users confirm the version that they equal. While a
// namespace moves, people of both tenants may have rights in it, until it has the binding of the new tenant.
//
// On a slow machine the load continues until all questions are answered, for up to three times as long.
//
// LOAD_DURATION=2m LOAD_KILL=20s LOAD_USERS=4 LOAD_NAMESPACES=20 LOAD_QUESTIONS=10000 is a smaller load. All that is random is drawn from
// LOAD_SEED, which is printed; what happens at once differs from run to run.
package load_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

func TestLoad(t *testing.T) {
	if os.Getenv("LOAD_DURATION") == "" {
		t.Skip("make test-load runs it, for LOAD_DURATION")
	}
	suite.Run(t, "Load")
}

// stranger is one of the people, and on no list.
const stranger = "carol"

// auditPolicy leaves out reads and reviews, of which there are a million.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, resources: [{group: authorization.k8s.io}]}
- {level: None, verbs: [get, list, watch], resources: [{group: ""}, {group: rbac.authorization.k8s.io}]}
- level: Metadata
`

// setting returns what an environment variable says.
func setting[T any](name, otherwise string, parse func(string) (T, error)) T {
	GinkgoHelper()
	value, err := parse(cmp.Or(os.Getenv(name), otherwise))
	Expect(err).NotTo(HaveOccurred(), name)
	return value
}

// newLoad starts a control plane with that many people, two for a tenant.
func newLoad(ctx context.Context, people int) *load {
	GinkgoHelper()
	l := &load{
		oracle: &oracle{people: []string{stranger}, byName: map[string]*tenant{}, places: map[string]*place{}, wrong: map[string][]string{}},
		seed:   setting("LOAD_SEED", "1", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }),
		times:  map[string][]time.Duration{},
	}
	more := map[string][]string{}
	for n := range people {
		user := fmt.Sprintf("u%02d", n)
		l.people, more[user] = append(l.people, user), nil
	}
	policy := filepath.Join(GinkgoT().TempDir(), "audit.yaml")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	w, err := devcluster.Start(ctx, devcluster.Options{
		Components:   []string{"config/components/distribution"},
		ControlPlane: controlplane.Options{Users: more, APIServerArgs: []string{"--audit-policy-file", policy}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	l.World = w
	l.authorizer, err = newAuthorizer(w.Config(controlplane.Admin))
	Expect(err).NotTo(HaveOccurred())
	for n := range people / 2 {
		t := &tenant{name: fmt.Sprintf("t%02d", n), people: [2]string(l.people[1+2*n : 3+2*n]), sources: map[string]string{}}
		t.versions = []version{{t.people[:], t.people[:1], t.people[:1]}}
		l.tenants, l.byName[t.name] = append(l.tenants, t), t
	}
	return l
}

// settle makes the tenants, each with its share of the namespaces.
func (l *load) settle(ctx context.Context, namespaces int) {
	GinkgoHelper()
	observing, enough := context.WithCancel(context.Background())
	DeferCleanup(enough)
	Expect(l.observe(observing)).To(Succeed())
	var all errgroup.Group
	for _, t := range l.tenants {
		root := l.join(t.name, "", t)
		all.Go(func() error {
			lists := t.versions[0]
			tenant := build.Tenant(t.name).Users(lists[users]...).Managers(lists[managers]...).Sudoers(lists[sudoers]...).Object()
			if err := l.Admin().Create(ctx, tenant); err != nil {
				return err
			}
			if err := l.release(ctx, root); err != nil {
				return err
			}
			t.fixed = []*place{root}
			for n := 1; n < namespaces/len(l.tenants); n++ {
				p, err := l.plant(ctx, t, t.fixed[n/8%len(t.fixed)], t.people[1])
				if err != nil {
					return err
				}
				if len(t.fixed) < 5 {
					t.fixed = append(t.fixed, p)
				}
			}
			last := t.fixed[len(t.fixed)-1].name
			return l.Admin().Create(ctx, build.Secret(last, "shared-2", "mine", labelStranger, ""))
		})
	}
	Expect(all.Wait()).To(Succeed())
}

// run has everybody at work for that long, or up to three times as long if fewer questions than wanted were answered. At its end all
// operations have ended.
func (l *load) run(ctx context.Context, duration time.Duration, wanted int64) {
	GinkgoHelper()
	working, enough := context.WithCancel(ctx)
	var all, asking sync.WaitGroup
	for n := range len(l.people) - 1 {
		all.Go(func() { l.work(working, ctx, n) })
	}
	all.Go(func() { l.distribute(working, ctx) })
	all.Go(func() { l.crash(working, ctx, setting("LOAD_KILL", "20s", time.ParseDuration)) })
	questioning, answered := context.WithCancel(ctx)
	asking.Go(func() { l.question(questioning) })
	begin := time.Now()
	_ = wait.PollUntilContextTimeout(ctx, time.Second, 3*duration, false, func(context.Context) (bool, error) { // the count is reported
		return time.Since(begin) > duration && l.asked.Load() >= wanted, nil
	})
	enough()
	all.Wait()
	answered()
	asking.Wait()
}

// report prints how long each operation took.
func (l *load) report() string {
	text := fmt.Sprintf("LOAD_SEED=%d: %d questions, %d of them allowed\n%-55s %6s %8s %8s %8s\n", l.seed, l.asked.Load(), l.allowed.Load(),
		"until", "number", "median", "p99", "most")
	for _, what := range slices.Sorted(maps.Keys(l.times)) {
		times := l.times[what]
		slices.Sort(times)
		text += fmt.Sprintf("%-55s %6d", what, len(times))
		for _, d := range []time.Duration{times[len(times)/2], times[len(times)*99/100], times[len(times)-1]} {
			text += fmt.Sprintf(" %7.2fs", d.Seconds())
		}
		text += "\n"
	}
	return text
}

// unsettled names something that is not yet as the lists, sources and trees say, "" for nothing.
func (l *load) unsettled(ctx context.Context) (string, error) {
	tenants, secrets := &v1alpha1.LNamespaceList{}, &corev1.SecretList{}
	if err := l.Admin().List(ctx, tenants); err != nil {
		return "", err
	}
	for _, lns := range tenants.Items {
		c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Status != "True" || c.ObservedGeneration != lns.Generation {
			return fmt.Sprintf("LNamespace %s in generation %d: %+v", lns.Name, lns.Generation, c), nil
		}
	}
	if err := l.Admin().List(ctx, secrets); err != nil {
		return "", err
	}
	copies := map[string]string{}
	for _, s := range secrets.Items {
		if from := s.Labels[v1alpha1.LabelInheritedFrom]; from != "" {
			copies[s.Namespace+"/"+s.Name+" from "+from] = string(s.Data["key"])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.all {
		if len(p.homes) > 1 || len(p.homes) == 1 && !p.settled {
			return "namespace " + p.name + " moves or ends", nil
		}
		for _, h := range p.homes {
			for name, value := range h.of.sources {
				key := p.name + "/" + name + " from " + h.of.name
				taken := name == "shared-2" && p == h.of.fixed[len(h.of.fixed)-1]
				if copied, exists := copies[key]; p.parent != "" && !taken && (!exists || copied != value) {
					return fmt.Sprintf("copy %s is %q in place of %q", key, copied, value), nil
				}
				delete(copies, key)
			}
		}
	}
	for key := range copies {
		return "copy " + key + " has no source, or is outside of its tree", nil
	}
	return "", nil
}

var _ = Describe("a cluster under load whose operator is killed again and again", Ordered, ContinueOnFailure, func() {
	var l *load

	BeforeAll(func(ctx SpecContext) {
		people := setting("LOAD_USERS", "50", strconv.Atoi)
		l = newLoad(ctx, people)
		l.settle(ctx, setting("LOAD_NAMESPACES", "1000", strconv.Atoi))
	}, NodeTimeout(30*time.Minute))

	It("FLT-L1 each operation has its effect; the authorizer never allows people, listed or not, what neither the state before a change nor "+
		"the state after it allows; FLT-L1 a user who stays on the list is never denied in a namespace that stays in "+
		"its tree", func(ctx SpecContext) {
		duration := setting("LOAD_DURATION", "", time.ParseDuration)
		share := strconv.Itoa(int(duration.Minutes() * 1_000_000 / 30))
		wanted := setting("LOAD_QUESTIONS", share, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
		l.run(ctx, duration, wanted)
		AddReportEntry("load", l.report())
		Expect(l.wrongs(failed)).To(BeEmpty(), "every operation has its effect")
		Expect(l.wrongs(wrongRights)).To(BeEmpty())
		Expect(l.allowed.Load()).To(BeNumerically(">", l.asked.Load()/20), "a share of yes that tells something")
		Expect(l.asked.Load()).To(BeNumerically(">=", wanted), "questions were answered")
	}, SpecTimeout(4*time.Hour))

	It("FLT-L2 no ConfigMap of a user, nor Secret that has the name of a copy, is changed; none of them and no namespace is deleted unless "+
		"a user deletes the namespace", func(ctx SpecContext) {
		strangers := &corev1.ConfigMapList{}
		Expect(l.Admin().List(ctx, strangers, client.HasLabels{labelStranger})).To(Succeed())
		Expect(len(strangers.Items)).To(BeNumerically(">=", len(l.tenants)))
		Expect(l.wrongs(wrongStrangers)).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("FLT-L3 when the load ends, copies and each of the authorizer's answers become those of sources, trees and lists; then the operator "+
		"makes no write in 30 s", func(ctx SpecContext) {
		Eventually(ctx, l.unsettled).WithTimeout(5 * time.Minute).WithPolling(time.Second).Should(BeEmpty())
		mark, err := l.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		writes := func() (since []audit.Request, err error) {
			if since, err = l.Writes(ctx, mark); len(since) > 0 {
				mark, err = l.Mark(ctx)
			}
			return since, err
		}
		Eventually(ctx, writes).WithTimeout(2 * time.Minute).WithPolling(5 * time.Second).Should(BeEmpty())
		Consistently(ctx, writes).WithTimeout(30 * time.Second).WithPolling(5 * time.Second).Should(BeEmpty())
		asked, differ, err := l.askAll(ctx)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("at rest", fmt.Sprintf("%d questions, %d answers differ", asked, len(differ)))
		Expect(differ[:min(len(differ), 20)]).To(BeEmpty())
		Expect(l.unsettled(ctx)).To(BeEmpty())
		Expect(l.wrongs(wrongRights)).To(BeEmpty())
		Expect(l.wrongs(wrongStrangers)).To(BeEmpty())
	}, SpecTimeout(30*time.Minute))
})
