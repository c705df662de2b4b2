package rights

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// onRequest is how reports show sudo that must be asked for.
const onRequest = "on-request"

// listEligible is the field of an LNamespace that lists who may ask for sudo, in column LISTS.
const listEligible grants.List = "sudoRequests.eligible"

// tenantOfTemporarySudoer returns the tenant whose temporary sudoer a subject is; false for other subjects.
func tenantOfTemporarySudoer(s rbacv1.Subject) (string, bool) {
	return s.Name, s.Kind == rbacv1.ServiceAccountKind && s.Namespace == v1alpha1.SudoNamespace
}

// findEligible returns the subjects that may ask for sudo of a tenant: those that the operator has bound in its root, or those that the
// LNamespace lists, if the bindings are not known.
func findEligible(name string, spec *v1alpha1.LNamespaceSpec, inRoot []binding) []rbacv1.Subject {
	for _, b := range inRoot {
		if b.Namespace == name && b.Name == grants.RequestersBinding {
			return b.subjects
		}
	}
	var listed []rbacv1.Subject
	if spec.SudoRequests != nil {
		for _, one := range spec.SudoRequests.Eligible {
			listed = append(listed, subjectOfBinding(one))
		}
	}
	return listed
}

// eligibleFor returns those who may ask for sudo of a tenant, and then make the request.
func (a *asker) eligibleFor(ctx context.Context, temporary rbacv1.Subject, name string, via []Via) ([]Holder, error) {
	of, err := a.read.readTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	here, err := a.read.bindingsInNamespace(ctx, name)
	if err != nil {
		return nil, err
	}
	eligible := findEligible(name, &of.spec, here.items)
	if len(eligible) == 0 { // nobody that can be read, so the temporary sudoer stands for them
		eligible = []rbacv1.Subject{temporary}
	}
	via = reachedThrough(subjectOfList(temporary).String(), via)
	var holders []Holder
	for _, s := range eligible {
		holders = append(holders, Holder{Subject: subjectOfList(s), Sudo: true, OnRequest: true, Tenant: name, Via: via})
	}
	return holders, nil
}

// recordOnRequest records the role that the temporary sudoer has as one that each who is eligible must ask for.
func (s *survey) recordOnRequest(b binding, namespaces []string, temporary rbacv1.Subject) {
	eligible := findEligible(s.tenant, &s.spec, s.here)
	if len(eligible) == 0 {
		eligible = []rbacv1.Subject{temporary}
	}
	for _, subject := range eligible {
		via := b.viaBinding()
		if subject != temporary {
			via.Through = subjectOfList(temporary).String()
		}
		e := s.entryOfSubject(subject)
		e.near = true
		addOnceTo(&e.OnRequest, b.role.Name)
		for _, namespace := range namespaces {
			addOnceTo(&e.Namespaces, namespace)
		}
		e.Via = append(e.Via, via)
	}
}
