package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Grant is a ClusterRoleBinding or RoleBinding by which the other operator gives users broad rights that only its
// webhooks restrict. Once the webhooks don't answer, these users could use the rights without restriction.
type Grant struct {
	*metav1.PartialObjectMetadata
	// Subjects are those who are bound now.
	Subjects []any
}

// The waves of phase Rest if there are grants. The grants' subjects are removed in restGrants: after the other operator
// has stopped, because it would restore them, and before its webhooks on Namespaces get failure policy Ignore. In
// between, requests on Namespaces fail rather than pass unchecked. The webhooks on other kinds get Ignore earlier, in
// restOthers: the API server may ask them about the grants, too.
const (
	restOthers = 2
	restGrants = 3
)

// splitByGuardWave returns two lists with the failure policies of all webhooks. In others, the webhooks that are not
// asked about Namespaces have their policies at rest; in guards, those that are.
func (w Webhooks) splitByGuardWave() (others, guards []string) {
	others, guards = slices.Clone(w.Policies), slices.Clone(w.Policies)
	for i, policy := range w.AtRest {
		if i < len(w.Guards) && w.Guards[i] != "" {
			guards[i] = policy
		} else {
			others[i] = policy
		}
	}
	return others, guards
}

// hasServingReplica reports whether a Deployment of the peer's has a Pod or asks for one: then the peer's webhooks are
// answered.
func (e Engine) hasServingReplica() bool {
	return slices.ContainsFunc(e.Deployments, func(d Deployment) bool { return d.Running > 0 || d.Wanted > 0 })
}

// doubtAboutGrants returns why the peer can't be stopped without giving users unrestricted rights; "" if it can.
func (e Engine) doubtAboutGrants(p peer) string {
	if len(e.GrantRoles) == 0 || e.Record.isMigrationFinished() || len(e.Deployments) == 0 {
		return ""
	}
	found, given := false, false
	for _, g := range e.Grants {
		found, given = found || g.Kind == "ClusterRoleBinding", given || len(g.Subjects) > 0
	}
	if !found {
		return fmt.Sprintf("--apply is refused, because no ClusterRoleBinding of %s's provisioner was found (ClusterRole %s). If users make "+
			"namespaces by another ClusterRole, they could patch every namespace once the webhooks are off. Find the ClusterRole, bound by a "+
			"ClusterRoleBinding, by which users make namespaces. Set spec.rbac.provisioner of the CapsuleConfiguration to it, and give the "+
			"command again",
			p.title, strings.Join(e.GrantRoles, " or "))
	}
	if !given || !e.hasServingReplica() {
		return ""
	}
	for _, w := range e.Webhooks {
		for i, name := range w.Guards {
			if name != "" && i < len(w.Policies) && w.Policies[i] == failurePolicyIgnore {
				return fmt.Sprintf("webhook %s of %s has failurePolicy Ignore: set failurePolicy Fail first, else your tenants may patch every "+
					"namespace while %s stops",
					name, objectFromMetadata(w.PartialObjectMetadata), p.title)
			}
		}
	}
	return ""
}

func (e Engine) hasAnyGrants() bool { return len(e.Grants) > 0 }

// subjectsOfGrants returns the subjects of all grants, by object.
func (e Engine) subjectsOfGrants() map[string][]any {
	var found map[string][]any
	for _, g := range e.Grants {
		if found == nil {
			found = map[string][]any{}
		}
		found[objectFromMetadata(g.PartialObjectMetadata).String()] = g.Subjects
	}
	return found
}

// withholdGrants plans the removal of the grants' subjects.
func (p *planner) withholdGrants() {
	for _, g := range p.Peer.Grants {
		if len(g.Subjects) > 0 {
			p.draft.addPatchStep(Rest, restGrants, g.PartialObjectMetadata, map[string]any{"subjects": nil})
		}
	}
}

// readPeerGrants finds the bindings of the ClusterRoles of the peer's grants, in the cluster and in namespaces.
func (r *reader) readPeerGrants(ctx context.Context, c *Cluster) error {
	if r.peer.readGrantRoles == nil {
		return nil
	}
	var err error
	if c.Peer.GrantRoles, err = r.peer.readGrantRoles(ctx, r); err != nil {
		return err
	}
	for _, kind := range []string{"ClusterRoleBinding", roleBindings.Kind} {
		bindings, _, err := r.listPeerObjects(ctx, rbacv1.GroupName, kind)
		if err != nil {
			return err
		}
		c.Peer.Grants = append(c.Peer.Grants, grantsAmong(bindings, c.Peer.GrantRoles)...)
	}
	return nil
}

// grantsAmong returns the bindings that bind one of the ClusterRoles.
func grantsAmong(bindings []unstructured.Unstructured, roles []string) (grants []Grant) {
	for _, binding := range bindings {
		if nestedText(binding.Object, "roleRef", "kind") == "ClusterRole" &&
			slices.Contains(roles, nestedText(binding.Object, "roleRef", "name")) {
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			grants = append(grants, Grant{partialMetadataOf(binding), subjects})
		}
	}
	return grants
}
