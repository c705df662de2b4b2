package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/forest"
)

// reviewsAtOnce bounds the questions to the API server's authorizer that are under way at once.
const reviewsAtOnce = 16

// neededVerbs are what the operator does with objects of a propagated kind.
var neededVerbs = []string{"get", "list", "watch", "create", "update", "delete"}

// checkSight asks the API server's authorizer whether the operator has all of neededVerbs on each propagated kind. It
// does not ask for bind and escalate, which copies of Roles and RoleBindings need too.
func (p Patient) checkSight(ctx context.Context, f file) Check {
	const name = "sight"
	if f.unknown != nil {
		return warnOf(name, "the operator's configuration is not known: "+f.unknown.Error(), f.stepToKnow())
	}
	var trees []string
	err := gather.ListEach(ctx, p.API, newNamespaceList(), func(o client.Object) {
		labels := o.GetLabels()
		if (labels[v1alpha1.LabelType] != "" || labels[v1alpha1.LabelParent] != "") &&
			labels[v1alpha1.LabelProtected] != v1alpha1.True {
			trees = append(trees, o.GetName())
		}
	})
	if err != nil {
		return warnOfFailedList(name, "namespaces", err)
	}
	var lacking []string
	for _, kind := range f.config.Propagation.Kinds {
		found, err := p.findBlind(ctx, kind, trees)
		if err != nil {
			return warnOf(name, "it is not known what the operator may do: "+err.Error(), stepAfter(err))
		}
		lacking = append(lacking, found...)
	}
	if len(lacking) == 0 {
		return passOf(name, "the operator may get, list, watch, create, update and delete objects of the propagated kinds wherever it works")
	}
	return warnOf(name, "the operator lacks these rights (without list or watch, it leaves the copies of the kind alone): "+
		forest.Few(lacking), adviseSight(f))
}

// findBlind returns which rights on a kind the operator lacks: in the whole cluster or, with another scope than
// Cluster, in each of the namespaces. It returns none for a kind that the API server doesn't serve.
func (p Patient) findBlind(ctx context.Context, kind config.PropagatedKind, namespaces []string) ([]string, error) {
	mapping, err := apianswer.MappingOf(p.Served,
		schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	resource := mapping.Resource.GroupResource()
	missing, err := p.findMissing(ctx, resource, "")
	switch {
	case err != nil || len(missing) == 0:
		return nil, err
	case kind.Scope == config.ScopeCluster:
		return []string{fmt.Sprintf("%s of %s in the whole cluster", strings.Join(missing, ", "), resource)}, nil
	}
	var mu sync.Mutex
	var found []string
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, namespace := range namespaces {
		group.Go(func() error {
			missing, err := p.findMissing(ctx, resource, namespace)
			if err != nil || len(missing) == 0 {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, fmt.Sprintf("%s of %s in %s", strings.Join(missing, ", "), resource, namespace))
			return nil
		})
	}
	err = group.Wait()
	slices.Sort(found)
	return found, err
}

// findMissing returns the verbs that the operator lacks on a resource in a namespace or, if that is "", in the whole
// cluster.
func (p Patient) findMissing(ctx context.Context, resource schema.GroupResource, namespace string) ([]string, error) {
	var missing []string
	for _, verb := range neededVerbs {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: v1alpha1.OperatorUser(p.Namespace), Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + p.Namespace,
				"system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: resource.Group,
				Resource: resource.Resource},
		}}
		if err := p.API.Create(ctx, review); err != nil {
			return nil, err
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	return missing, nil
}

// adviseSight returns how the operator gets its rights, which depends on who binds its role: the administrator or, with
// propagation.bindOwnRole, the operator itself.
func adviseSight(f file) string {
	if f.config.Propagation.BindOwnRole {
		return "the operator's log says why it can't write RoleBinding " + v1alpha1.OperatorBinding + " in these namespaces; make deploy " +
			"grants rights in the whole cluster"
	}
	return fmt.Sprintf("bind ClusterRole %s to ServiceAccount %s in these namespaces or, for kinds of scope Cluster, in the whole cluster, "+
		"as make deploy does",
		v1alpha1.KindsRole, v1alpha1.OperatorAccount)
}
