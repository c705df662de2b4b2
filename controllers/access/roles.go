package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// userRoles reports whether the ClusterRole of users exists. No cache holds that role, because the role lacks the label of access objects.
type userRoles struct {
	live  client.Reader
	trust time.Duration

	mu   sync.Mutex
	seen map[string]time.Time // when a role was last seen to exist, by name
}

func (u *userRoles) roleExists(ctx context.Context, name string) (bool, error) {
	u.mu.Lock()
	fresh := time.Since(u.seen[name]) < u.trust
	u.mu.Unlock()
	if fresh {
		return true, nil
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	err := u.live.Get(ctx, client.ObjectKey{Name: name}, role)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for ClusterRole %s of users: %w", name, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.seen = map[string]time.Time{name: time.Now()}
	return true, nil
}
