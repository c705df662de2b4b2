package rights

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// form is a form of impersonation: the API group and the verb of the right that the API server checks.
type form struct {
	group, verb string
	// on is the prefix of a second verb: constrained impersonation also checks the right to the request itself; "" for
	// none.
	on string
}

// forms are the form of mode Legacy and then that of mode Constrained. A tenant's sudo uses one of them, or both while
// the operator switches the mode.
var forms = []form{
	{"", "impersonate", ""},
	{authenticationv1.GroupName, "impersonate:user-info", "impersonate-on:user-info:"},
}

// tenantOfSudoGroup returns the tenant whose group of sudoers a subject is; false for other subjects.
func tenantOfSudoGroup(s rbacv1.Subject) (string, bool) {
	name, ok := strings.CutSuffix(s.Name, v1alpha1.SudoersSuffix)
	return name, ok && s.Kind == rbacv1.GroupKind && name != ""
}

// findSudoers returns the subjects that the LNamespace lists as sudoers or that the pair binds. Whether they can really
// use sudo, only raiseBySudo finds out.
func (r *reader) findSudoers(ctx context.Context, name string) ([]rbacv1.Subject, error) {
	of, err := r.readTenant(ctx, name)
	if err != nil {
		return nil, err
	}
	var found []rbacv1.Subject
	for _, s := range of.spec.Sudoers {
		found = append(found, subjectOfBinding(s))
	}
	wide, err := r.bindingsInNamespace(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, b := range wide.items {
		if !grants.LetsSudo(b.Name, name) {
			continue
		}
		for _, s := range b.subjects {
			if !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

// raiseBySudo reports whether an identity may impersonate the tenant's group of sudoers for a request, and returns the
// identity that it has then: with its own user name if it may impersonate that, else with the tenant's sudo user, which
// has no rights of its own. If only the LNamespace can be read, its list of sudoers decides.
func (a *asker) raiseBySudo(ctx context.Context, id Identity, name string, q Question) (Identity, Answer, error) {
	all := No
	for _, f := range forms {
		as, answer, err := a.raiseByForm(ctx, f, id, name, q)
		if err != nil || answer == Yes {
			return as, answer, err
		}
		all = all.combineByOr(answer)
	}
	if all != Unknown {
		return Identity{}, all, nil
	}
	of, err := a.read.readTenant(ctx, name)
	if err != nil {
		return Identity{}, No, err
	}
	for _, s := range of.spec.Sudoers {
		if id.matchesSubject(subjectOfBinding(s)) {
			become := grants.SudoUser(name)
			if s.Kind == v1alpha1.SubjectUser {
				become = id.User
			}
			return identityWithSudo(become, name), Yes, nil
		}
	}
	if of.exists == Yes {
		return Identity{}, No, nil
	}
	return Identity{}, Unknown, nil
}

// Raise returns the identity that the caller has by sudo of a tenant, and whether the caller may use it for a request.
func (r *Reporter) Raise(ctx context.Context, tenant string, q Question) (Identity, Answer, error) {
	caller, err := r.Caller(ctx)
	if err != nil {
		return Identity{}, No, err
	}
	return r.askerAsCaller().raiseBySudo(ctx, caller, tenant, q)
}

func (a *asker) raiseByForm(ctx context.Context, f form, id Identity, name string,
	q Question) (Identity, Answer, error) {
	first := []Question{{Verb: f.verb, Group: f.group, Resource: "groups", Name: v1alpha1.SudoersGroup(name)}}
	if f.on != "" {
		on := q
		on.Verb = f.on + q.Verb
		first = append(first, on)
	}
	sure := Yes
	for _, question := range first {
		v, err := a.askWhetherMay(ctx, id, question)
		if sure = sure.combineByAnd(v.answer); err != nil || sure == No {
			return Identity{}, No, err
		}
	}
	all := No
	for _, become := range usersToBecome(id, name) {
		v, err := a.askWhetherMay(ctx, id, Question{Verb: f.verb, Group: f.group, Resource: "users", Name: become})
		if err != nil {
			return Identity{}, No, err
		}
		if v.answer.combineByAnd(sure) == Yes {
			return identityWithSudo(become, name), Yes, nil
		}
		all = all.combineByOr(v.answer.combineByAnd(sure))
	}
	return Identity{}, all, nil
}

// usersToBecome returns the users as which an identity can act with sudo, in the order in which they are tried. A
// service account can't impersonate itself, because the API server checks that right by another resource than users.
func usersToBecome(id Identity, name string) []string {
	if _, _, err := serviceaccount.SplitUsername(id.User); err == nil || id.User == "" {
		return []string{grants.SudoUser(name)}
	}
	return []string{id.User, grants.SudoUser(name)}
}

// identityWithSudo returns a sudoer's identity while it impersonates the tenant's group of sudoers.
func identityWithSudo(user, name string) Identity { return Person(user, v1alpha1.SudoersGroup(name)) }
