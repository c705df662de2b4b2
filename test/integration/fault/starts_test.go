package fault_test

import (
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("an operator that starts", Ordered, ContinueOnFailure, func() {
	var st *stage

	BeforeAll(func() { st = guarded })

	It("FLT-U10 after 10,000 events while it was down (`make test-long`; else 200), the operator revokes rights before it writes anything "+
		"else, and copies are those of the sources", func(ctx SpecContext) {
		s := st.scene("u10")
		s.withoutClaims = true
		family(ctx, s)
		s.create(ctx, s.source("s", "0"), s.source("goes", "1"))
		s.copied(ctx, "n2", "s", "0")
		s.copied(ctx, "n2", "goes", "1")
		st.down()
		events := test.Many(10_000, 200)
		for n := 1; n <= events; n++ {
			change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte(strconv.Itoa(n)) })
		}
		s.remove(ctx, s.source("goes", ""))
		s.create(ctx, s.source("comes", "1"), build.SubNamespace(s.own("payments"), s.own("late")))
		change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) {
			l.Spec.Sudoers, l.Spec.Users = build.Users(s.own("sue")), append(l.Spec.Users, build.Users(s.own("ann"))...)
		})
		mark, err := st.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		st.up(ctx)
		for _, child := range []string{"n0", "n1", "n2", "late"} {
			s.copied(ctx, child, "s", strconv.Itoa(events))
			s.copied(ctx, child, "comes", "1")
			s.gone(ctx, build.Secret(s.own(child), "goes", ""))
		}
		s.ready(ctx)
		Expect(s.users(ctx)).To(ContainElement(s.own("ann")))
		writes, err := st.Writes(ctx, mark)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.firstWrite(writes)).To(Equal("clusterrolebindings warren:sudo:"+s.own("payments")), "revocations before anything else: %v",
			writes)
	})

	It("writes nothing in the end, and has never ended by itself", func(ctx SpecContext) {
		st.rests(ctx)
		st.checkProcess()
	})
})
