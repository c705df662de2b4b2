// Bench measures the budgets B1 to B7, and B9 to B11, of docs/behaviour/propagation.md, section 4: the operator against a client-go writer
// that does the least possible work on the same API server, in turns in one run. It prints one line for each budget, and exits with status
// 1 if one is exceeded.
//
//	go run ./test/bench [-rounds 7] [-children 300] [-only B1,B2]
//	go run ./test/bench -mode All -kinds 4
//	go run ./test/bench -scope Namespaces
//	go run ./test/bench -only B9 -children 1000
//	go run ./test/bench -cold
//	go run ./test/bench -admission
//	go run ./test/bench -access
//	go run ./test/bench -targets
//	go run ./test/bench -noisy
//	go run ./test/bench -migration -children 1000
//	go run ./test/bench -informers
//	go run ./test/bench -budgets [-hnc FOLDER]
//
// BENCH_SCALE=small makes 30 children and 3 rounds, and judges only what doesn't depend on the machine: B4, B5 and the
// requests of B9 and B10.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// scale is how much is measured.
type scale struct {
	children, sources, rounds int
	// kinds are the kinds of the sources, which take turns. mode is the mode of these kinds, All or OptIn.
	kinds []benchKind
	mode  string
	// small means that only counts are judged, and that less is measured, for a shorter time.
	small bool
	idle  time.Duration
	// hnc is the folder of a clone of HNC with bin/manager, for comparison; empty means that it is left out.
	hnc string
	// scope is the scope of these kinds; empty means the default. Kinds of RBAC always have scope Cluster.
	scope string
}

func main() {
	s := scale{children: 300, sources: 10, rounds: 7, idle: 60 * time.Second}
	if os.Getenv("BENCH_SCALE") == "small" {
		s = scale{children: 30, sources: 10, rounds: 3, small: true, idle: 5 * time.Second}
	}
	flag.IntVar(&s.children, "children", s.children, "namespaces below the root")
	flag.IntVar(&s.rounds, "rounds", s.rounds, "rounds of floor and operator")
	flag.DurationVar(&s.idle, "idle", s.idle, "how long idleness is watched")
	flag.StringVar(&s.scope, "scope", s.scope, "how the operator watches the kinds that B1 to B6 measure, but those of RBAC: Cluster, "+
		"Namespaces or Auto")
	flag.StringVar(&s.mode, "mode", "OptIn", "mode of the kinds that B1 to B7 measure: OptIn or All")
	kinds := flag.Int("kinds", 1, "how many kinds the sources of B1 to B5 are of: Secret, ConfigMap, Role, RoleBinding")
	cold := flag.Bool("cold", false, "measure B8, the cold start, instead: with 1,000, 2,000, 5,000 and 10,000 namespaces")
	admission := flag.Bool("admission", false,
		"measure SEC-P5, what the policies add to a request, instead; -children is the number of requests")
	access := flag.Bool("access", false, "measure instead what access costs: how soon sudo begins and ends, standing and on request, and "+
		"writes, with 200 tenants; and B12, what bindings cost all requests")
	targets := flag.Bool("targets", false, "measure DIST-D71 instead: one ResourceDistribution to 10,000 namespaces")
	migration := flag.Bool("migration", false, "measure instead a move from HNC: a root with -children, and ten copies in each")
	noisy := flag.Bool("noisy", false, "measure instead what a tenant that floods costs the others")
	informers := flag.Bool("informers", false, "measure instead what informers by namespace cost, beside those of controller-runtime, and "+
		"how soon they follow RBAC")
	budgets := flag.Bool("budgets", false, "measure instead what a budget over a tree costs, and how strict it is")
	flag.StringVar(&s.hnc, "hnc", "", "with -budgets, a clone of HNC in which bin/manager is built, to be measured in the same run")
	hold := flag.Bool("hold", false, "hold the informers that standard input names, for -informers")
	only := flag.String("only", "", "the budgets to measure, such as B1,B2; empty: all; with -mode All those up to B7, and B11; with -scope "+
		"those up to B6, and B11; with -access such as B12,W3; with -noisy the numbers of the floods, such as 3")
	flag.Parse()
	if err := s.chooseKinds(*kinds); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	log.SetLogger(logr.Discard()) // this program uses only controller-runtime's client
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	measure := func() (bool, error) { return run(ctx, s, parts, s.chooseBudgets(*only)) }
	switch {
	case *hold:
		measure = func() (bool, error) { return true, holdInformers(ctx, os.Stdin, os.Stdout) }
	case *cold:
		measure = func() (bool, error) { return runCold(ctx, s) }
	case *admission:
		measure = func() (bool, error) { return part{measure: measureAdmission, webhooks: true}.measureAlone(ctx, s) }
	case *targets:
		measure = func() (bool, error) {
			return part{measure: measureManyTargets, components: []string{"config/components/distribution"}}.measureAlone(ctx, s)
		}
	case *budgets:
		measure = func() (bool, error) {
			return part{measure: measureBudgets, webhooks: true, components: []string{"config/components/budgets"}}.measureAlone(ctx, s)
		}
	case *migration:
		measure = func() (bool, error) { return part{measure: measureMigration, webhooks: true}.measureAlone(ctx, s) }
	case *noisy:
		measure = func() (bool, error) { return runNoisy(ctx, s, *only) }
	case *informers:
		measure = func() (bool, error) { return part{measure: measureInformers}.measureAlone(ctx, s) }
	case *access:
		measure = func() (bool, error) { return run(ctx, s, accessParts, chooseAccessBudgets(*only)) }
	}
	ok, err := measure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// chooseKinds checks the flags, and chooses the first of benchKinds; kinds is their number.
func (s *scale) chooseKinds(kinds int) error {
	if kinds < 1 || kinds > len(benchKinds) || s.mode != modeAll && s.mode != "OptIn" {
		return fmt.Errorf("-kinds %d -mode %s: choose 1 to %d, and OptIn or All", kinds, s.mode, len(benchKinds))
	}
	if s.scope != "" && !slices.Contains([]string{"Cluster", "Namespaces", "Auto"}, s.scope) {
		return fmt.Errorf("-scope %s: choose Cluster, Namespaces or Auto", s.scope)
	}
	s.kinds = benchKinds[:kinds]
	return nil
}

// chooseBudgets returns the budgets to measure. With mode All or a scope, they are those that depend on it. In scope Namespaces, the 10,000
// namespaces of B7 would need 20,000 watches.
func (s scale) chooseBudgets(only string) []string {
	switch {
	case only != "":
	case s.scope != "":
		only = "B1,B2,B3,B4,B5,B6,B11"
	case s.mode == modeAll:
		only = "B1,B2,B3,B4,B5,B6,B7,B11"
	default:
		only = "B1,B2,B3,B4,B5,B6,B7,B9,B10,B11"
	}
	return strings.Split(only, ",")
}

// chooseAccessBudgets returns the budgets to measure with -access: all of them unless the parameter only names some.
func chooseAccessBudgets(only string) []string {
	if only == "" {
		only = "W1,W2,W3,W4,W5,S1,S2,R1,R2,R3,R4,B12"
	}
	return strings.Split(only, ",")
}

// part measures some budgets on a world of its own.
type part struct {
	ids     []string
	measure func(context.Context, *bench) ([]result, error)
	// webhooks means that the operator serves its webhooks, too.
	webhooks bool
	// components are added to the overlay.
	components []string
}

var parts = []part{
	{ids: []string{"B1", "B2", "B3", "B4", "B11"}, measure: fanOut},
	{ids: []string{"B5"}, measure: measureRestart},
	{ids: []string{"B6"}, measure: measureDepth},
	{ids: []string{"B7"}, measure: measureMemory},
	{ids: []string{"B9"}, measure: measureDistribution, components: []string{"config/components/distribution"}},
	{ids: []string{"B10"}, measure: measureChildren, webhooks: true},
}

// accessParts are the parts that -access measures.
var accessParts = []part{
	{ids: []string{"W1", "W2", "W3", "W4", "W5", "S1", "S2", "R1", "R2", "R3", "R4"}, measure: measureAccess,
		components: []string{"config/components/requests"}},
	{ids: []string{"B12"}, measure: measureBindings},
}

func run(ctx context.Context, s scale, parts []part, only []string) (bool, error) {
	ok := true
	for _, p := range parts {
		wanted := map[string]bool{}
		for _, id := range p.ids {
			for _, o := range only {
				wanted[id] = wanted[id] || o == id
			}
		}
		if !anyTrue(wanted) {
			continue
		}
		results, err := p.on(ctx, s)
		if err != nil {
			return false, err
		}
		for _, r := range results {
			if wanted[r.id] && !s.tell(r) {
				ok = false
			}
		}
	}
	return ok, nil
}

// runCold measures B8, each size on a world of its own.
func runCold(ctx context.Context, s scale) (bool, error) {
	sizes := []int{10, 20, 50, 100}
	if s.small {
		sizes = []int{1, 2}
	}
	var runs []cold
	for _, trees := range sizes {
		p := part{measure: func(ctx context.Context, b *bench) ([]result, error) {
			c, err := coldStart(ctx, b, trees)
			runs = append(runs, c)
			return nil, err
		}}
		if _, err := p.on(ctx, s); err != nil {
			return false, err
		}
	}
	return s.tell(judgeScale(runs)), nil
}

// measureAlone measures a part by itself and prints what came out.
func (p part) measureAlone(ctx context.Context, s scale) (bool, error) {
	results, err := p.on(ctx, s)
	if err != nil {
		return false, err
	}
	ok := true
	for _, r := range results {
		ok = s.tell(r) && ok
	}
	return ok, nil
}

func (p part) on(ctx context.Context, s scale) ([]result, error) {
	manager, err := devcluster.BuildManager(ctx)
	if err != nil {
		return nil, err
	}
	w, err := devcluster.Start(ctx, devcluster.Options{
		WithoutOperator: true, Webhooks: p.webhooks, Components: p.components, Operator: devcluster.OperatorOptions{Manager: manager},
		ControlPlane: controlplane.Options{DefaultGarbage: true},
	})
	if err != nil {
		return nil, err
	}
	b := &bench{World: w, scale: s}
	if text := s.configuration(); text != "" {
		b.writeConfig(text)
	}
	results, err := p.measure(ctx, b)
	if stopped := w.Stop(); err == nil {
		err = stopped
	}
	return results, err
}

func anyTrue(m map[string]bool) bool {
	for _, v := range m {
		if v {
			return true
		}
	}
	return false
}

// result is what came out for one budget.
type result struct {
	id, text string
	passed   bool
	// counted means that the result doesn't depend on the machine: it is judged at every scale.
	counted bool
	// told means that there is no budget: it is printed for comparison.
	told bool
}

// tell prints one line, and returns r.passed; true if there is no budget, or if it is not judged at this scale.
func (s scale) tell(r result) bool {
	verdict := "FAIL"
	switch {
	case r.told:
		verdict, r.passed = "", true
	case s.small && !r.counted:
		verdict, r.passed = "not judged", true
	case r.passed:
		verdict = "PASS"
	}
	fmt.Println(strings.TrimSpace(r.id + " " + r.text + " " + verdict))
	return r.passed
}
