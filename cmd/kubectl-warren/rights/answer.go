package rights

// Answer is yes or no; or unknown, if the caller may not read enough.
type Answer string

// The answers.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

func (a Answer) combineByOr(b Answer) Answer {
	switch {
	case a == Yes || b == Yes:
		return Yes
	case a == Unknown || b == Unknown:
		return Unknown
	}
	return No
}

func (a Answer) combineByAnd(b Answer) Answer {
	switch {
	case a == No || b == No:
		return No
	case a == Unknown || b == Unknown:
		return Unknown
	}
	return Yes
}
