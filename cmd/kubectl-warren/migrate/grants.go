package migrate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Grant is a binding by which the other operator lets users do in the whole cluster what only its webhooks keep in bounds: whoever
// is bound could do it without bounds once nobody answers for the webhooks.
type Grant struct {
	*metav1.PartialObjectMetadata
	// Subjects are those who are bound now.
	Subjects []any
}

// restGrants is the wave of phase Rest in which grants are withheld: after the other operator has stopped, which would give them
// back, and before its webhooks let pass what it can't judge any more. So for a moment they refuse, rather than let everything pass.
const restGrants = 2

func (e Engine) hasGrants() bool { return len(e.Grants) > 0 }

// subjects are the subjects of all grants, by object.
func (e Engine) subjects() map[string][]any {
	var found map[string][]any
	for _, g := range e.Grants {
		if found == nil {
			found = map[string][]any{}
		}
		found[objectOf(g.PartialObjectMetadata).String()] = g.Subjects
	}
	return found
}

// withholdGrants takes the subjects out of the grants.
func (p *planner) withholdGrants() {
	for _, g := range p.Peer.Grants {
		if len(g.Subjects) > 0 {
			p.patch(Rest, restGrants, g.PartialObjectMetadata, map[string]any{"subjects": nil})
		}
	}
}

// restoreGrants gives the grants the subjects that they had, after the other operator's webhooks answer as before.
func (p *planner) restoreGrants() {
	for _, g := range p.Peer.Grants {
		before := p.Peer.Record.Subjects[objectOf(g.PartialObjectMetadata).String()]
		if len(g.Subjects) == 0 && len(before) > 0 {
			p.patch(Wake, 2, g.PartialObjectMetadata, map[string]any{"subjects": before})
		}
	}
}

// readGrants finds the ClusterRoleBindings that bind the ClusterRole of the peer's grants.
func (r *reader) readGrants(ctx context.Context, c *Cluster) error {
	if r.peer.grant == "" {
		return nil
	}
	bindings, _, err := r.objects(ctx, "rbac.authorization.k8s.io", "ClusterRoleBinding")
	if err != nil {
		return err
	}
	for _, binding := range bindings {
		if text(binding.Object, "roleRef", "name") == r.peer.grant {
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			c.Peer.Grants = append(c.Peer.Grants, Grant{metadataOf(binding), subjects})
		}
	}
	return nil
}
