package rights

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// Access is the report on all subjects that have rights in a tenant's tree, or can get them.
type Access struct {
	Tenant string `json:"tenant"`
	// Namespaces are those of the tree, the root first.
	Namespaces []string `json:"namespaces"`
	Subjects   []Entry  `json:"subjects"`
	// LeftOut is how many subjects were left out because they are parts of Kubernetes itself. A flag includes them.
	LeftOut    int      `json:"leftOut,omitempty"`
	Incomplete []string `json:"incomplete,omitempty"`

	// requests are the tenant's SudoRequests; none where nobody may ask.
	requests []v1alpha1.SudoRequest
}

// Entry is one subject. Roles are the names of Roles and ClusterRoles.
type Entry struct {
	v1alpha1.Subject
	Lists       []grants.List `json:"lists,omitempty"`
	WithoutSudo []string      `json:"withoutSudo,omitempty"`
	WithSudo    []string      `json:"withSudo,omitempty"`
	// OnRequest are the roles that the subject has for the time of a SudoRequest that was approved.
	OnRequest []string `json:"onRequest,omitempty"`
	// Until is when these end, if the subject has them now.
	Until *metav1.Time `json:"until,omitempty"`
	// Namespaces are those of the tree in which a role is held, with sudo or without.
	Namespaces []string `json:"namespaces,omitempty"`
	Via        []Via    `json:"via,omitempty"`

	// near reports that the tenant's lists or a binding of its tree name the subject.
	near bool
}

// Access reports on a tenant. If everything is set, parts of Kubernetes itself are not left out. It fails if there is
// no such tenant.
func (r *Reporter) Access(ctx context.Context, name string, everything bool) (*Access, error) {
	of, err := r.readerAsCaller().readTenant(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case of.exists == No:
		return nil, fmt.Errorf("there is no tenant %q: kubectl get lns lists the tenants", name)
	}
	s, err := r.surveyTenant(ctx, name, of)
	if err != nil {
		return nil, err
	}
	result := &Access{Tenant: name, Namespaces: append([]string{}, s.tree...), Subjects: []Entry{}, requests: s.requests}
	for _, e := range s.sortedEntries() {
		if !everything && !e.near && partOfKubernetes(e.Subject) {
			result.LeftOut++
			continue
		}
		result.Subjects = append(result.Subjects, *e)
	}
	result.Incomplete = r.memory.unread.sortedGaps()
	return result, nil
}

// surveyTenant reads what a report on a tenant needs.
func (r *Reporter) surveyTenant(ctx context.Context, name string, of *tenant) (*survey, error) {
	s := &survey{tenant: name, spec: of.spec, listed: of.exists == Yes}
	tree, closed, err := r.Tree(ctx, name)
	if err != nil {
		return nil, err
	}
	s.tree = tree
	for _, namespace := range closed {
		r.memory.unread.recordGap("list subnamespaces in " + namespace)
	}
	if s.namespaced, err = r.Namespaced(); err != nil {
		return nil, err
	}
	read := r.readerAsCaller()
	wide, err := read.bindingsInNamespace(ctx, "")
	if err != nil {
		return nil, err
	}
	s.wide, s.wideRead = wide.items, len(wide.items) > 0 || !wide.partial
	if s.here, err = read.roleBindingsIn(ctx, tree); err != nil {
		return nil, err
	}
	if s.hasRequests() {
		if s.requests, err = read.readRequests(ctx, name); err != nil {
			return nil, err
		}
		s.granted = findGranted(s.requests)
	}
	s.sudoers = s.boundSudoers()
	s.accounts, err = read.roleBindingsIn(ctx, homeNamespaces(s.sudoers))
	return s, err
}

// roleBindingsIn returns the RoleBindings of several namespaces, in their order.
func (r *reader) roleBindingsIn(ctx context.Context, namespaces []string) ([]binding, error) {
	found := make([][]binding, len(namespaces))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, namespace := range namespaces {
		group.Go(func() error {
			here, err := r.bindingsInNamespace(ctx, namespace)
			found[i] = here.items
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(found...), err
}

// homeNamespaces returns the namespaces of the service accounts among subjects.
func homeNamespaces(subjects []rbacv1.Subject) []string {
	var found []string
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind && !slices.Contains(found, s.Namespace) {
			found = append(found, s.Namespace)
		}
	}
	return found
}
