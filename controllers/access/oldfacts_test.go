package access

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/grants"
)

// The watch shows the status before the operator suspended an account; the generation is the same.
func TestOldStatusRevivesNoAccount(t *testing.T) {
	seen := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "u1", Generation: 1}}
	seen.Status.ServiceAccounts = []v1alpha1.ListedServiceAccount{{Namespace: "ci", Name: "deployer", NamespaceUID: "digest"}}
	now := seen.DeepCopy()
	now.Status.ServiceAccounts[0].NamespaceUID = ""
	s := &recorder{now: *now}
	if err := (&objectStore{live: s}).checkCurrent(t.Context(), seen); err == nil {
		t.Error("an old digest passes the check")
	}
}

type refusing struct{ recorder }

func (*refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "lnamespaces"}, "payments", fmt.Errorf("no"))
}

func TestARefusedReadIsToldOnce(t *testing.T) {
	l := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "payments", UID: "u1", Generation: 1}}
	for _, n := range []string{"a", "b", "c"} {
		l.Spec.Sudoers = append(l.Spec.Sudoers, v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: n})
	}
	s := &refusing{recorder{written: map[grants.Key][]string{}}}
	runner := &stepRunner{objects: &objectStore{client: okReads{s}, live: s, recent: newRecent(time.Minute, neverRead)},
		leaving: &leavingTenants{}, clock: &revocationClock{},
		patience: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Second)}
	facts := grants.Facts{Mode: v1alpha1.SudoLegacy, Forms: grants.Forms{Legacy: true}, UserClusterRole: "admin"}
	done := runner.runSteps(t.Context(), l, grants.PlanFor("payments", grants.For(l, facts), grants.Withheld{}, grants.Actual{}), grants.Actual{})
	if len(done.forbidden) != 1 {
		t.Errorf("%d messages, e.g. %s", len(done.forbidden), done.forbidden[0])
	}
}

type okReads struct{ client.Client }

func (okReads) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, "x")
}
