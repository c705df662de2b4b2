package grants_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

func TestNextWrite(t *testing.T) {
	objects := grants.For(payments(), legacy)
	binding, self := objects.Sudo.Binding, objects.Self[0].Binding
	roleRefOf := func(name string) *rbacv1.ClusterRoleBinding {
		other := binding.DeepCopy()
		other.RoleRef.Name = name
		return other
	}
	sharedWith := func(other ...metav1.OwnerReference) *rbacv1.ClusterRoleBinding {
		shared := self.DeepCopy()
		shared.OwnerReferences = append(shared.OwnerReferences, other...)
		return shared
	}
	shop := grants.Reference(&v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "UID_SHOP"}})
	ensure := grants.Step{Deed: grants.DeedEnsure, Desired: binding}
	last := grants.Step{Deed: grants.DeedRelease, Desired: self, Last: true}
	for name, tt := range map[string]struct {
		step     grants.Step
		existing grants.Object
		want     grants.WriteVerb
		again    bool
	}{
		"nothing is there":                            {ensure, nil, grants.WriteCreate, false},
		"it is as it should be":                       {ensure, binding.DeepCopy(), grants.WriteNothing, false},
		"a roleRef can't be changed, so it goes":      {ensure, roleRefOf("cluster-admin"), grants.WriteDelete, true},
		"the last owner leaves":                       {last, self.DeepCopy(), grants.WriteDelete, false},
		"another tenant still owns the shared object": {last, sharedWith(shop), grants.WriteUpdate, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := grants.NextWrite("payments", tt.step, tt.existing)
			if got.Verb != tt.want || got.Unfinished != tt.again {
				t.Errorf("got %q, unfinished %t", got.Verb, got.Unfinished)
			}
			if tt.step.Last && got.Verb == grants.WriteDelete && !got.Unchanged {
				t.Error("the deletion must hold for the version without other owners alone")
			}
		})
	}
}
