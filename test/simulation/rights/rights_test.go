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
	"FLT-M13": "a write to an access object changes only an object that the operator has created, and not the roleRef",
	"FLT-M14": "a write grants only what the lists grant, or have since the pass began; no binding exceeds its name's rules, and only " +
		"sudoers get self pairs",
	"FLT-M15": "a write that only grants is sent after the rights are revoked that objects gave when the pass began and that the lists " +
		"don't name",
	"FLT-M16": "an access object that several tenants own is not deleted for one of them while another exists",
	"FLT-M17": "when faults have ended and every name is free, the work ends within 12 passes with the rights of the lists; no binding or " +
		"self pair gives more",
	"FLT-M18": "a namespace leaves a tenant only by a user who may change the tenant; it joins a tree only by one with authority there, or " +
		"a cluster admin",
	"FLT-M19": "a namespace gets copies or labels from above only where the labels parent lead to a root, whatever two simultaneous " +
		"requests have changed",
	"FLT-M20": "when the work has ended, each namespace has the tree labels of its path to the root, and nothing more is written",
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
