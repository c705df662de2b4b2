package story

import (
	"time"

	"github.com/warren-tenancy/warren/test/whole/sim"
)

func (h *History) kill(e Event) bool {
	running := h.Sim.Processes()
	if len(running) == 0 {
		return false
	}
	running[e.A%len(running)].Kill()
	return true
}

func (h *History) stop(e Event) bool {
	running := h.Sim.Processes()
	if len(running) == 0 {
		return false
	}
	running[e.A%len(running)].Stop()
	return true
}

func (h *History) startStandby(Event) bool {
	if len(h.Sim.Processes()) > 1 {
		return false
	}
	h.start()
	return true
}

func (h *History) fail(e Event) bool {
	h.Sim.Faults = sim.Faults{Refused: e.A % 100, Reset: e.A >> 7 % 50, Lost: e.B % 100, Slow: e.C % 100}
	return true
}

func (h *History) recover(Event) bool {
	h.Sim.Faults = sim.Faults{}
	return true
}

func (h *History) breakWatches(e Event) bool {
	for range 1 + e.A%5 {
		h.Sim.BreakWatch()
	}
	return true
}

func (h *History) holdWatch(e Event) bool {
	h.Sim.HoldWatch(time.Duration(1+e.B%45) * time.Second)
	return true
}

func (h *History) compact(Event) bool {
	h.Sim.Server.Compact()
	return true
}

// unlistable are the resources whose first list may fail.
var unlistable = []string{"namespaces", "lnamespaces", "subnamespaces", "secrets", "resourcequotas", "rolebindings", "clusterrolebindings",
	"hierarchicalresourcequotas", "hierarchyconfigurations", "resourcedistributions", "sudorequests", "jobs"}

// start starts an operator. The first list of a resource fails for half a minute and more, at one start of five.
func (h *History) start() *sim.Process {
	p := h.Sim.Start()
	if h.rand.IntN(5) == 0 && !h.settling {
		p.Unlist(unlistable[h.rand.IntN(len(unlistable))], time.Duration(30+h.rand.IntN(30))*time.Second)
	}
	return p
}
