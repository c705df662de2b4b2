package budget

import "time"

// CountSteps returns how many cells the lines of a plan have together: a rule that walks along each line takes as many steps.
func CountSteps(limits []Limit, rows []Row) (steps int) {
	for _, l := range newPass(limits, rows, nil, time.Time{}).lines {
		steps += len(l.cells)
	}
	return steps
}
