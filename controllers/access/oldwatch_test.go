package access

import (
	"context"
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// ahead is an API server that knows more than the watches. It records the names of the subjects in each object that is written.
type ahead struct {
	client.Client
	tenant  v1alpha1.LNamespace
	refuses error // its answer to a GET of the LNamespace; nil for the LNamespace
	uid     types.UID
	objects grants.Actual
	written map[grants.Key][]string
}

func newAhead(tenant *v1alpha1.LNamespace, objects ...grants.Object) *ahead {
	s := &ahead{tenant: *tenant, uid: namespaceUID, objects: grants.Actual{}, written: map[grants.Key][]string{}}
	for _, object := range objects {
		s.objects.Put(grants.KeyOf(object), object)
	}
	return s
}

func (s *ahead) Get(_ context.Context, name client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *v1alpha1.LNamespace:
		s.tenant.DeepCopyInto(into)
		return s.refuses
	case *metav1.PartialObjectMetadata:
		into.UID = s.uid
	case *rbacv1.RoleBinding:
		s.objects[grants.Key{Kind: "RoleBinding", Namespace: name.Namespace, Name: name.Name}].(*rbacv1.RoleBinding).DeepCopyInto(into)
	default:
		return apierrors.NewNotFound(schema.GroupResource{}, name.Name)
	}
	return nil
}

func (s *ahead) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	s.record(object)
	return nil
}

func (s *ahead) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	if live := s.objects[grants.KeyOf(object)]; live != nil && live.GetResourceVersion() != object.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), nil)
	}
	s.record(object)
	return nil
}

func (s *ahead) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }

func (s *ahead) record(object client.Object) {
	names := []string{}
	for _, subject := range grants.Subjects(object.(grants.Object)) {
		names = append(names, subject.Name)
	}
	s.written[grants.KeyOf(object)] = names
}

// names reports whether an object was written that names a user.
func (s *ahead) names(user string) bool {
	for _, names := range s.written {
		if slices.Contains(names, user) {
			return true
		}
	}
	return false
}

// listing returns the tenant payments, with these people as users and sudoers.
func listing(generation int64, people ...string) *v1alpha1.LNamespace {
	lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "u1", Generation: generation}}
	for _, name := range people {
		lns.Spec.Users = append(lns.Spec.Users, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name})
	}
	lns.Spec.Sudoers = lns.Spec.Users
	return lns
}

// pass runs a pass with what the watches have shown.
func (s *ahead) pass(t *testing.T, tenant *v1alpha1.LNamespace, actual grants.Actual) *outcome {
	t.Helper()
	return newRunner(s).runSteps(t.Context(), tenant, grants.PlanFor(tenant.Name, grants.For(tenant, legacy), grants.Withheld{}, actual),
		actual)
}

// A PUT that takes carol's rights away writes the whole list: an old one names bob.
func TestAnOldListReplacesNobody(t *testing.T) {
	now := listing(2, "carol")
	objects := grants.For(now, legacy)
	s := newAhead(now, objects.Sudoers, objects.Users, objects.Sudo.Role, objects.Sudo.Binding)
	done := s.pass(t, listing(1, "bob"), s.objects)
	if s.names("bob") || len(done.errs) != 1 {
		t.Errorf("writes %v, errors %v", s.written, done.errs)
	}
}

// The watches show bob in the list, and alice and bob in the binding. On the API server, both have carol alone.
func TestALostRaceOfARevocationReplacesNobody(t *testing.T) {
	binding := func(version string, people ...string) *rbacv1.RoleBinding {
		b := grants.For(listing(1, people...), legacy).Users
		b.ResourceVersion = version
		return b
	}
	s := newAhead(listing(3, "carol"), binding("3", "carol"))
	cached := binding("1", "alice", "bob")
	done := s.pass(t, listing(2, "bob"), grants.Actual{grants.KeyOf(cached): cached})
	if s.names("bob") || len(done.errs) != 1 {
		t.Errorf("writes %v, errors %v", s.written, done.errs)
	}
}

// A pass whose LNamespace, Namespaces or service accounts are old writes nothing that gives a right, even where no object shows that the
// watch is late.
func TestOldFactsGrantNothing(t *testing.T) {
	account := v1alpha1.ListedServiceAccount{Namespace: "ci", Name: "deployer", NamespaceUID: "digest"}
	seen := listing(1, "bob")
	seen.Status.ServiceAccounts = []v1alpha1.ListedServiceAccount{account}
	for name, change := range map[string]func(*ahead){
		"nothing has changed":                    func(*ahead) {},
		"a service account was suspended":        func(s *ahead) { s.tenant.Status.ServiceAccounts[0].NamespaceUID = "" },
		"the root was deleted and made anew":     func(s *ahead) { s.uid = "another" },
		"the LNamespace was deleted":             func(s *ahead) { s.tenant = v1alpha1.LNamespace{} },
		"it was deleted and made anew":           func(s *ahead) { s.tenant.UID = "u2" },
		"it has other lists":                     func(s *ahead) { s.tenant.Generation++ },
		"the LNamespace can't be read":           func(s *ahead) { s.refuses = apierrors.NewForbidden(schema.GroupResource{}, "payments", nil) },
		"the API server is too busy to say that": func(s *ahead) { s.refuses = apierrors.NewTooManyRequests("busy", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newAhead(seen.DeepCopy())
			change(s)
			done := s.pass(t, seen, grants.Actual{})
			want := name == "nothing has changed"
			if s.names("bob") != want {
				t.Errorf("writes %v", s.written)
			}
			if told := len(done.errs) + len(done.forbidden); !want && told != 1 {
				t.Errorf("%d errors, not one: %v %v", told, done.errs, done.forbidden)
			} else if len(done.errs) > 0 && !errors.As(done.errs[0], &outdatedError{}) {
				t.Errorf("the error is %v", done.errs[0])
			}
		})
	}
}
