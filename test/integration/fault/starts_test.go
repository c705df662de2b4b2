package fault_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// asOf has every list that the operator asks for show the cluster as it was at a resourceVersion.
func asOf(version string) func(gate.Request) gate.Fault {
	return func(r gate.Request) gate.Fault {
		query := r.URL.Query()
		switch {
		case r.Method != http.MethodGet || query.Get("watch") == "true" && query.Get("sendInitialEvents") != "true":
		case query.Get("sendInitialEvents") == "true": // an API server that can't stream lists
			return gate.Fault{Code: http.StatusUnprocessableEntity}
		case query.Get("continue") == "" && (query.Has("limit") || query.Has("resourceVersion")): // a list of an informer
			query.Set("resourceVersion", version)
			query.Set("resourceVersionMatch", "Exact")
			r.URL.RawQuery = query.Encode()
		}
		return gate.Fault{}
	}
}

// version is the cluster's resourceVersion now.
func (s *stage) version(ctx context.Context) string {
	GinkgoHelper()
	list := &corev1.NamespaceList{}
	Expect(s.Admin().List(ctx, list, client.Limit(1))).To(Succeed())
	return list.ResourceVersion
}

// startsLate starts the operator, which is down, with an API server whose lists and watches know nothing since that version; it looks on for a
// while, and then lets the watches come.
func (s *stage) startsLate(ctx context.Context, version string, meanwhile func()) {
	GinkgoHelper()
	life := s.now()
	s.Script(asOf(version))
	s.Freeze(watches("", ""))
	s.dead <- struct{}{}
	Eventually(ctx, s.isReady).WithArguments(life + 1).Should(BeTrue())
	meanwhile()
	s.Script(nil)
	s.Thaw()
}

var _ = Describe("an operator that starts", Ordered, ContinueOnFailure, func() {
	var st *stage

	BeforeAll(func() { st = guarded })

	AfterEach(func() {
		st.Script(nil)
		st.Thaw()
	})

	It("FLT-F15 sees an old state, since which a tenant was deleted and made again", func(ctx SpecContext) {
		s := st.scene("f15")
		s.withoutClaims = true
		half := "" // when the tenant was there, and most of what it implies was not
		s.scripts.set(s.key, func(q gate.Request) (gate.Fault, bool) {
			if half == "" && q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, "/clusterroles") {
				half = st.version(ctx)
			}
			return gate.Fault{}, false
		})
		tenant(ctx, s)
		s.calm()
		Expect(half).NotTo(BeEmpty())
		whole := st.version(ctx)
		s.remove(ctx, s.payments().Object())
		s.gone(ctx, s.payments().Object(), build.Namespace(s.own("payments")), build.ClusterRole("warren:self:"+s.own("bob")))
		s.create(ctx, build.Tenant(s.own("payments")).Users(s.own("anna")).Sudoers(s.own("sue")).Object())
		s.ready(ctx)
		s.plant(ctx, s.own("payments"))
		begun := s.begin(ctx)
		for _, user := range []string{"bob", "mia"} {
			s.rights.revoke(s.own(user))
		}
		before := s.uids()
		for _, version := range []string{whole, half} {
			st.down()
			st.startsLate(ctx, version, func() {
				Consistently(ctx, func(g Gomega) {
					g.Expect(s.users(ctx)).To(ConsistOf(s.own("anna")))
					g.Expect(s.sudoers(ctx)).To(ConsistOf(s.own("sue")))
					g.Expect(s.maySudo(ctx, s.own("bob"))).To(BeFalse(), "no right of the old list appears")
				}).WithTimeout(soon).Should(Succeed(), s.explain)
			})
			s.admit(ctx, "ann"+version)
			Eventually(ctx, s.users).Should(ContainElement(s.own("ann"+version)), s.explain)
			s.ready(ctx)
			s.isStill(ctx, before)
			change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.Users = build.Users(s.own("anna")) })
			Eventually(ctx, s.users).Should(ConsistOf(s.own("anna")), s.explain)
		}
		begun.stop()
		Expect(s.rights.broken(ctx, s)).To(BeEmpty(), "FLT-I2")
		Expect(touchedOf(begun)).To(BeEmpty(), "FLT-I1")
	})

	It("FLT-U10 was away while ten thousand things happened, and revokes before all else", func(ctx SpecContext) {
		s := st.scene("u10")
		s.withoutClaims = true
		family(ctx, s)
		s.create(ctx, s.source("s", "0"), s.source("goes", "1"))
		s.copied(ctx, "n2", "s", "0")
		s.copied(ctx, "n2", "goes", "1")
		st.down()
		events := 200
		if test.IsLong() {
			events = 10_000
		}
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
		Expect(s.firstWrite(writes)).To(Equal("clusterrolebindings warren:sudo:"+s.own("payments")), "revocations before anything else: %v", writes)
	})

	It("writes nothing in the end, and has never ended by itself", func(ctx SpecContext) {
		st.rests(ctx)
		st.checkProcess()
	})
})

// isStill checks that the namespaces of the scene are those of before.
func (s *scene) isStill(ctx context.Context, before map[string]types.UID) {
	GinkgoHelper()
	for name, uid := range before {
		n := build.Namespace(name)
		Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
		Expect([]any{n.UID, n.DeletionTimestamp.IsZero()}).To(Equal([]any{uid, true}))
	}
}
