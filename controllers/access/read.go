package access

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/grants"
)

// addOwnedPairs adds to actual the self pairs and sole pairs that the tenant owns. The names of these pairs contain a
// user; the pairs of all users are added.
func (s *objectStore) addOwnedPairs(ctx context.Context, tenant string, actual grants.Actual) error {
	of := client.MatchingFields{indexTenant: tenant}
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	if err := s.client.List(ctx, roles, of); err != nil {
		return fmt.Errorf("listing ClusterRoles of tenant %s: %w", tenant, err)
	}
	if err := s.client.List(ctx, bindings, of); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings of tenant %s: %w", tenant, err)
	}
	add := func(object grants.Object) {
		_, self := grants.SelfUser(object.GetName())
		if _, sole := grants.SoleUser(object.GetName(), tenant); !self && !sole {
			return
		}
		if object = s.recent.latestOf(grants.KeyOf(object), object); object != nil {
			actual[grants.KeyOf(object)] = object
		}
	}
	for i := range roles.Items {
		add(&roles.Items[i])
	}
	for i := range bindings.Items {
		add(&bindings.Items[i])
	}
	return nil
}

// readCached reads an object from the cache, or returns the operator's own last write where that is newer. The object
// is nil if there is none.
func (s *objectStore) readCached(ctx context.Context, key grants.Key) (grants.Object, error) {
	object, err := readObject(ctx, s.client, key)
	if err != nil {
		return nil, err
	}
	return s.recent.latestOf(key, object), nil
}

// readLive reads an object from the API server. It is nil if there is none.
func (s *objectStore) readLive(ctx context.Context, key grants.Key) (grants.Object, error) {
	return readObject(ctx, s.live, key)
}

func readObject(ctx context.Context, from client.Reader, key grants.Key) (grants.Object, error) {
	object := key.New()
	err := from.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return object, nil
}
