package fault_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

var _ = Describe("an operator that starts against an old cache", func() {
	It("FLT-F15 grants nothing by the lists of an LNamespace that was deleted and made anew", func(ctx SpecContext) {
		st := newStage(ctx, devcluster.Options{WithoutPolicies: true})
		s := st.scene("f15")
		s.create(ctx, s.payments().Object())
		s.ready(ctx)
		old := s.tenantUID(ctx)

		// The operator sees the LNamespaces as they were 15 s ago, and all else as it is: it lacks the access objects of the old LNamespace,
		// which go with it.
		isOfLNamespaces := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/lnamespaces") }
		var watching atomic.Bool
		st.Lag(15*time.Second, time.Minute, func(r *http.Request) bool {
			if isOfLNamespaces(r) {
				watching.Store(true)
			}
			return isOfLNamespaces(r)
		})
		st.kill(st.now())
		Eventually(watching.Load).Should(BeTrue())
		time.Sleep(3 * time.Second) // for so long the operator will believe in the old LNamespace
		asked := s.rights.begin(s)
		s.rights.revoke(s.own("bob"))
		change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Finalizers = nil })
		s.remove(ctx, s.payments().Object())
		s.gone(ctx, s.payments().Object())
		s.loses(ctx, s.own("bob"))
		s.create(ctx, build.Tenant(s.own("payments")).Users(s.own("zoe")).Object())
		mark := len(st.eventsOf(s.key))

		Eventually(ctx, func(g Gomega) {
			g.Expect(s.tenantUID(ctx)).NotTo(Equal(old))
			lns := s.payments().Object()
			g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(lns), lns)).To(Succeed())
			ready := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady)
			g.Expect(ready).NotTo(BeNil(), "the operator has seen the new LNamespace")
		}).Should(Succeed(), s.explain)
		st.rests(ctx)
		asked()
		Expect(s.rights.broken(ctx, s)).To(BeEmpty())
		for _, e := range st.eventsOf(s.key)[mark:] {
			for _, owner := range e.object.GetOwnerReferences() {
				Expect(owner.UID == old && e.before == nil).To(BeFalse(), "%s was made for the LNamespace that is gone", placeOf(e.object))
			}
		}
	})
})
