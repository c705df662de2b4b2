package rights

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// usualHistories is how many histories of each of the two kinds run without SIMULATION_HISTORIES.
const usualHistories = 2_000

func numberFrom(variable string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(variable), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// invariants are checked in each history.
var invariants = map[string]string{
	"FLT-M13": "what somebody else has made is neither written nor deleted",
	"FLT-M14": "no right appears that nobody has granted since the pass began",
	"FLT-M15": "rights are taken away before rights are given",
	"FLT-M16": "what several tenants own stays for the others",
	"FLT-M17": "the work ends, and the rights are those of the lists",
	"FLT-M18": "who takes a namespace away, or brings one, was allowed to",
	"FLT-M19": "nothing is given where no root is above",
	"FLT-M20": "the operator places namespaces in a bounded number of writes",
}

func TestRights(t *testing.T) {
	histories, first := numberFrom("SIMULATION_HISTORIES", usualHistories), numberFrom("SIMULATION_SEED", rand.Uint64N(1_000_000_000))
	failed := runMany(first, histories)
	t.Logf("%d histories of grants and of moves each, seeds %d to %d", histories, first, first+histories-1)
	for number, says := range invariants {
		t.Run(number+" "+says, func(t *testing.T) {
			if failed != nil && failed.wrong.Invariant == number {
				t.Error(explain(failed.seed, failed.run))
			}
		})
	}
}

// runs are the kinds of histories.
var runs = []func(uint64, func(string)) *Failure{runGrants, runMoves}

// failedRun is a history, and what is wrong in it.
type failedRun struct {
	seed  uint64
	run   func(uint64, func(string)) *Failure
	wrong *Failure
}

// runMany runs the histories of so many seeds on all cores, and ends soon after one that fails.
func runMany(first, histories uint64) (failed *failedRun) {
	var next atomic.Uint64
	var mu sync.Mutex // guards failed
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for i := next.Add(1) - 1; i < histories; i = next.Add(1) - 1 {
				for _, run := range runs {
					if wrong := run(first+i, nil); wrong != nil {
						mu.Lock()
						failed = &failedRun{first + i, run, wrong}
						mu.Unlock()
						next.Store(histories)
					}
				}
			}
		})
	}
	working.Wait()
	return failed
}

// explain runs a history again, and returns what happens in it as a table.
func explain(seed uint64, run func(uint64, func(string)) *Failure) string {
	var text strings.Builder
	rows := 0
	wrong := run(seed, func(what string) {
		rows++
		fmt.Fprintf(&text, "%4d  %s\n", rows, what)
	})
	return fmt.Sprintf("seed %d\n%s      %v", seed, &text, wrong)
}
