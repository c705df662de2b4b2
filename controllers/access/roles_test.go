package access

import (
	"context"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// roleReader is an API server that counts how often a ClusterRole is read.
type roleReader struct {
	client.Reader
	missing bool
	reads   int
}

func (r *roleReader) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	r.reads++
	if r.missing {
		return apierrors.NewNotFound(rbacv1.Resource("clusterroles"), key.Name)
	}
	return nil
}

func TestRoleExists(t *testing.T) {
	for name, missing := range map[string]bool{
		"ACC-R25 the ClusterRole of users, if it exists, is read once for 100 tenants":     false,
		"ACC-R25 the ClusterRole of users, if it is missing, is read once for 100 tenants": true,
	} {
		t.Run(name, func(t *testing.T) {
			live := &roleReader{missing: missing}
			u := &userRoles{live: live, trust: time.Hour, doubt: time.Hour}
			for range 100 {
				if exists, err := u.roleExists(t.Context(), "edit"); exists == missing || err != nil {
					t.Fatalf("exists: %t, %v", exists, err)
				}
			}
			if live.reads != 1 {
				t.Errorf("%d reads for 100 tenants", live.reads)
			}
		})
	}
	t.Run("ACC-R25 the role is read again when the answer is old", func(t *testing.T) {
		live := &roleReader{missing: true}
		u := &userRoles{live: live, trust: time.Hour}
		if exists, err := u.roleExists(t.Context(), "edit"); exists || err != nil {
			t.Fatalf("exists: %t, %v", exists, err)
		}
		live.missing = false
		if exists, err := u.roleExists(t.Context(), "edit"); !exists || err != nil {
			t.Errorf("exists: %t, %v", exists, err)
		}
	})
}
