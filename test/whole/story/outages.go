package story

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// wait lets some minutes pass, in which the time of grants is over.
func (h *History) wait(e Event) bool {
	h.Sim.Run(time.Duration(e.A%180) * time.Second)
	return true
}

// stepClock sets the operator's clock an hour forward or back, between two of its starts.
func (h *History) stepClock(e Event) bool {
	if e.A%2 == 0 {
		h.Sim.SetClockForward(time.Hour)
	} else {
		h.Sim.SetClockBack(time.Hour)
	}
	return true
}

// takeManagerAway takes the controller manager away for some minutes and more, in which the time of grants is over.
func (h *History) takeManagerAway(e Event) bool {
	h.Sim.SetManagerAway(true)
	h.Sim.Run(time.Duration(e.A%240) * time.Second)
	return true
}

// killAtSudo kills the operator at one of the next writes of a grant.
func (h *History) killAtSudo(e Event) bool {
	h.Sim.KillAtSudo(1 + e.A%6)
	return true
}

func (h *History) bringManagerBack(Event) bool {
	h.Sim.SetManagerAway(false)
	return true
}

const admissionregistration = "admissionregistration.k8s.io"

// policiesOfGrants are those without which nothing is granted.
var policiesOfGrants = []string{"warren-sudo-requests", "warren-temporary-sudo"}

// dropPolicy has a cluster admin delete the binding of a policy, or let it only audit.
func (h *History) dropPolicy(e Event) bool {
	bindings := h.Sim.Server.Kind(admissionregistration, "validatingadmissionpolicybindings")
	r := bindings.Find("", policiesOfGrants[e.A%2])
	if r == nil || e.B%2 == 0 {
		return h.remove(r)
	}
	return h.edit(r, func(u *unstructured.Unstructured) { set(u, []any{"Audit"}, "spec", "validationActions") })
}

// bringPoliciesBack has a cluster admin apply them again.
func (h *History) bringPoliciesBack(Event) bool {
	bindings := h.Sim.Server.Kind(admissionregistration, "validatingadmissionpolicybindings")
	for _, name := range policiesOfGrants {
		spec := map[string]any{"policyName": name, "validationActions": []any{"Deny"}}
		if r := bindings.Find("", name); r != nil {
			h.edit(r, func(u *unstructured.Unstructured) { set(u, spec, "spec") })
			continue
		}
		h.create(newObject(admissionregistration+"/v1", "ValidatingAdmissionPolicyBinding", "", name, map[string]any{"spec": spec}))
	}
	return true
}
