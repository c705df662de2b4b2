package access

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// server has an LNamespace and a ClusterRoleBinding that no cache has yet: each POST gets AlreadyExists. Reads are live.
type server struct {
	client.Client
	tenant  v1alpha1.LNamespace
	binding rbacv1.ClusterRoleBinding
	updates int
}

func (s *server) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
}

func (s *server) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	s.updates++
	object.(*rbacv1.ClusterRoleBinding).DeepCopyInto(&s.binding)
	return nil
}

func (s *server) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch into := object.(type) {
	case *v1alpha1.LNamespace:
		s.tenant.DeepCopyInto(into)
	case *rbacv1.ClusterRoleBinding:
		s.binding.DeepCopyInto(into)
	case *metav1.PartialObjectMetadata:
		into.UID = namespaceUID
	default:
		return fmt.Errorf("%T isn't read here", object)
	}
	return nil
}

// namespaceUID is the UID that every Namespace has, by the watch and on the API server.
const namespaceUID = "n"

func newRunner(api client.Client) *stepRunner {
	return &stepRunner{
		objects: &objectStore{client: api, live: api, recent: newRecent(time.Minute, neverRead)}, leaving: &leavingTenants{},
		clock: &revocationClock{}, uidOf: func(string) types.UID { return namespaceUID },
		patience: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second),
	}
}

// legacy are the facts of an operator whose sudo has mode Legacy.
var legacy = grants.Facts{Mode: v1alpha1.SudoLegacy, Forms: grants.Forms{Legacy: true}, UserClusterRole: "admin"}

// unchanged is the answer to whether an LNamespace is as the watch has shown it.
func unchanged() error { return nil }

// FLT-F15: a pass with an old version of the LNamespace grants nothing, if the existing object shows that there is a newer version.
func TestOldListsGrantNothing(t *testing.T) {
	listing := func(uid types.UID, generation int64, users ...string) *v1alpha1.LNamespace {
		lns := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: uid, Generation: generation}}
		for _, user := range users {
			lns.Spec.Sudoers = append(lns.Spec.Sudoers, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: user})
		}
		return lns
	}
	for name, c := range map[string]struct {
		seen, now *v1alpha1.LNamespace
		grants    bool
	}{
		"as the watch has shown it":    {seen: listing("u1", 1, "bob", "sue"), now: listing("u1", 1, "bob", "sue"), grants: true},
		"somebody was taken off it":    {seen: listing("u1", 1, "bob", "sue"), now: listing("u1", 2, "sue", "ann")},
		"it was deleted and made anew": {seen: listing("u1", 1, "bob", "sue"), now: listing("u2", 1, "sue", "ann")},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{tenant: *c.now, binding: *grants.For(listing(c.now.UID, c.now.Generation, "sue", "ann"), legacy).Sudo.Binding}
			runner := newRunner(s)
			step := grants.Step{Verb: grants.VerbEnsure, Desired: grants.For(c.seen, legacy).Sudo.Binding}
			_, err := runner.runStep(t.Context(), c.seen, step, grants.Actual{}, unchanged) // the object that is there is the first sign
			if c.grants != (err == nil) || c.grants != (s.updates == 1) {
				t.Errorf("%d updates, error %v", s.updates, err)
			}
			if err != nil && !strings.Contains(err.Error(), "has changed since the operator's watch showed it") {
				t.Errorf("error %v", err)
			}
		})
	}
}
