package copies

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selector matches labels in a time that depends on how many labels there are, not on how many requirements: one source with the longest
// selector has hundreds of requirements, and each plan of each namespace below matches them anew.
type selector struct {
	labels.Selector
	byKey  []labels.Requirement // all
	needed []labels.Requirement // those that no namespace meets without a label of that key
}

func newSelector(parsed labels.Selector) selector {
	all, _ := parsed.Requirements()
	s := selector{Selector: parsed, byKey: slices.Clone(all)}
	slices.SortStableFunc(s.byKey, func(a, b labels.Requirement) int { return cmp.Compare(a.Key(), b.Key()) })
	for _, r := range s.byKey {
		switch r.Operator() {
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
		default:
			s.needed = append(s.needed, r)
		}
	}
	return s
}

// Matches implements labels.Selector.
func (s selector) Matches(l labels.Labels) bool {
	set, isSet := l.(labels.Set)
	if !isSet {
		return s.Selector.Matches(l)
	}
	for _, r := range s.needed {
		if !r.Matches(set) {
			return false
		}
	}
	for key := range set {
		at, _ := slices.BinarySearchFunc(s.byKey, key, func(r labels.Requirement, key string) int { return cmp.Compare(r.Key(), key) })
		for ; at < len(s.byKey) && s.byKey[at].Key() == key; at++ {
			if !s.byKey[at].Matches(set) {
				return false
			}
		}
	}
	return true
}
