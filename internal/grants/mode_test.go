package grants_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// spelled returns a mode as text: the mode in the status, the forms of impersonation in the rules, and whether it is unavailable or
// changing.
func spelled(m grants.Mode) string {
	forms := map[grants.Forms]string{
		{}: "none", {Legacy: true}: "legacy", {Constrained: true}: "constrained", {Legacy: true, Constrained: true}: "both",
	}[m.Forms]
	line := string(m.Told) + ":" + forms
	switch {
	case m.Unavailable:
		line += ":unavailable"
	case m.Switching():
		line += ":to" + string(m.Towards())
	}
	return line
}

func TestMode(t *testing.T) {
	const auto = v1alpha1.SudoMode("Auto")
	legacyForm, constrainedForm := grants.FormsOf(v1alpha1.SudoLegacy), grants.FormsOf(v1alpha1.SudoConstrained)
	both := legacyForm.Or(constrainedForm)
	allLegacy, allConstrained := []grants.Forms{legacyForm, legacyForm}, []grants.Forms{constrainedForm, constrainedForm}
	finish := grants.Answer("finish") // means a call of Finish
	cases := map[string]struct {
		found   []grants.Forms // one value for each ClusterRole
		mode    v1alpha1.SudoMode
		answers []grants.Answer
		want    string
	}{
		"a new cluster":                       {mode: v1alpha1.SudoLegacy, answers: []grants.Answer{grants.Unknown}, want: "Legacy:legacy"},
		"ACC-C01 a new cluster that can":      {mode: auto, answers: []grants.Answer{grants.Yes}, want: "Constrained:constrained"},
		"ACC-C01 a new cluster that can't":    {mode: auto, answers: []grants.Answer{grants.No}, want: "Legacy:legacy"},
		"ACC-C01 a new cluster that says 500": {mode: auto, answers: []grants.Answer{grants.Unknown}, want: "Legacy:legacy"},
		"a new cluster that says so later": {mode: auto, answers: []grants.Answer{grants.Unknown, grants.Yes},
			want: "Legacy:legacy Legacy:both:toConstrained"},
		"ACC-C01 legacy stays at 500": {found: allLegacy, mode: auto, answers: []grants.Answer{grants.Unknown},
			want: "Legacy:legacy"},
		"ACC-C01 constrained stays at 500": {found: allConstrained, mode: auto, answers: []grants.Answer{grants.Unknown},
			want: "Constrained:constrained"},
		"constrained stays at two refusals": {found: allConstrained, mode: auto, answers: []grants.Answer{grants.No, grants.No, grants.Yes,
			grants.No, grants.No}, want: "Constrained:constrained Constrained:constrained Constrained:constrained Constrained:constrained " +
			"Constrained:constrained"},
		"constrained goes after three": {found: allConstrained, mode: auto, answers: []grants.Answer{grants.No, grants.Unknown,
			grants.No, grants.No, finish}, want: "Constrained:constrained Constrained:constrained Constrained:constrained " +
			"Constrained:both:toLegacy Legacy:legacy"},
		"legacy is left": {found: allLegacy, mode: auto, answers: []grants.Answer{grants.Yes, grants.Yes, finish,
			grants.Yes}, want: "Legacy:both:toConstrained Legacy:both:toConstrained Constrained:constrained Constrained:constrained"},
		"a switch that a restart interrupted": {found: []grants.Forms{legacyForm, both}, mode: auto,
			answers: []grants.Answer{grants.Yes, finish}, want: "Legacy:both:toConstrained Constrained:constrained"},
		"ACC-C08 a switch that a restart interrupted while it removed the old form": {found: []grants.Forms{both, constrainedForm}, mode: auto,
			answers: []grants.Answer{grants.Yes}, want: "Constrained:constrained"},
		"ACC-C08 the same switch, the other way round": {found: []grants.Forms{both, legacyForm}, mode: v1alpha1.SudoLegacy,
			answers: []grants.Answer{grants.Unknown}, want: "Legacy:legacy"},
		"ACC-C08 the old form is removed from some rules, and the configuration wants it again": {
			found: []grants.Forms{both, constrainedForm}, mode: v1alpha1.SudoLegacy, answers: []grants.Answer{grants.Unknown, finish},
			want: "Legacy:both:toLegacy Legacy:legacy"},
		"every rule has both forms: the bindings may still be missing": {found: []grants.Forms{both, both}, mode: auto,
			answers: []grants.Answer{grants.Yes, finish}, want: "Legacy:both:toConstrained Constrained:constrained"},
		"rules without any form are in no mode": {found: []grants.Forms{{}, constrainedForm, both}, mode: auto,
			answers: []grants.Answer{grants.Yes}, want: "Legacy:both:toConstrained"},
		"what was common at the start is forgotten after a switch": {found: []grants.Forms{both, legacyForm}, mode: auto,
			answers: []grants.Answer{grants.Yes, finish, grants.No, grants.No, grants.No, finish},
			want: "Legacy:both:toConstrained Constrained:constrained Constrained:constrained Constrained:constrained " +
				"Constrained:both:toLegacy Legacy:legacy"},
		"constrained is wanted and there": {mode: v1alpha1.SudoConstrained, answers: []grants.Answer{grants.Yes},
			want: "Constrained:constrained"},
		"constrained is wanted and not there": {mode: v1alpha1.SudoConstrained, answers: []grants.Answer{grants.No, grants.Yes},
			want: "Constrained:constrained:unavailable Constrained:constrained"},
		"nobody knows whether it is there": {mode: v1alpha1.SudoConstrained, answers: []grants.Answer{grants.Unknown, grants.Unknown},
			want: "Constrained:constrained:unavailable Constrained:constrained:unavailable"},
		"legacy doesn't go before it is there": {found: allLegacy, mode: v1alpha1.SudoConstrained, answers: []grants.Answer{grants.No,
			grants.Unknown, grants.Yes}, want: "Legacy:legacy:unavailable Legacy:legacy:unavailable Legacy:both:toConstrained"},
		"what is wanted never falls back": {found: allConstrained, mode: v1alpha1.SudoConstrained,
			answers: []grants.Answer{grants.Yes, grants.No, grants.No, grants.No, grants.Unknown, grants.Yes},
			want: "Constrained:constrained Constrained:constrained Constrained:constrained Constrained:constrained:unavailable " +
				"Constrained:constrained:unavailable Constrained:constrained"},
		"legacy is wanted while it can do better": {found: allConstrained, mode: v1alpha1.SudoLegacy, answers: []grants.Answer{grants.Unknown,
			finish}, want: "Constrained:both:toLegacy Legacy:legacy"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mode := grants.ModeOf(c.found)
			var got []string
			for _, answer := range c.answers {
				if answer == finish {
					mode = mode.Finish()
				} else {
					mode = mode.Next(c.mode, answer)
				}
				got = append(got, spelled(mode))
			}
			if diff := cmp.Diff(strings.Fields(c.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
