package forest

import (
	"fmt"
	"maps"
	"slices"
)

// ReplacedValues returns the values that somebody set on the namespace called name, and on its descendants, and that
// inherited values would replace. Each has the form "svc-1 team (z)": namespace, key, value. The snapshot must be the
// forest after the intended change.
func ReplacedValues(s *Snapshot, name string) (labels, annotations []string) {
	var replaced [2][]string
	for _, at := range append([]string{name}, slices.Collect(s.Below(name))...) {
		n := s.Namespace(at)
		if _, ok := s.Sources(at); n == nil || !ok {
			continue
		}
		ours, wanted := n.operatorKeys(), inheritedKeys(s, at)
		for i, d := range s.rules.bothSides() {
			have := d.of(n)
			for _, key := range slices.Sorted(maps.Keys(wanted[i].written)) {
				value, ok := have[key]
				if theirs := ok && value != wanted[i].written[key] && !ours[d.mark+key]; theirs {
					replaced[i] = append(replaced[i], fmt.Sprintf("%s %s (%s)", at, key, value))
				}
			}
		}
	}
	return replaced[0], replaced[1]
}
