package main

import (
	"fmt"
	"slices"
	"time"
)

// budget is the largest quotient allowed for a phase: the operator's time divided by the floor's.
const budget = 1.15

// judgeQuotient judges one phase by the median of the rounds' quotients of operator and floor.
func judgeQuotient(id, name string, floor, operator []times, phase int) result {
	var quotients []float64
	var f, o []time.Duration
	for i := range floor {
		f, o = append(f, floor[i][phase]), append(o, operator[i][phase])
		quotients = append(quotients, float64(operator[i][phase])/float64(floor[i][phase]))
	}
	ratio := medianOf(quotients)
	return result{
		id: id,
		text: fmt.Sprintf("%s floor %.2fs operator %.2fs ratio %.2f (min %.2f max %.2f) budget %.2f", name,
			medianOf(f).Seconds(), medianOf(o).Seconds(), ratio, slices.Min(quotients), slices.Max(quotients), budget),
		passed: ratio <= budget,
	}
}

// isOutlier reports whether the last round's floor is too far from the median to trust that round: the machine was busy.
func isOutlier(floor []times) bool {
	if len(floor) < 3 {
		return false
	}
	for phase := range floor[0] {
		var all []time.Duration
		for _, t := range floor {
			all = append(all, t[phase])
		}
		m, last := medianOf(all), all[len(all)-1]
		if last > 2*m || m > 2*last {
			return true
		}
	}
	return false
}

func medianOf[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
