package grants

import v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"

// Answer is the API server's answer to a harmless request in the constrained form.
type Answer string

// The answers of a probe.
const (
	// Yes: the API server knows the constrained form.
	Yes Answer = "yes"
	// No: the API server doesn't know the constrained form.
	No Answer = "no"
	// Unknown: the API server gave no answer, or one that allows no conclusion.
	Unknown Answer = "unknown"
)

// patience is how many times in a row the API server has to answer No to a probe; answers Unknown in between don't count. After that, sudo
// that is granted in the constrained form is taken to have stopped working.
const patience = 3

// Mode is the form in which sudo is granted, to all tenants at once, because the self pair of a sudoer belongs to several tenants. During
// a switch the rules contain both forms, so that sudo is never interrupted. An operator that has not decided yet has the zero Mode.
type Mode struct {
	// Told is the value for status.sudo.mode: Legacy or Constrained. It follows Forms when a switch is over.
	Told v1alpha1.SudoMode
	// Forms are the forms that the tenants' rules contain now. They are empty if the operator found no rules at its start and Next was not
	// called yet.
	Forms Forms
	// Unavailable reports that the configuration wants the constrained form alone, and that the API server doesn't know it or has not
	// confirmed it yet. Then nothing is switched, and nobody gets sudo anew.
	Unavailable bool

	target  v1alpha1.SudoMode
	refused int // answers No in a row
	// common are the forms that the rules of every ClusterRole contained when the operator started. They are empty after the first Finish.
	common Forms
}

// ModeOf returns the mode in which an operator starts when the rules of the ClusterRoles in the cluster have these forms, one value for
// each ClusterRole.
func ModeOf(found []Forms) Mode {
	m := Mode{Told: v1alpha1.SudoLegacy, common: Forms{Legacy: true, Constrained: true}}
	for _, forms := range found {
		m.Forms, m.common = m.Forms.Or(forms), m.common.And(forms)
	}
	if m.Forms == FormsOf(v1alpha1.SudoConstrained) {
		m.Told = v1alpha1.SudoConstrained
	}
	return m
}

// Next returns the mode that follows from the configuration and an answer of the API server. configured is Legacy, Constrained, or any
// other value for the best form that the API server offers.
func (m Mode) Next(configured v1alpha1.SudoMode, answer Answer) Mode {
	switch answer {
	case Yes:
		m.refused = 0
	case No:
		m.refused++
	}
	lost := answer == No && (m.refused >= patience || !m.Forms.Constrained)
	switch configured {
	case v1alpha1.SudoLegacy:
		return m.towards(v1alpha1.SudoLegacy)
	case v1alpha1.SudoConstrained:
		if answer != Yes && (lost || m.Unavailable || m.target != v1alpha1.SudoConstrained) {
			return m.halted()
		}
		return m.towards(v1alpha1.SudoConstrained)
	}
	switch {
	case answer == Yes:
		return m.towards(v1alpha1.SudoConstrained)
	case lost:
		return m.towards(v1alpha1.SudoLegacy)
	case m.target == "":
		return m.towards(m.Told)
	}
	return m.towards(m.target)
}

func (m Mode) towards(target v1alpha1.SudoMode) Mode {
	m.Unavailable, m.target = false, target
	// A form that all rules contain, and some of them alone, needs no switch: an earlier switch had already begun to remove the other form.
	if m.Forms == (Forms{}) || m.Forms == FormsOf(target) || m.common == FormsOf(target) {
		return m.Finish()
	}
	m.Forms = Forms{Legacy: true, Constrained: true}
	return m
}

func (m Mode) halted() Mode {
	m.Unavailable, m.target = true, v1alpha1.SudoConstrained
	if m.Forms == (Forms{}) {
		m.Forms, m.Told = FormsOf(m.target), m.target
	}
	return m
}

// Same reports whether tenants have the same rules, and the same status, in both modes.
func (m Mode) Same(other Mode) bool {
	return m.Told == other.Told && m.Forms == other.Forms && m.Unavailable == other.Unavailable
}

// Switching reports whether a switch to another form is under way. During the switch, m.Forms has both forms. When the rules of all tenants
// contain both, Finish ends the switch.
func (m Mode) Switching() bool { return !m.Unavailable && m.Forms != FormsOf(m.target) }

// Towards returns the mode that a switch leads to.
func (m Mode) Towards() v1alpha1.SudoMode { return m.target }

// Finish returns the mode after the switch, without the old form.
func (m Mode) Finish() Mode {
	m.Forms, m.Told, m.common = FormsOf(m.target), m.target, Forms{}
	return m
}
