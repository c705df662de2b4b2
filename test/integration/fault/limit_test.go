package fault_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// keepsLimit asks for 60 sub-namespaces where 50 are allowed, and kills the operator at its writes meanwhile.
func (st *stage) keepsLimit(ctx context.Context) {
	GinkgoHelper()
	const asked, allowed = 60, 50
	s := st.scene("f47")
	s.create(ctx, s.payments().Limits(allowed, 4).Object())
	s.ready(ctx)
	made := 0
	s.scripts.set(s.key, func(q gate.Request) (gate.Fault, bool) {
		if q.Method != http.MethodPost || q.URL.Path != "/api/v1/namespaces" {
			return gate.Fault{}, false
		}
		life := st.now()
		s.mu.Lock()
		defer s.mu.Unlock()
		if made++; made%sparser(8) != 0 || made > asked {
			return gate.Fault{}, false
		}
		return gate.Fault{LoseAnswer: true, Then: func() { st.kill(life) }}, true
	})
	before := st.now()
	for n := range asked {
		s.create(ctx, build.SubNamespace(s.own("payments"), s.own(fmt.Sprint("n", n))))
	}
	Eventually(ctx, s.settledSubs).Should(Equal([2]int{allowed, asked - allowed}), s.explain)
	s.calm()
	Expect(st.now()-before).To(BeNumerically(">", 1), "it was killed, also after a restart")
	exist, most := 0, 0
	for _, e := range s.eventsOf(s.key) {
		switch {
		case e.object.GetKind() != "Namespace" || e.object.GetName() == s.own("payments"):
		case e.kind == watch.Added:
			exist++
		case e.kind == watch.Deleted:
			exist--
		}
		most = max(most, exist)
	}
	Expect(most).To(Equal(allowed), "at any instant")
}

// settledSubs counts the sub-namespaces of the scene that are Ready, and those that were refused for the limit.
func (s *scene) settledSubs(ctx context.Context) (counts [2]int, err error) {
	subs := &v1alpha1.SubNamespaceList{}
	if err := s.Admin().List(ctx, subs, client.InNamespace(s.own("payments"))); err != nil {
		return counts, err
	}
	for _, sub := range subs.Items {
		switch c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady); {
		case c == nil:
		case c.Status == metav1.ConditionTrue:
			counts[0]++
		case c.Reason == string(v1alpha1.ReasonLimitExceeded):
			counts[1]++
		}
	}
	return counts, nil
}
