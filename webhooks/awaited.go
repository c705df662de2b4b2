package webhooks

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// refuseAwaitedName refuses a name for which namespaces wait, as for a missing parent, to users without authority over those
// namespaces: the namespaces would join the tree of whoever takes the name.
func refuseAwaitedName(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, s *forest.Snapshot, name string) (field.ErrorList, error) {
	waiting := s.Waiting(name)
	if len(waiting) == 0 {
		return nil, nil
	}
	if yes, err := ask.HasAuthority(ctx, user, waiting); yes || err != nil {
		return nil, err
	}
	return awaited(ctx, ask, user, waiting, name), nil
}

// refuseAwaitedRoot refuses an LNamespace a name that namespaces wait for, unless a cluster admin makes it: its sudoers would be
// cluster-admin in all of them.
func refuseAwaitedRoot(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, s *forest.Snapshot, name string) (field.ErrorList, error) {
	waiting := s.Waiting(name)
	if len(waiting) == 0 {
		return nil, nil
	}
	if yes, err := ask.AskAll(ctx, user, []authority.Question{authority.OverAll}); err != nil || yes[0] {
		return nil, err
	}
	return awaited(ctx, ask, user, waiting, name), nil
}

// awaited is the refusal of a name that namespaces wait for, with the names of those that the user may see.
func awaited(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, waiting []string, name string) field.ErrorList {
	why := ""
	inSightOf(ctx, ask, user, nil, func(g *sight) { why = authority.Awaited(g.namespaces(waiting), name) })
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), why)}
}
