package sim

import (
	"time"
)

// calm is how long after the last fault the operator may still wait before it tries again.
const calm = 40 * time.Second

// lookAtFaults notes whether something is wrong now with what the operator needs.
func (s *Sim) lookAtFaults() {
	now := time.Now()
	wrong := s.Faults != Faults{} || len(s.late) > 0
	for _, w := range s.watches {
		wrong = wrong || now.Before(w.held)
	}
	for _, p := range s.processes {
		wrong = wrong || p.Runs() && p.unlisted != "" && now.Before(p.unlistedUntil)
	}
	if wrong {
		s.troubled = now
	}
}

// IsOperatorWell reports whether an operator leads, and nothing has kept it from its work for a while.
func (s *Sim) IsOperatorWell() bool {
	if !s.troubled.IsZero() && time.Since(s.troubled) < calm {
		return false
	}
	for _, p := range s.processes {
		if p.Leads() {
			return true
		}
	}
	return false
}

// SetManagerAway takes the controller manager away, or brings it back.
func (s *Sim) SetManagerAway(away bool) {
	s.plane.Away = away
	s.log("kubernetes", "has", map[bool]string{true: "no controller manager", false: "a controller manager"}[away])
}

// IsManagerAway reports whether there is no controller manager.
func (s *Sim) IsManagerAway() bool { return s.plane.Away }

// SetClockForward sets the operator's clock forward, while no operator runs.
func (s *Sim) SetClockForward(d time.Duration) {
	s.CloseAll()
	time.Sleep(d)
	s.Server.Advance(-d)
	s.log("operator", "clock", "forward by "+d.String())
}

// SetClockBack sets the operator's clock back: time passes for the rest of the cluster alone, while no operator runs.
func (s *Sim) SetClockBack(d time.Duration) {
	s.CloseAll()
	for end := s.Server.Now().Add(d); ; {
		for tasks := s.plane.Tasks(); len(tasks) > 0; tasks = s.plane.Tasks() {
			tasks[s.rand.IntN(len(tasks))].Do()
			s.look()
		}
		next := s.plane.Due()
		if next.IsZero() || next.After(end) {
			s.Server.Advance(end.Sub(s.Server.Now()))
			break
		}
		s.Server.Advance(next.Sub(s.Server.Now()))
	}
	s.look()
	s.log("operator", "clock", "back by "+d.String())
}

// look has whoever wants to see the cluster after each step see it.
func (s *Sim) look() {
	s.lookAtFaults()
	if s.AfterStep != nil {
		s.AfterStep()
	}
}
