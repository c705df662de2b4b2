package webhooks

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/authorizer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// refuseAwaitedName refuses a name to users without authority over the namespaces that wait for a parent of that name:
// these namespaces would join the tree of the user who takes the name.
func refuseAwaitedName(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, s *forest.Snapshot,
	name string) (field.ErrorList, error) {
	waiting := forest.WaitingFor(s, name)
	if len(waiting) == 0 {
		return nil, nil
	}
	if yes, err := ask.HasAuthority(ctx, user, waiting); yes || err != nil {
		return nil, err
	}
	return checkNameNotAwaited(ctx, ask, user, waiting, name), nil
}

// refuseAwaitedRoot refuses a name for a new LNamespace if namespaces wait for a parent of that name, unless a cluster
// admin creates the LNamespace: its sudoers would be cluster-admin in all these namespaces.
func refuseAwaitedRoot(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, s *forest.Snapshot,
	name string) (field.ErrorList, error) {
	waiting := forest.WaitingFor(s, name)
	if len(waiting) == 0 {
		return nil, nil
	}
	if yes, err := ask.AskAll(ctx, user, []authority.Question{authority.OverAll}); err != nil || yes[0] {
		return nil, err
	}
	return checkNameNotAwaited(ctx, ask, user, waiting, name), nil
}

// checkNameNotAwaited returns the refusal of a name that namespaces wait for. It names those namespaces that the user
// may see.
func checkNameNotAwaited(ctx context.Context, ask authorizer.Asker, user authenticationv1.UserInfo, waiting []string,
	name string) field.ErrorList {
	why := ""
	checkWithinSight(ctx, ask, user, nil, func(g *visibility) { why = authority.Awaited(g.listWaiting(waiting), name) })
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), why)}
}
