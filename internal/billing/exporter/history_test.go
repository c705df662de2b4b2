package exporter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing"
	"github.com/warren-tenancy/warren/internal/forest"
	ledgertest "github.com/warren-tenancy/warren/test/ledger"
)

// moment is what the model cluster had for one namespace, from one time on: the cost center, or "" for no tenant.
type moment struct {
	at                time.Time
	uid, tenant, cost string
	// known reports that Kubernetes records the beginning: a creation, or a change of the cost center since which no move lies.
	known bool
}

// story is one history: a model of the cluster, up to two exporters with their own links and clocks, and one ledger.
type story struct {
	seed   uint64
	t      *testing.T
	random *rand.Rand
	now    *clocktesting.FakePassiveClock
	store  ledger
	read   func() []ledgertest.Period
	away   bool
	// skewed exporters have a clock that is off by an hour.
	skewed bool
	// lastStart is when the newest exporter started: it has seen every change since.
	lastStart time.Time
	// exporters are the running ones; the second is one that has lost its Lease and does not know it yet.
	exporters []*broken
	facts     map[string]*namespaceFacts
	payers    map[string]*tenantFacts
	truth     map[string][]moment
	// calm is set at the end: no exporter is killed any more.
	calm      bool
	runs, uid int
	log       []string
}

func newStory(t *testing.T, seed uint64, store ledger, read func() []ledgertest.Period) *story {
	s := &story{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), store: store, read: read, skewed: seed%4 == 0,
		facts: map[string]*namespaceFacts{}, payers: map[string]*tenantFacts{}, truth: map[string][]moment{},
		now: clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))}
	for i := range 2 {
		tenant := fmt.Sprint("tenant-", i)
		s.payers[tenant] = &tenantFacts{name: tenant, uid: types.UID("uid-" + tenant), generation: 1, made: s.now.Now(), since: s.now.Now(),
			costCenter: "c0"}
		s.make(tenant, tenant)
	}
	return s
}

func (s *story) note(format string, args ...any) {
	s.log = append(s.log, s.now.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// make creates a namespace, as the root of the tenant or below it.
func (s *story) make(name, tenant string) {
	s.uid++
	n := &forest.Namespace{Name: name, UID: fmt.Sprint("n", s.uid), Labels: map[string]string{v1alpha1.LabelParent: tenant}}
	facts := &namespaceFacts{Namespace: n, made: s.now.Now()}
	if name == tenant {
		n.Labels = map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}
		facts.owner = s.payers[tenant].uid
	}
	s.facts[name] = facts
	s.send(facts, false)
	s.add(name, moment{uid: n.UID, tenant: tenant, cost: s.payers[tenant].costCenter, known: true})
}

func (s *story) send(facts any, gone bool) {
	for _, x := range s.exporters {
		x.tracker.takeChange(facts, gone)
	}
}

func (s *story) add(name string, m moment) {
	m.at = s.now.Now()
	s.truth[name] = append(s.truth[name], m)
}

func (s *story) children(tenant string) (names []string) {
	for name, n := range s.facts {
		if name == tenant || n.Labels[v1alpha1.LabelParent] == tenant {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// changeCluster makes one random change in the cluster.
func (s *story) changeCluster() {
	tenant := fmt.Sprint("tenant-", s.random.IntN(2))
	name := fmt.Sprint("ns-", s.random.IntN(5))
	known, exists := s.facts[name]
	switch kind := s.random.IntN(5); {
	case kind == 0:
		p := *s.payers[tenant]
		p.generation++
		p.costCenter, p.since = fmt.Sprint("c", p.generation), s.now.Now()
		s.payers[tenant] = &p
		s.note("%s pays by %s", tenant, p.costCenter)
		for _, child := range s.children(tenant) {
			last := s.truth[child][len(s.truth[child])-1]
			s.add(child, moment{uid: last.uid, tenant: tenant, cost: p.costCenter, known: last.known})
		}
		s.send(&p, false)
	case !exists:
		s.note("%s is created in %s", name, tenant)
		s.make(name, tenant)
	case kind == 1:
		n := *known.Namespace
		n.Labels = map[string]string{v1alpha1.LabelParent: tenant}
		if known.Labels[v1alpha1.LabelParent] == tenant {
			return
		}
		s.note("%s moves to %s", name, tenant)
		s.facts[name] = &namespaceFacts{Namespace: &n, made: known.made}
		s.send(s.facts[name], false)
		s.add(name, moment{uid: n.UID, tenant: tenant, cost: s.payers[tenant].costCenter})
	default:
		s.note("%s is deleted", name)
		delete(s.facts, name)
		s.send(known, true)
		s.add(name, moment{})
	}
}

// setClock sets the clock of an exporter.
func (s *story) setClock(x *broken) {
	at := s.now.Now()
	if s.skewed {
		at = at.Add(time.Hour * time.Duration(x.skew))
	}
	x.clock.SetTime(at)
}

// startExporter starts an exporter, which lists the cluster. At each statement it may be killed, before or after the ledger has it.
func (s *story) startExporter() {
	s.runs++
	s.lastStart = s.now.Now()
	own := clocktesting.NewFakePassiveClock(s.now.Now())
	s.note("exporter r%d starts", s.runs)
	track := newTracker("c", forest.Rules{}, nil, own.Now)
	x := &broken{clock: own, skew: s.random.IntN(3) - 1}
	s.setClock(x)
	fails := func(string) error {
		if s.away {
			return errAway
		}
		return nil
	}
	killed := func(statement string) error {
		if !s.calm && s.random.IntN(25) == 0 {
			s.note("exporter %s is killed, or its answer is lost, at %s", x.run.ID, statement)
			if s.random.IntN(2) == 0 {
				s.exporters = slices.DeleteFunc(slices.Clone(s.exporters), func(other *broken) bool { return other == x })
			}
			return errAway
		}
		return nil
	}
	x.keeper = &keeper{store: &link{s.store, func(statement string) error { return errors.Join(fails(statement), killed(statement)) }, killed},
		tracker: track, clock: own, timeout: time.Minute, compareEvery: time.Hour, events: record.NewFakeRecorder(1000),
		askedToEnd: func() bool { return false }, run: billing.Run{ID: fmt.Sprint("r", s.runs), StartedAt: own.Now()}}
	s.list(track)
	track.beginTracking()
	s.exporters = append(s.exporters, x)
}

// list passes the complete lists of both kinds.
func (s *story) list(track *tracker) {
	var namespaces, payers []any
	for _, n := range s.facts {
		namespaces = append(namespaces, n)
	}
	for _, p := range s.payers {
		payers = append(payers, p)
	}
	track.replaceAll(&namespaceFacts{}, namespaces)
	track.replaceAll(&tenantFacts{}, payers)
}

// step lets some time pass and something happen.
func (s *story) step() {
	s.now.SetTime(s.now.Now().Add(time.Duration(10+s.random.IntN(600)) * time.Second))
	for _, x := range s.exporters {
		s.setClock(x)
	}
	switch kind := s.random.IntN(12); {
	case kind < 6:
		s.changeCluster()
	case kind == 6:
		s.away = !s.away
		s.note("away: %t", s.away)
	case kind == 7 && len(s.exporters) < 2:
		s.startExporter()
	case kind == 8 && len(s.exporters) > 0:
		s.note("exporter %s ends", s.exporters[0].run.ID)
		s.exporters = s.exporters[1:]
	case kind == 9 && len(s.exporters) > 0 && s.countOpen() > 1: // the guard lets a single end through
		s.note("exporter %s gets a truncated list, then the whole", s.exporters[0].run.ID)
		x := s.exporters[0]
		x.tracker.replaceAll(&namespaceFacts{}, nil)
		x.runDue(s.t.Context())
		s.list(x.tracker)
	}
	for _, x := range slices.Clone(s.exporters) {
		x.see()
		x.runDue(s.t.Context())
		s.check()
	}
}

func (s *story) countOpen() (n int) {
	for _, p := range s.read() {
		if p.ValidTo.IsZero() {
			n++
		}
	}
	return n
}

// check compares the ledger with the model: periods never overlap, have only what the cluster had, and the watermark promises only what
// the ledger has.
func (s *story) check() {
	s.t.Helper()
	all := s.read()
	if overlap := ledgertest.Overlap(all); overlap != "" {
		s.fail("two periods overlap: %s", overlap)
	}
	until, err := s.store.CompleteUntil(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if until.After(s.now.Now()) && !s.skewed {
		s.fail("complete until %s, which lies ahead", until)
	}
	for _, p := range all {
		if !slices.ContainsFunc(s.truth[p.Namespace], func(m moment) bool { return m.has(p) }) {
			s.fail("the cluster never had %+v", p)
		}
	}
	for name, moments := range s.truth {
		for i, m := range moments {
			if s.skewed || !m.at.After(s.lastStart) || !m.at.Before(until) {
				continue
			}
			exact := slices.ContainsFunc(all, func(p ledgertest.Period) bool {
				return p.Namespace == name && (m.uid != "" && m.has(p) && p.ValidFrom.Equal(m.at) || m.uid == "" && p.ValidTo.Equal(m.at))
			})
			gone := m.uid == "" && (i == 0 || moments[i-1].uid == "")
			if !exact && !gone {
				s.fail("%s: the ledger is complete until %s, and lacks %+v", name, until, m)
			}
		}
	}
}

func (m moment) has(p ledgertest.Period) bool {
	return m.uid == p.NamespaceUID && m.tenant == p.Tenant && m.cost == p.CostCenter
}

// end brings everything back, and checks that the ledger then has the cluster's present state, from the times that Kubernetes knows.
func (s *story) end() {
	s.t.Helper()
	s.away, s.calm, s.exporters = false, true, nil
	s.startExporter()
	for range 3 {
		s.now.SetTime(s.now.Now().Add(2 * time.Hour))
		for _, x := range s.exporters {
			s.setClock(x)
			x.see()
			x.runDue(s.t.Context())
		}
		s.check()
	}
	open := map[string]ledgertest.Period{}
	for _, p := range s.read() {
		if p.ValidTo.IsZero() {
			open[p.Namespace] = p
		}
	}
	for name, moments := range s.truth {
		last, p := moments[len(moments)-1], open[name]
		if !last.has(p) {
			s.fail("%s: the cluster has %+v, the ledger %+v", name, last, p)
		}
		if last.known && !s.skewed && !p.ValidFrom.Equal(last.at) {
			s.fail("%s: %s begins at %s in the ledger, and Kubernetes knows %s", name, last.cost, p.ValidFrom, last.at)
		}
	}
}

func (s *story) fail(format string, args ...any) {
	s.t.Helper()
	for _, line := range s.log {
		s.t.Log(line)
	}
	s.t.Fatalf("WARREN_BILLING_SEED=%d: %s", s.seed, fmt.Sprintf(format, args...))
}

// tell runs one history with this seed.
func tell(t *testing.T, seed uint64, store ledger, read func() []ledgertest.Period) {
	t.Helper()
	s := newStory(t, seed, store, read)
	for range 15 + s.random.IntN(30) {
		s.step()
	}
	s.end()
}

// TestHistories runs thousands of histories against the model ledger, and some against each engine. The seed is new in each run.
func TestHistories(t *testing.T) {
	seed := rand.Uint64() >> 16
	if given := os.Getenv("WARREN_BILLING_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d; WARREN_BILLING_SEED=%d runs the same histories again", seed, seed)
	t.Run("BILL-10 in 3,000 random histories, exporters are killed or lose an answer at any statement: no period overlaps, "+
		"and the next exporter restores the present state; "+
		"BILL-13 after outages and kills the present state begins when the API server recorded it; "+
		"BILL-21 two exporters write at once: no periods overlap, and the ledger has only what the cluster had", func(t *testing.T) {
		for i := range uint64(3000) {
			m := &modelLedger{events: map[string]billing.Event{}, until: map[string]time.Time{}}
			tell(t, seed+i, m, m.periods)
		}
	})
	for engine, open := range engines(t) {
		t.Run("BILL-10 in eight random histories on each engine, exporters are killed or lose an answer at any statement: no period overlaps, "+
			"and the next exporter restores the present state; "+
			"BILL-13 on each engine after outages and kills the present state begins when the API server recorded it; "+
			"BILL-21 two exporters write to a real engine at once: "+
			"no periods overlap, and the ledger has only what the cluster had: "+engine, func(t *testing.T) {
			for i := range uint64(8) {
				store, db := open(t)
				tell(t, seed+i, store, func() []ledgertest.Period {
					all, err := ledgertest.Periods(t.Context(), db, "ledger", "")
					if err != nil {
						t.Fatal(err)
					}
					return all
				})
			}
		})
	}
}
