package story

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/whole/oracle"
	"github.com/warren-tenancy/warren/test/whole/sim"
)

// History is a script that happens.
type History struct {
	Sim *sim.Sim
	// Applied is how many events did something.
	Applied int

	rand     *rand.Rand // of what scripts don't say
	watcher  *oracle.Watcher
	requests *oracle.Requests
	asked    int // requests
	settling bool
}

// Result is what came of a history.
type Result struct {
	Found   []oracle.Finding
	Applied int
	Counts  sim.Counts
	Virtual time.Duration
}

const (
	// patience is how long a history may take to settle when all faults have ended. The operator's longest back-off is 5 minutes.
	patience = 40 * time.Minute
	// quiet is how long nothing is written in a cluster that has settled.
	quiet = 6 * time.Minute
	// refusals is how many writes the API server may refuse in that time: each is tried again after a pause that grows.
	refusals = 100
	// restarted is how long a fresh operator has to write what it should not.
	restarted = 90 * time.Second
)

// Run lets a script happen in a bubble, and judges it.
func Run(script Script, settings sim.Settings) Result {
	settings.Seed = script.Seed
	h := &History{Sim: sim.New(settings), rand: rand.New(rand.NewPCG(script.Seed, 3))}
	h.watcher = oracle.NewWatcher(h.Sim.Server, sim.Operator, h.Sim.Knowing)
	h.watchRequests(script.Seed)
	h.start()
	for _, e := range script.Events {
		h.keepRunning()
		h.Sim.Log("story", deeds[e.deed].name)
		if deeds[e.deed].do(h, e) {
			h.Applied++
		}
		h.Sim.Run(e.Then)
		if len(h.findings()) > 0 {
			break
		}
	}
	found := h.findings()
	if len(found) == 0 {
		found = h.settle()
	}
	h.end()
	h.Sim.Counts.Starts, h.Sim.Counts.Questions, h.Sim.Counts.Granted = h.Sim.Starts(), h.requests.Asked, h.requests.Granted
	return Result{Found: found, Applied: h.Applied, Counts: h.Sim.Counts, Virtual: time.Since(h.Sim.Begun)}
}

// findings returns what was found while things happened.
func (h *History) findings() []oracle.Finding {
	return slices.Concat(h.watcher.Found, h.requests.Found)
}

// keepRunning starts an operator where none runs, as a kubelet does.
func (h *History) keepRunning() {
	for range 5 {
		if len(h.Sim.Processes()) > 0 {
			return
		}
		h.start()
	}
}

// settle ends all faults and judges what the operator makes of the cluster.
func (h *History) settle() []oracle.Finding {
	h.settling = true
	h.Sim.EndFaults()
	h.Sim.KillAtSudo(0)
	h.Sim.SetManagerAway(false)
	h.bringPoliciesBack(Event{})
	h.Sim.Log("story", "all faults end")
	begun, seen, last := time.Now(), h.countChanges(), time.Now()
	for time.Since(last) < quiet || len(h.Sim.Server.Kind("batch", "jobs").All()) > 0 {
		h.keepRunning()
		h.Sim.Run(2 * time.Second)
		if n := h.countChanges(); n > seen {
			seen, last = n, time.Now()
		}
		if time.Since(begun) > patience {
			return []oracle.Finding{{Oracle: oracle.Quiet, Text: "the operator still writes after " + patience.String() + ":" +
				describeWrites(h.Sim.Writes[max(0, len(h.Sim.Writes)-12):])}}
		}
	}
	h.Sim.Log("story", "the cluster has settled")
	if n := h.countRefused(time.Now().Add(-quiet)); n > refusals {
		return []oracle.Finding{{Oracle: oracle.Quiet, Text: fmt.Sprintf("the API server refused %d writes in %s:%s", n, quiet,
			describeWrites(h.Sim.Writes[len(h.Sim.Writes)-12:]))}}
	}
	if found := h.findings(); len(found) > 0 {
		return found
	}
	found := slices.Concat(oracle.CheckGenerations(h.Sim.Server), oracle.CheckPeople(h.Sim.Server))
	return append(found, h.restart()...)
}

// restart judges what a fresh operator writes in a cluster that has settled: nothing.
func (h *History) restart() []oracle.Finding {
	for _, p := range h.Sim.Processes() {
		p.Stop()
	}
	h.Sim.Run(40 * time.Second)
	before := len(h.Sim.Writes)
	p := h.start()
	if !h.Sim.RunUntil(p.IsSynced, time.Minute) {
		_, err := p.Ended()
		return []oracle.Finding{{Oracle: oracle.Restart, Text: fmt.Sprintf("the caches of a fresh operator have not synced: %v", err)}}
	}
	h.Sim.Run(restarted)
	var found []oracle.Finding
	for _, w := range h.Sim.Writes[before:] {
		if !w.HasChanged() {
			continue // a place that another object has is found by a POST
		}
		found = append(found, oracle.Finding{Oracle: oracle.Restart, Text: "a fresh operator writes " + w.String()})
	}
	return found
}

// countChanges returns how many writes of the operator have changed something.
func (h *History) countChanges() int {
	n := 0
	for _, w := range h.Sim.Writes {
		if w.HasChanged() {
			n++
		}
	}
	return n
}

// countRefused returns how many writes were refused since a time.
func (h *History) countRefused(since time.Time) int {
	n := 0
	for _, w := range h.Sim.Writes {
		if w.At.After(since) && w.Code >= 400 {
			n++
		}
	}
	return n
}

func describeWrites(writes []sim.Write) string {
	var text strings.Builder
	for _, w := range writes[:min(len(writes), 20)] {
		text.WriteString("\n    " + w.String())
	}
	return text.String()
}

// end stops all processes, so that few goroutines are left.
func (h *History) end() {
	h.settling = true
	h.Sim.EndFaults()
	for _, p := range h.Sim.Processes() {
		h.Sim.RunUntil(p.IsSynced, time.Minute)
		p.Stop()
	}
	h.Sim.Run(70 * time.Second)
	h.Sim.CloseAll()
	h.Sim.Run(10 * time.Second)
}
