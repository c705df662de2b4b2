package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// survey holds what the caller could read of a tenant, and makes the entries of the report.
type survey struct {
	tenant string
	spec   v1alpha1.LNamespaceSpec
	listed bool // whether the spec could be read
	tree   []string
	// here are the RoleBindings of the tree, wide the ClusterRoleBindings, accounts the RoleBindings in the namespaces of
	// sudoers' service accounts.
	here, wide, accounts []binding
	wideRead             bool
	sudoers              []rbacv1.Subject
	namespaced           map[schema.GroupResource]bool
	// requests are the tenant's SudoRequests, and granted the users who have sudo by one now, and until when.
	requests []v1alpha1.SudoRequest
	granted  map[string]*metav1.Time

	found     []*Entry
	bySubject map[v1alpha1.Subject]*Entry // those of found
}

// boundSudoers returns the subjects that can sudo: those that the pair binds; if the pair can't be read, those that the
// LNamespace lists; if it lists none that can be read, the group itself.
func (s *survey) boundSudoers() []rbacv1.Subject {
	if !s.wideRead {
		var listed []rbacv1.Subject
		for _, one := range s.spec.Sudoers {
			listed = append(listed, subjectOfBinding(one))
		}
		if listed == nil {
			listed = []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: v1alpha1.SudoersGroup(s.tenant)}}
		}
		return listed
	}
	for _, b := range s.wide {
		if grants.LetsSudo(b.Name, s.tenant) {
			return b.subjects
		}
	}
	return nil
}

// sortedEntries returns the subjects of the tenant's lists in their order, then those of other bindings, then those
// that can become a sudoer's service account.
func (s *survey) sortedEntries() []*Entry {
	s.found, s.bySubject = nil, map[v1alpha1.Subject]*Entry{}
	s.addListedSubjects(grants.ListUsers, s.spec.Users)
	s.addListedSubjects(grants.ListManagers, s.spec.Managers)
	s.addListedSubjects(grants.ListSudoers, s.spec.Sudoers)
	if s.spec.SudoRequests != nil {
		s.addListedSubjects(listEligible, s.spec.SudoRequests.Eligible)
	}
	for _, b := range s.here {
		s.recordGrant(b, []string{b.Namespace}, true)
	}
	for _, b := range s.wide {
		if _, self := grants.SelfUser(b.Name); self || b.Name == grants.SudoName(s.tenant) {
			continue // it only lets sudoers become their group; that group's own bindings are reported
		}
		if reach := s.reachIntoTree(b); reach.any {
			s.recordGrant(b, reach.namespaces, false)
		}
	}
	s.findAccountHolders()
	s.recordGranted()
	return s.found
}

// entryOfSubject returns the entry of a subject, and adds it if there is none.
func (s *survey) entryOfSubject(subject rbacv1.Subject) *Entry {
	as := subjectOfList(subject)
	e := s.bySubject[as]
	if e == nil {
		e = &Entry{Subject: as}
		s.found, s.bySubject[as] = append(s.found, e), e
	}
	return e
}

func (s *survey) addListedSubjects(name grants.List, subjects []v1alpha1.Subject) {
	for _, subject := range subjects {
		e := s.entryOfSubject(subjectOfBinding(subject))
		e.Lists, e.near = append(e.Lists, name), true
	}
}

// recordGrant records the role that a binding grants to each of its subjects. A role of a group of sudoers is recorded
// as one that needs sudo.
func (s *survey) recordGrant(b binding, namespaces []string, near bool) {
	if b.role.Name == grants.ImpersonateOnRole {
		return // it decides where constrained sudo may be used, not what sudo grants
	}
	for _, subject := range b.subjects {
		if name, is := tenantOfTemporarySudoer(subject); is && name == s.tenant {
			s.recordOnRequest(b, namespaces, subject)
			continue
		}
		name, sudo := tenantOfSudoGroup(subject)
		if !sudo || name != s.tenant {
			e := s.entryOfSubject(subject)
			e.near = e.near || near
			e.addGrant(b, namespaces, sudo, b.viaBinding())
			s.guessListOfEntry(e, b)
			continue
		}
		for _, sudoer := range s.sudoers {
			via := b.viaBinding()
			if sudoer != subject {
				via.Through = subjectOfList(subject).String()
			}
			e := s.entryOfSubject(sudoer)
			e.near = true
			e.addGrant(b, namespaces, true, via)
		}
	}
}

// guessListOfEntry adds to an entry the list that b implies, if b is the operator's own binding and the LNamespace
// can't be read.
func (s *survey) guessListOfEntry(e *Entry, b binding) {
	for _, list := range grants.ListsOf(grants.Key(b.Ref), s.tenant) {
		if !s.listed && !slices.Contains(e.Lists, list) {
			e.Lists = append(e.Lists, list)
		}
	}
}

func (e *Entry) addGrant(b binding, namespaces []string, sudo bool, via Via) {
	roles := &e.WithoutSudo
	if sudo {
		roles = &e.WithSudo
	}
	addOnceTo(roles, b.role.Name)
	for _, namespace := range namespaces {
		addOnceTo(&e.Namespaces, namespace)
	}
	e.Via = append(e.Via, via)
}

func addOnceTo(list *[]string, one string) {
	if !slices.Contains(*list, one) {
		*list = append(*list, one)
	}
}

// ways are the requests by which a user can act as a service account or get its token. Creating pods is one of them,
// because a pod's creator chooses its service account.
var ways = func() []Question {
	all := []Question{
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
		{Verb: "impersonate", Resource: "serviceaccounts"},
		{Verb: "get", Resource: "secrets"}, {Verb: "list", Resource: "secrets"}, {Verb: "watch", Resource: "secrets"},
		{Verb: "create", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "exec"},
		{Verb: "get", Resource: "pods", Subresource: "exec"},
		{Verb: "create", Resource: "replicationcontrollers"},
	}
	for group, resources := range map[string][]string{
		"apps": {"daemonsets", "deployments", "replicasets", "statefulsets"}, "batch": {"cronjobs", "jobs"},
	} {
		for _, resource := range resources {
			all = append(all, Question{Verb: "create", Group: group, Resource: resource})
		}
	}
	return all
}()

// findAccountHolders finds the subjects that can act as a service account that is a sudoer, and so can sudo.
func (s *survey) findAccountHolders() {
	for _, account := range s.sudoers {
		if account.Kind != rbacv1.ServiceAccountKind {
			continue
		}
		given := s.entryOfSubject(account)
		whom := subjectOfList(account).String()
		for _, b := range slices.Concat(s.accounts, s.wide) {
			if b.Namespace != "" && b.Namespace != account.Namespace || !letsBecomeAccount(b, account.Name) {
				continue
			}
			for _, subject := range b.subjects {
				if subject == account {
					continue
				}
				e := s.entryOfSubject(subject)
				e.near = e.near || b.Namespace != ""
				for _, role := range given.WithSudo {
					addOnceTo(&e.WithSudo, role)
				}
				for _, namespace := range given.Namespaces {
					addOnceTo(&e.Namespaces, namespace)
				}
				e.Via = append(e.Via, reachedThrough(whom, []Via{b.viaBinding()})...)
			}
		}
	}
}

// letsBecomeAccount reports whether a binding lets its subjects become the service account of that name in its
// namespace.
func letsBecomeAccount(b binding, account string) bool {
	return slices.ContainsFunc(ways, func(q Question) bool {
		if q.Resource == "serviceaccounts" {
			q.Name = account
		}
		return q.isAllowedByRules(b.rules)
	})
}

// partOfKubernetes reports whether a subject is a component of the control plane, by the namespace or name that such
// components have.
func partOfKubernetes(s v1alpha1.Subject) bool {
	switch s.Kind {
	case v1alpha1.SubjectServiceAccount:
		return s.Namespace == metav1.NamespaceSystem
	case v1alpha1.SubjectUser:
		return strings.HasPrefix(s.Name, "system:kube-")
	}
	return false
}
