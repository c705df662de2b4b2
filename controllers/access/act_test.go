package access

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// writesOf is an API server that fails deletions if failing is set. It records the names of created objects and the options of deletions.
// Of access objects, only the ClusterRoles and ClusterRoleBindings in existing can be read. Each LNamespace and Namespace can be read, with
// the UID that runnerOn and newRunner expect. So checkCurrent finds that nothing has changed since the operator's watch showed it.
type writesOf struct {
	client.Client
	existing grants.Actual
	failing  bool
	made     []string
	deleted  []client.DeleteOptions
}

func (w *writesOf) Get(_ context.Context, name client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if lns, is := object.(*v1alpha1.LNamespace); is {
		*lns = v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: name.Name, UID: "1"}}
		return nil
	}
	if namespace, is := object.(*metav1.PartialObjectMetadata); is {
		namespace.UID = namespaceUID
		return nil
	}
	key := grants.KeyOf(object)
	key.Name = name.Name
	switch existing := w.existing[key].(type) {
	case *rbacv1.ClusterRole:
		existing.DeepCopyInto(object.(*rbacv1.ClusterRole))
	case *rbacv1.ClusterRoleBinding:
		existing.DeepCopyInto(object.(*rbacv1.ClusterRoleBinding))
	default:
		return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
	}
	return nil
}

func (w *writesOf) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	w.made = append(w.made, object.GetName())
	return nil
}

func (w *writesOf) Delete(_ context.Context, _ client.Object, options ...client.DeleteOption) error {
	deletion := client.DeleteOptions{}
	deletion.ApplyOptions(options)
	w.deleted = append(w.deleted, deletion)
	if w.failing {
		return errors.New("the server is overloaded")
	}
	return nil
}

// runnerOn returns a stepRunner, the tenant, a plan that removes one binding and writes another, and the binding that exists.
func runnerOn(api *writesOf) (*stepRunner, *v1alpha1.LNamespace, grants.Plan, grants.Actual) {
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "1"}}
	tenant.Spec.Users = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "alice"}}
	objects := grants.For(tenant, grants.Facts{UserClusterRole: "admin", Forms: grants.FormsOf(v1alpha1.SudoLegacy)})
	old := objects.Sudoers.DeepCopy()
	old.UID, old.ResourceVersion = "read", "7"
	plan := grants.Plan{Steps: []grants.Step{
		{Verb: grants.VerbRemove, Desired: objects.Sudoers, Revokes: true},
		{Verb: grants.VerbEnsure, Desired: objects.Users},
	}}
	return newRunner(api), tenant, plan, grants.Actual{grants.KeyOf(old): old}
}

func TestNothingIsGrantedAfterARevocationHasFailed(t *testing.T) {
	for name, failing := range map[string]bool{"the revocation is done": false, "the revocation fails": true} {
		t.Run(name, func(t *testing.T) {
			api := &writesOf{failing: failing}
			r, tenant, plan, actual := runnerOn(api)
			done := r.runSteps(t.Context(), tenant, plan, actual)
			if granted := len(api.made) > 0; granted == failing {
				t.Errorf("makes %v, errors %v", api.made, done.errs)
			}
		})
	}
}

func TestADeletionHoldsForTheObjectThatWasRead(t *testing.T) {
	api := &writesOf{}
	r, tenant, plan, actual := runnerOn(api)
	r.runSteps(t.Context(), tenant, plan, actual)
	if len(api.deleted) != 1 || api.deleted[0].Preconditions == nil || *api.deleted[0].Preconditions.UID != "read" {
		t.Errorf("deletes with %+v", api.deleted)
	}
}

// FLT-M16: after the plan and before the deletion, another worker may have replaced the foreign role of a shared pair by the right one.
func TestASharedBindingIsRemovedOnlyWhileItsRoleIsForeign(t *testing.T) {
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "1"}}
	tenant.Spec.Sudoers = []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: "bob"}}
	pair := grants.For(tenant, grants.Facts{Forms: grants.FormsOf(v1alpha1.SudoLegacy)}).Self[0]
	foreign := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: pair.Role.Name}}
	step := grants.Step{Verb: grants.VerbRemove, Desired: pair.Binding, Role: pair.Role, Revokes: true}
	for name, c := range map[string]struct {
		now       *rbacv1.ClusterRole
		deletions int
	}{
		"the role is still foreign":    {foreign, 1},
		"the role has been made again": {pair.Role, 0},
	} {
		t.Run(name, func(t *testing.T) {
			api := &writesOf{existing: grants.Actual{grants.KeyOf(pair.Binding): pair.Binding, grants.KeyOf(c.now): c.now}}
			planned := grants.Actual{grants.KeyOf(pair.Binding): pair.Binding, grants.KeyOf(foreign): foreign}
			if _, err := newRunner(api).runStep(t.Context(), tenant, step, planned, unchanged); err != nil || len(api.deleted) != c.deletions {
				t.Errorf("%d deletions, error %v", len(api.deleted), err)
			}
		})
	}
}
