package fault_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

// restartsBehind ends the operator's life. The next one sees the LNamespaces as they were 15 s ago, and all else as it is. For three
// seconds it will believe in what they are when restartsBehind returns.
func (s *stage) restartsBehind() {
	GinkgoHelper()
	var watching atomic.Bool
	s.Lag(15*time.Second, time.Minute, func(r *http.Request) bool {
		isOfLNamespaces := strings.HasSuffix(r.URL.Path, "/lnamespaces")
		if isOfLNamespaces {
			watching.Store(true)
		}
		return isOfLNamespaces
	})
	s.kill(s.now())
	Eventually(watching.Load).Should(BeTrue())
	time.Sleep(3 * time.Second)
}

var _ = Describe("an operator that starts against an old cache", func() {
	var st *stage
	var s *scene
	BeforeEach(func(ctx SpecContext) {
		st = newStage(ctx, devcluster.Options{WithoutPolicies: true})
		s = st.scene("f15")
		s.create(ctx, s.payments().Object())
		s.ready(ctx)
	})
	// endsWell waits until the operator has seen the last version of the LNamespace, and checks that bob never got sudo back.
	endsWell := func(ctx context.Context, stopAsking func()) {
		GinkgoHelper()
		s.ready(ctx)
		st.rests(ctx)
		stopAsking()
		Expect(s.rights.broken(ctx, s)).To(BeEmpty())
	}

	It("FLT-F15 against a cache 15 s old, an LNamespace that was since deleted and created with other lists gives no old right; nothing is "+
		"made for its old UID", func(ctx SpecContext) {
		old := s.tenantUID(ctx)
		st.restartsBehind()
		stopAsking := s.rights.begin(s)
		s.rights.revoke(s.own("bob"))
		change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Finalizers = nil })
		s.remove(ctx, s.payments().Object())
		s.gone(ctx, s.payments().Object())
		s.loses(ctx, s.own("bob"))
		mark := len(st.eventsOf(s.key))
		s.create(ctx, build.Tenant(s.own("payments")).Users(s.own("zoe")).Object())
		// The namespace belonged to the LNamespace that is gone. A mark lets the new one have it.
		Expect(s.Admin().Patch(ctx, build.Namespace(s.own("payments")), client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationAdopt+`":"`+string(s.tenantUID(ctx))+`"}}}`)))).To(Succeed())
		endsWell(ctx, stopAsking)
		for _, e := range st.eventsOf(s.key)[mark:] {
			for _, owner := range e.object.GetOwnerReferences() {
				Expect(owner.UID == old && e.before == nil).To(BeFalse(), "%s was made for the LNamespace that is gone", placeOf(e.object))
			}
		}
	})

	It("FLT-F15 against a cache 15 s old, a sudoer whom an edit has removed since gets no right back", func(ctx SpecContext) {
		st.restartsBehind()
		stopAsking := s.rights.begin(s)
		s.rights.revoke(s.own("bob"))
		change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = build.Users(s.own("carl")) })
		// Another replica, which saw the edit, has done as it says.
		change(ctx, s, build.ClusterRoleBinding("warren:sudo:"+s.own("payments"), ""), func(b *rbacv1.ClusterRoleBinding) {
			b.Subjects = []rbacv1.Subject{build.RBACUser(s.own("carl"))}
		})
		s.loses(ctx, s.own("bob"))
		endsWell(ctx, stopAsking)
		s.gains(ctx, s.own("carl"))
	})
})
