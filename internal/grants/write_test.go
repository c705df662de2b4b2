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
	ensure := grants.Step{Verb: grants.VerbEnsure, Desired: binding}
	last := grants.Step{Verb: grants.VerbRelease, Desired: self, Last: true}
	unbind := grants.Step{Verb: grants.VerbRemove, Desired: self, Role: objects.Self[0].Role}
	own := objects.Self[0].Role.DeepCopy()
	foreign := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: own.Name}}
	extended, elsewhere := self.DeepCopy(), self.DeepCopy()
	extended.Subjects = append(extended.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"})
	elsewhere.RoleRef.Name = "cluster-admin"
	remove, kept := grants.Step{Verb: grants.VerbRemove, Desired: binding}, binding.DeepCopy()
	kept.DeletionTimestamp, kept.Finalizers = new(metav1.Now()), []string{"example.com/keep"}
	world := func(existing ...grants.Object) []grants.Object { return existing }
	for name, tt := range map[string]struct {
		step  grants.Step
		world []grants.Object
		want  grants.WriteVerb
		again bool
	}{
		"nothing is there":                            {ensure, world(), grants.WriteCreate, false},
		"it is as it should be":                       {ensure, world(binding.DeepCopy()), grants.WriteNothing, false},
		"a roleRef can't be changed, so it goes":      {ensure, world(roleRefOf("cluster-admin")), grants.WriteDelete, true},
		"the last owner leaves":                       {last, world(self.DeepCopy()), grants.WriteDelete, false},
		"another tenant still owns the shared object": {last, world(sharedWith(shop)), grants.WriteUpdate, false},
		"the role is somebody else's":                 {unbind, world(sharedWith(shop), foreign), grants.WriteDelete, false},
		"FLT-M16 a shared binding stays if another tenant has made its ClusterRole again": {
			unbind, world(sharedWith(shop), own), grants.WriteNothing, false,
		},
		"the role is gone":                         {unbind, world(sharedWith(shop)), grants.WriteNothing, false},
		"the role is ours, a subject is not":       {unbind, world(extended, own), grants.WriteUpdate, false},
		"the role is ours, but another one counts": {unbind, world(elsewhere, own), grants.WriteDelete, false},
		"ACC-R26 a binding that a finalizer keeps after its deletion loses its subjects": {remove, world(kept), grants.WriteUpdate, false},
		"ACC-R26 a binding without subjects that a finalizer keeps is not " +
			"written": {remove, world(grants.Without(kept)), grants.WriteNothing, false},
	} {
		t.Run(name, func(t *testing.T) {
			actual := grants.Actual{}
			for _, object := range tt.world {
				actual.Put(grants.KeyOf(object), object)
			}
			got := grants.NextWrite("payments", tt.step, actual)
			if got.Verb != tt.want || got.Unfinished != tt.again {
				t.Errorf("got %q, unfinished %t", got.Verb, got.Unfinished)
			}
			if tt.step.Last && got.Verb == grants.WriteDelete && !got.Unchanged {
				t.Error("the deletion must hold for the version without other owners alone")
			}
		})
	}
}
