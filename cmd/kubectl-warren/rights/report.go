// Package rights reports who may do what in the tree of a tenant, and why: by the API server's own authorizer if the
// caller may ask it, else by the RBAC objects that the caller may read. It changes nothing, and uses the caller's
// rights only. Sudo is impersonation of a tenant's group of sudoers, which has the ClusterRole cluster-admin in the
// tenant's tree; a pair is the ClusterRole and ClusterRoleBinding by which a tenant's sudoers may do that.
package rights

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reporter answers one question as one caller, and reads nothing twice. Its reader reads RBAC objects and LNamespaces
// (read.go), and its asker puts questions to the API server's authorizer (authorizer.go); both share its memory
// (memory.go).
type Reporter struct {
	// API is the caller's. It needs the kinds of rbac, authorization, authentication and Warren.
	API client.Client
	// Refused reports whether an error means that the caller lacks a right. All other errors end a report.
	Refused func(error) bool
	// Tree returns the namespaces of a tenant's tree, the root first, and those whose children the caller may not read. It
	// returns none if the Namespace of that name isn't the tenant's. Only Access needs it.
	Tree func(ctx context.Context, root string) (names, closed []string, err error)
	// Namespaced returns the resources that the API server has, and whether they are namespaced. Only Access needs it.
	Namespaced func() (map[schema.GroupResource]bool, error)

	memory memory
}

// readerAsCaller returns a reader with the caller's rights and the report's memory.
func (r *Reporter) readerAsCaller() *reader {
	return &reader{api: r.API, refused: r.Refused, memory: &r.memory}
}

// askerAsCaller returns an asker with the caller's rights and the report's memory.
func (r *Reporter) askerAsCaller() *asker {
	return &asker{read: r.readerAsCaller()}
}

// CallerMay reports whether the caller may make a request.
func (r *Reporter) CallerMay(ctx context.Context, q Question) (Answer, error) {
	review := q.selfReview()
	switch err := r.API.Create(ctx, review); {
	case r.Refused(err):
		return Unknown, nil
	case err != nil:
		return Unknown, fmt.Errorf("ask the API server whether you may %s: %w", q, err)
	case review.Status.Allowed:
		return Yes, nil
	}
	return No, nil
}

// Caller returns the identity as which the API server authenticates the caller.
func (r *Reporter) Caller(ctx context.Context) (Identity, error) {
	return r.readerAsCaller().readCaller(ctx)
}
