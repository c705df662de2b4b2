package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Identity is a user with groups, as the API server authenticates a request. The identity of a group alone has no User.
type Identity struct {
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Person returns the identity of a user who is in groups. Group system:authenticated is added, and the groups that
// follow from the name of a service account, system:serviceaccount:NAMESPACE:NAME.
func Person(name string, groups ...string) Identity {
	all := slices.Clone(groups)
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		all = append(all, serviceaccount.MakeGroupNames(namespace)...)
	}
	all = append(all, user.AllAuthenticated)
	slices.Sort(all)
	return Identity{User: name, Groups: slices.Compact(all)}
}

// identityOfSubject returns the identity of the subject of a binding, with only the groups that its kind and name
// imply.
func identityOfSubject(s rbacv1.Subject) Identity {
	switch s.Kind {
	case rbacv1.GroupKind:
		return Identity{Groups: []string{s.Name}}
	case rbacv1.ServiceAccountKind:
		return Person(serviceaccount.MakeUsername(s.Namespace, s.Name))
	}
	return Person(s.Name)
}

// matchesSubject reports whether a subject of a binding means this identity.
func (id Identity) matchesSubject(s rbacv1.Subject) bool {
	switch s.Kind {
	case rbacv1.GroupKind:
		return slices.Contains(id.Groups, s.Name)
	case rbacv1.ServiceAccountKind:
		return id.User == serviceaccount.MakeUsername(s.Namespace, s.Name)
	}
	return s.Kind == rbacv1.UserKind && id.User == s.Name
}

func (id Identity) equalsIdentity(other Identity) bool {
	return id.User == other.User && slices.Equal(slices.Sorted(slices.Values(id.Groups)), slices.Sorted(slices.Values(other.Groups)))
}

// Unraised returns the identity without the tenants' groups of sudoers.
func (id Identity) Unraised() Identity {
	groups := slices.DeleteFunc(slices.Clone(id.Groups),
		func(g string) bool { return strings.HasSuffix(g, v1alpha1.SudoersSuffix) })
	return Identity{User: id.User, Groups: groups}
}

// subjectOfBinding returns a subject of a list in the form that bindings use.
func subjectOfBinding(s v1alpha1.Subject) rbacv1.Subject {
	return rbacv1.Subject{Kind: string(s.Kind), Namespace: s.Namespace, Name: s.Name}
}

// subjectOfList reverses subjectOfBinding: it returns the form that lists use.
func subjectOfList(s rbacv1.Subject) v1alpha1.Subject {
	return v1alpha1.Subject{Kind: v1alpha1.SubjectKind(s.Kind), Namespace: s.Namespace, Name: s.Name}
}
