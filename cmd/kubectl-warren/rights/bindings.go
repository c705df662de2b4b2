package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Ref names an RBAC object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is how reports name the object: "RoleBinding pay-web/warren:users".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Via is why a subject may do something: a binding and the role that it binds. Where these can't be read, or don't
// allow it, it is the reason that the API server gave.
type Via struct {
	// Through is the subject that the user must become first: "Group payments-sudoers" by sudo, or a ServiceAccount whose
	// token the user can get.
	Through string `json:"through,omitempty"`
	Binding *Ref   `json:"binding,omitempty"`
	Role    *Ref   `json:"role,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// String is one piece of the column VIA: "RoleBinding pay-web/warren:users (ClusterRole admin)".
func (v Via) String() string {
	text := v.Reason
	if v.Binding != nil {
		text = v.Binding.String() + " (" + v.Role.Kind + " " + v.Role.Name + ")"
	}
	if v.Through != "" {
		return v.Through + ": " + text
	}
	return text
}

func reachedThrough(whom string, all []Via) []Via {
	passed := slices.Clone(all)
	for i := range passed {
		passed[i].Through = whom
	}
	return passed
}

// binding is a RoleBinding or ClusterRoleBinding with what its role allows.
type binding struct {
	Ref
	role     Ref
	subjects []rbacv1.Subject
	rules    []rbacv1.PolicyRule
	// opaque reports that the role can't be read, so that rules are not known.
	opaque bool
}

// bindings are the bindings of one or more namespaces, or of the cluster.
type bindings struct {
	items []binding
	// partial reports that some bindings or their roles could not be read.
	partial bool
}

func (b bindings) mergeBindings(other bindings) bindings {
	return bindings{items: slices.Concat(b.items, other.items), partial: b.partial || other.partial}
}

func (b binding) viaBinding() Via {
	name, role := b.Ref, b.role
	return Via{Binding: &name, Role: &role}
}

// thoseGranting returns the bindings that are known to allow the request to an identity.
func (b bindings) thoseGranting(q Question, id Identity) []Via {
	var found []Via
	for _, one := range b.items {
		if slices.ContainsFunc(one.subjects, id.matchesSubject) && q.isAllowedByRules(one.rules) {
			found = append(found, one.viaBinding())
		}
	}
	return found
}

// candidate is a subject that a binding names.
type candidate struct {
	rbacv1.Subject
	// via are the bindings known to allow the request. There are none if every binding that may allow it has a role that
	// can't be read.
	via []Via
}

// findCandidates returns the subjects to whom a binding allows the request, or may allow it because its role can't be
// read; each once, in the order of the bindings.
func (b bindings) findCandidates(q Question) []candidate {
	var found []candidate
	places := map[rbacv1.Subject]int{} // in found
	for _, one := range b.items {
		grants := q.isAllowedByRules(one.rules)
		if !grants && !one.opaque {
			continue
		}
		for _, s := range one.subjects {
			i, known := places[s]
			if !known {
				i, places[s] = len(found), len(found)
				found = append(found, candidate{Subject: s})
			}
			if grants {
				found[i].via = append(found[i].via, one.viaBinding())
			}
		}
	}
	return found
}
