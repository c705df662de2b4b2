package preview

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/distribute"
)

// noteAction adds the action for one target to the plan.
func (p *distributions) noteAction(d *distribute.Distribution, t *distribute.Target, gate distribute.Gate) {
	a := d.Plan(*t, gate)
	verb, reason := describeAction(d, t, a, gate)
	if verb == "" {
		return
	}
	if verb == Create || a.Verb == distribute.Adopt || a.Verb == distribute.Overwrite {
		p.made[d.Template.Slot(t.Namespace)] = d.Name
	}
	p.add(verb, d.Template.Kind, t.Namespace, d.Template.Name, "ResourceDistribution "+d.Name+": "+reason)
}

// describeAction returns the verb of a target's write, and its reason; empty ones if nothing is to be written.
func describeAction(d *distribute.Distribution, t *distribute.Target, a distribute.Action, gate distribute.Gate) (Verb, string) {
	switch a.Verb {
	case distribute.Create:
		return Create, "it is not there yet"
	case distribute.Update:
		if t.Copy.Content != d.Template.Content {
			return Update, "spec.resource has changed since it was written"
		}
		return Update, "it is not what spec.resource says: somebody changed it"
	case distribute.Remark:
		return Update, "driftPolicy or deletionPolicy say other marks than it has"
	case distribute.Adopt:
		return Update, "it is identical, and conflictPolicy has it adopted"
	case distribute.Overwrite:
		return Update, "conflictPolicy has it overwritten"
	case distribute.Delete:
		return Delete, "its namespace is no target any more"
	case distribute.HandBack, distribute.Unlock:
		return Update, "its namespace is no target any more, and it stays there"
	}
	switch {
	case a.State == distribute.InConflict:
		return Conflict, strings.TrimSpace("an object of that name exists which is no copy of it: " + string(a.Conflict.Reason) + " " + a.Conflict.By)
	case a.State == distribute.Missing && !gate.Create:
		return Held, "no copy is made before every conflict is resolved, as conflictPolicy says"
	case a.State == distribute.Outdated && gate.Held[t.Namespace]:
		return Held, "spec.rollout.partition holds it back"
	}
	return "", ""
}

func (p *distributions) add(verb Verb, kind schema.GroupVersionKind, namespace, name, reason string) {
	p.writes = append(p.writes, Write{Verb: verb, Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name, Tenant: tenantOf(p.f, namespace), Reason: reason})
}
