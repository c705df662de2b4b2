package simulation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// numberFrom reads SIMULATION_HISTORIES, the number of histories, or SIMULATION_SEED, the first seed.
func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", variable, text, err)
	}
	return n
}

// freshSeeds bounds the first seed, which is drawn: short numbers are easier to copy.
const freshSeeds = 1_000_000_000

// enoughHistories are so many that each of the usual events happens.
const enoughHistories = 5_000

func TestHistories(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	histories := numberFrom(t, "SIMULATION_HISTORIES", usualHistories)
	first := numberFrom(t, "SIMULATION_SEED", rand.Uint64N(freshSeeds))
	began := time.Now()
	all, failed := runMany(first, histories)
	t.Logf("%d histories, seeds %d to %d, in %s", histories, first, first+histories-1, time.Since(began).Round(time.Second))
	if testing.Verbose() {
		all.print(os.Stdout)
	}
	if missing := all.unknown(); len(missing) > 0 {
		t.Errorf("the table of Inputs lacks %v", missing)
	}
	if lacking := all.lacking(); failed == nil && histories >= enoughHistories && len(lacking) > 0 {
		t.Errorf("no history has met %v", lacking)
	}
	for number, says := range invariants {
		t.Run(number+" "+says, func(t *testing.T) {
			if failed != nil && strings.Fields(number)[0] == failed.wrong.Invariant {
				t.Errorf("%s\n%s", failed.wrong, explain(shrink(failed.script, failed.wrong.Invariant)))
			}
		})
	}
}

// invariants are checked in each history. PROP-V3, PROP-O1 and PROP-V1 hold in any order, too.
var invariants = map[string]string{
	"FLT-M1": "each PUT and DELETE has as preconditions the UID and the resourceVersion of the object for which it was planned",
	"FLT-M2": "an object that is not the operator's, even with forged labels and annotations, is neither written nor deleted, " +
		"unless a ResourceDistribution takes it over",
	"FLT-M3": "a copy that was wanted at every moment since the oldest state on which the replica may have based its decision is " +
		"not deleted",
	"FLT-M4": "a copy is written only where source and forest ask for it, or asked at a moment that counts; its content and its " +
		"Role are ones that the source had",
	"FLT-M5 PROP-V1": "a copy is written only after each DELETE in its namespace was answered; no copy in mode update is then left of a " +
		"namespace no longer above",
	"FLT-M6 PROP-O1": "the first RoleBindings that are copied into a namespace are written after its rails, except a rail whose name " +
		"another object has or had",
	"FLT-M7":  "a new copy does not make the copies in a tree exceed its limit",
	"FLT-M8":  "an Input of a State leads to at most one request, and to no panic",
	"FLT-M9":  "when all faults have ended, the work ends within 5,000 steps and 30 minutes of back-offs",
	"FLT-M10": "when the work has ended, every slot is planned again, and the operator restarts, nothing is written",
	"FLT-M11 PROP-V3": "when the work has ended, each slot has what source and forest ask for; each target of a ResourceDistribution has " +
		"its copy or a conflict, and Ready its reason",
}

// failedScript is a script, and what is wrong in its history.
type failedScript struct {
	script script
	wrong  *Failure
}

// runMany runs the histories of so many seeds on all cores, and ends with the first that fails.
func runMany(first, histories uint64) (all coverage, failed *failedScript) {
	all = coverage{}
	var next atomic.Uint64
	var mu sync.Mutex // guards all and failed
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			mine := coverage{}
			for i := next.Add(1) - 1; i < histories; i = next.Add(1) - 1 {
				s := newScript(first + i)
				if wrong := run(s, mine, nil); wrong != nil {
					mu.Lock()
					if failed == nil || s.seed < failed.script.seed {
						failed = &failedScript{s, wrong}
					}
					mu.Unlock()
					next.Store(histories)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
		})
	}
	working.Wait()
	return all, failed
}

func TestTheSameSeedIsTheSameHistory(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint("FLT-M12 the same seed gives the same history: seed ", seed), func(t *testing.T) {
			if a, b := explain(newScript(seed)), explain(newScript(seed)); a != b {
				t.Errorf("got\n%s\nand then\n%s", a, b)
			}
		})
	}
}
