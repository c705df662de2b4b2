package distribution

// key is one piece of work: a review of all targets of a distribution, or of one namespace where that is said.
type key struct{ distribution, namespace string }

// urgencyOf says what a key is worth: reviews first, then writes, in turns by distribution.
func urgencyOf(k key) (class int, distribution string) {
	if k.namespace == "" {
		return 0, ""
	}
	return 1, k.distribution
}
