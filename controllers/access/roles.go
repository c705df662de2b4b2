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

// userRoles reports whether the ClusterRole of users exists. No cache holds that role, because the role lacks the label
// of access objects.
type userRoles struct {
	live client.Reader
	// trust is how long the role, once seen, is taken to exist. doubt is how long it is taken to be missing: all
	// tenants ask for the same role.
	trust, doubt time.Duration

	mu    sync.Mutex // guards known
	known map[string]roleAnswer
}

// roleAnswer reports until when a role is taken to exist, or to be missing.
type roleAnswer struct {
	exists bool
	until  time.Time
}

func (u *userRoles) roleExists(ctx context.Context, name string) (bool, error) {
	u.mu.Lock()
	known := u.known[name]
	u.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.exists, nil
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	answer := roleAnswer{exists: true, until: time.Now().Add(u.trust)}
	switch err := u.live.Get(ctx, client.ObjectKey{Name: name}, role); {
	case apierrors.IsNotFound(err):
		answer = roleAnswer{until: time.Now().Add(u.doubt)}
	case err != nil:
		return false, fmt.Errorf("looking for ClusterRole %s of users: %w", name, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known = map[string]roleAnswer{name: answer}
	return answer.exists, nil
}
