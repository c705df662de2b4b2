package main

import (
	"fmt"
	"strings"

	"github.com/prometheus/procfs"
)

const (
	// controlPlaneBudget is the largest quotient that is allowed: the CPU time of etcd, API server and controller manager while the operator
	// writes copies, divided by the same while the floor writes them.
	controlPlaneBudget = 1.1
	// operatorBudget is the largest quotient that is allowed: the operator's own CPU time, divided by that of the control plane while the
	// floor writes. A faster core makes both less.
	operatorBudget = 0.25
)

// cpu adds up the CPU time of all turns, in seconds. The floor's own CPU time is left out, because the floor runs in this process.
type cpu struct {
	controlPlane [2][3]float64
	operator     [3]float64
}

// readCPU returns what the processes of the control plane, and the operator if it runs, have spent since they began, in seconds.
func (f *fan) readCPU() (controlPlane, operator float64, err error) {
	plane := f.bench.ControlPlane
	for _, pid := range []int{plane.Etcd.PID(), plane.APIServer.PID(), plane.Controllers.PID()} {
		spent, err := readCPUTime(pid)
		if err != nil {
			return 0, 0, err
		}
		controlPlane += spent
	}
	if f.running {
		operator, err = readCPUTime(f.bench.Operator.Process().PID())
	}
	return controlPlane, operator, err
}

func readCPUTime(pid int) (float64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.CPUTime(), err
}

// measureCPU runs a turn, and adds to f.cpu what the processes spend meanwhile.
func (f *fan) measureCPU(who side, phase int, turn func() error) error {
	planeBefore, operatorBefore, err := f.readCPU()
	if err != nil {
		return err
	}
	if err := turn(); err != nil {
		return err
	}
	plane, own, err := f.readCPU()
	if err != nil {
		return err
	}
	f.cpu.controlPlane[who][phase] += plane - planeBefore
	if who == operator {
		f.cpu.operator[phase] += own - operatorBefore
	}
	return nil
}

// judge judges B11. Both sides have had the same number of turns.
func (c cpu) judge() result {
	r := result{id: "B11", passed: true}
	var told []string
	for phase, name := range phases {
		bare := c.controlPlane[floor][phase]
		if bare == 0 {
			return result{id: "B11", text: "CPU time: too little was done to measure any: choose more -children or -rounds"}
		}
		plane, own := c.controlPlane[operator][phase]/bare, c.operator[phase]/bare
		told = append(told, fmt.Sprintf("%s %.2f and %.2f", name, plane, own))
		r.passed = r.passed && plane <= controlPlaneBudget && own <= operatorBudget
	}
	r.text = fmt.Sprintf("CPU time of the control plane, and of the operator, in times of the control plane's for the floor: %s budget %.2f "+
		"and %.2f",
		strings.Join(told, ", "), controlPlaneBudget, operatorBudget)
	return r
}
