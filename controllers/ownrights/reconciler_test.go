package ownrights

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// server has the operator's RoleBinding in each namespace, and counts the writes.
type server struct {
	client.Client
	writes int
}

func (s *server) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	*object.(*rbacv1.RoleBinding) = rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "b", ResourceVersion: "1"},
	}
	return nil
}

func (s *server) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	s.writes++
	return nil
}

func (s *server) Update(context.Context, client.Object, ...client.UpdateOption) error {
	s.writes++
	return nil
}

// Protected and terminating namespaces stay as they are.
func TestTheBindingStaysWhereNothingMayBeTouched(t *testing.T) {
	now := metav1.Now()
	for name, meta := range map[string]metav1.ObjectMeta{
		"terminating": {Name: "n", UID: "u", ResourceVersion: "5", DeletionTimestamp: &now},
		"protected":   {Name: "n", UID: "u", ResourceVersion: "5", Labels: map[string]string{v1alpha1.LabelProtected: "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := view.New(forest.Rules{})
			v.MarkSynced()
			(&view.Feed{View: v}).TakeNamespace(&metav1.PartialObjectMetadata{ObjectMeta: meta})
			s := &server{}
			r := &Reconciler{Client: s, View: v, Enabled: true, HoldsCopies: func(string) bool { return false }}
			if got := r.decideNeed("n"); got != untouched {
				t.Fatalf("need %d", got)
			}
			request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "n"}}
			if _, err := r.Reconcile(t.Context(), request); err != nil || s.writes != 0 {
				t.Errorf("%d writes, error %v", s.writes, err)
			}
		})
	}
}
