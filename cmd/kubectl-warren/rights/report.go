// Package rights answers who may do what in the tree of a tenant, and why: by the API server's own authorizer where the caller may
// ask it, else by the RBAC objects that the caller may read. It changes nothing, and takes nobody's rights but the caller's.
package rights

import (
	"context"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Reporter answers one question as one caller: what it has read it doesn't read again.
type Reporter struct {
	// API is the caller's. It needs the kinds of rbac, authorization, authentication and Warren.
	API client.Client
	// Refused says whether an error means that the caller lacks a right. All other errors end a report.
	Refused func(error) bool
	// Tree returns the namespaces of a tenant's tree, the root first, and those of them below which the caller could not look.
	// There are none while the Namespace is not the tenant's. Only Access needs it.
	Tree func(ctx context.Context, root string) (names, closed []string, err error)
	// Namespaced returns the resources that the API server has, and whether they are namespaced. Only Access needs it.
	Namespaced func() (map[schema.GroupResource]bool, error)

	mu      sync.Mutex
	unread  []string
	barred  map[string]bool // kinds of review that the caller may not create
	roles   map[string]roleTable
	bound   map[string]bindings
	tenants map[string]*tenant
	caller  *Identity
}

// tenant is what is known of an LNamespace.
type tenant struct {
	// exists is Unknown where the caller may not read it.
	exists Answer
	spec   v1alpha1.LNamespaceSpec
}

// roleTable holds the rules of the Roles of a namespace, or of the ClusterRoles, by name.
type roleTable struct {
	rules map[string][]rbacv1.PolicyRule
	read  bool
}

// noteForbidden notes what the caller may not do, "list clusterroles", so that the report lacks something.
func (r *Reporter) noteForbidden(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what = "can't " + what; !slices.Contains(r.unread, what) {
		r.unread = append(r.unread, what)
	}
}

// missingReads tells what the report lacks, in alphabetical order, since some things are read at once.
func (r *Reporter) missingReads() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.unread))
}

// Caller is whom the API server takes the caller for.
func (r *Reporter) Caller(ctx context.Context) (Identity, error) {
	r.mu.Lock()
	known := r.caller
	r.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	me := &authenticationv1.SelfSubjectReview{}
	if err := r.API.Create(ctx, me); err != nil && !r.Refused(err) {
		return Identity{}, err
	}
	found := Identity{User: me.Status.UserInfo.Username, Groups: me.Status.UserInfo.Groups}
	r.mu.Lock()
	r.caller = &found
	r.mu.Unlock()
	return found, nil
}
