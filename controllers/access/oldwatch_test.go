package access

import (
	"context"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// recorder keeps the last subjects that were written, by key.
type recorder struct {
	client.Client
	now     v1alpha1.LNamespace
	there   grants.Actual
	written map[grants.Key][]string
}

func (s *recorder) Get(_ context.Context, n client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.LNamespace:
		s.now.DeepCopyInto(o)
	case *rbacv1.RoleBinding:
		s.there[grants.Key{Kind: "RoleBinding", Namespace: n.Namespace, Name: n.Name}].(*rbacv1.RoleBinding).DeepCopyInto(o)
	}
	return nil
}
func (s *recorder) record(o client.Object) {
	var names []string
	for _, one := range grants.Subjects(o.(grants.Object)) {
		names = append(names, one.Name)
	}
	s.written[grants.KeyOf(o.(grants.Object))] = names
}
func (s *recorder) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.record(o)
	return nil
}
func (s *recorder) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	if live := s.there[grants.KeyOf(o.(grants.Object))]; live != nil && live.GetResourceVersion() != o.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), nil)
	}
	s.record(o)
	return nil
}
func (s *recorder) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

// The LNamespace said [bob], then [carol]. The bindings are for carol; the watch of LNamespaces still shows [bob].
func TestAnOldListReplacesNobody(t *testing.T) {
	facts := grants.Facts{Mode: v1alpha1.SudoLegacy, Forms: grants.Forms{Legacy: true}, UserClusterRole: "admin"}
	listing := func(g int64, name string) *v1alpha1.LNamespace {
		l := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "u1", Generation: g}}
		s := []v1alpha1.Subject{{Kind: v1alpha1.SubjectUser, Name: name}}
		l.Spec.Users, l.Spec.Sudoers, l.Spec.Managers = s, s, nil
		return l
	}
	old, now := listing(1, "bob"), listing(2, "carol")
	actual := grants.Actual{}
	o := grants.For(now, facts)
	for _, object := range []grants.Object{o.Sudoers, o.Users, o.Sudo.Role, o.Sudo.Binding, o.Edit.Role, o.Edit.Binding} {
		actual.Put(grants.KeyOf(object), object)
	}
	s := &recorder{now: *now, there: actual, written: map[grants.Key][]string{}}
	runner := &stepRunner{objects: &objectStore{client: s, live: s, recent: newRecent(time.Minute, neverRead)},
		leaving: &leavingTenants{}, clock: &revocationClock{},
		patience: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second)}
	plan := grants.PlanFor("payments", grants.For(old, facts), grants.Withheld{}, actual)
	done := runner.runSteps(t.Context(), old, plan, actual)
	t.Log(done.errs)
	for key, names := range s.written {
		for _, n := range names {
			if n == "bob" {
				t.Errorf("%s grants to bob again", key)
			}
		}
	}
}

// Both watches are old: LNamespace [bob], binding [alice bob]. The API server has LNamespace [carol], binding [carol].
func TestALostRaceOfARevocationReplacesNobody(t *testing.T) {
	facts := grants.Facts{Mode: v1alpha1.SudoLegacy, Forms: grants.Forms{Legacy: true}, UserClusterRole: "admin"}
	listing := func(g int64, rv string, names ...string) (*v1alpha1.LNamespace, *rbacv1.RoleBinding) {
		l := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "u1", Generation: g}}
		for _, n := range names {
			l.Spec.Users = append(l.Spec.Users, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: n})
		}
		b := grants.For(l, facts).Users
		b.ResourceVersion = rv
		return l, b
	}
	_, cached := listing(1, "1", "alice", "bob")
	old, _ := listing(2, "2", "bob")
	now, live := listing(3, "3", "carol")
	actual := grants.Actual{grants.KeyOf(cached): cached}
	s := &recorder{now: *now, there: grants.Actual{grants.KeyOf(live): live}, written: map[grants.Key][]string{}}
	runner := &stepRunner{objects: &objectStore{client: s, live: s, recent: newRecent(time.Minute, neverRead)},
		leaving: &leavingTenants{}, clock: &revocationClock{},
		patience: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second)}
	plan := grants.PlanFor("payments", grants.For(old, facts), grants.Withheld{}, actual)
	plan.Steps = plan.Steps[:1]
	t.Log(plan.Steps[0].Deed, plan.Steps[0].Revokes)
	done := runner.runSteps(t.Context(), old, plan, actual)
	t.Log(done.errs, s.written)
	for key, names := range s.written {
		for _, n := range names {
			if n == "bob" {
				t.Errorf("%s grants to bob again", key)
			}
		}
	}
}
