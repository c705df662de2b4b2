package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// answerCases are the cases in which the API server answers otherwise than it should.
var answerCases = []faultCase{
	{"F03a", "meets one conflict", oneConflict},
	{"F03b", "meets a conflict at each write of one object for a minute", conflictsForAMinute},
	{"F04a", "makes what it has made: the answer was lost", madeAlready},
	{"F04b", "makes what a stranger has made", madeByStranger},
	{"F06b", "meets errors at each write of one object for a minute (SUB-S13)", errorsForAMinute},
	{"F08", "is told of a time-out by what was done", timeoutsWithSuccess},
	{"F48", "has the LNamespace edited before each of its writes", editedAllTheWhile},
}

// usersBinding is the path of the binding of the scene's users.
func (s *scene) usersBinding() string { return s.own("payments") + "/rolebindings/warren:users" }

// admit adds a user to the scene's tenant.
func (s *scene) admit(ctx context.Context, user string) {
	GinkgoHelper()
	change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) {
		l.Spec.Users = append(l.Spec.Users, build.Users(s.own(user))...)
	})
}

func oneConflict(ctx context.Context, s *scene) {
	tenant(ctx, s)
	sent := s.meet(onPath("", s.usersBinding()), func(n int) gate.Fault {
		if n == 1 {
			return gate.Fault{Code: http.StatusConflict}
		}
		return gate.Fault{}
	})
	s.admit(ctx, "ann")
	Eventually(ctx, s.users).Should(ContainElement(s.own("ann")), s.explain)
	s.ready(ctx)
	Consistently(ctx, sent.count).WithTimeout(soon).Should(BeNumerically("<=", 3))
}

func conflictsForAMinute(ctx context.Context, s *scene) {
	tenant(ctx, s)
	sent := s.meet(onPath("", s.usersBinding()), func(int) gate.Fault { return gate.Fault{Code: http.StatusConflict} })
	began := time.Now()
	s.admit(ctx, "ann")
	s.tenantSays(ctx, v1alpha1.ConditionReady, metav1.ConditionFalse, "")
	s.create(ctx, build.Tenant(s.own("other")).Users(s.own("alice")).Object())
	s.exist(ctx, build.RoleBinding(s.own("other"), "warren:users", ""))
	sent.fewInAMinute(ctx, began)
	s.calm()
	Eventually(ctx, s.users).Should(ContainElement(s.own("ann")), s.explain)
	s.ready(ctx)
}

func errorsForAMinute(ctx context.Context, s *scene) {
	tenant(ctx, s)
	sent := s.meet(onPath(http.MethodPost, "/api/v1/namespaces"),
		func(int) gate.Fault { return gate.Fault{Code: http.StatusInternalServerError} })
	s.create(ctx, build.SubNamespace(s.own("payments"), s.own("web")))
	Eventually(ctx, sent.count).Should(BeNumerically(">", 1))
	sent.fewInAMinute(ctx, sent.all()[0].at)
	s.calm()
	s.bound(ctx, "payments", "web")
}

func madeAlready(ctx context.Context, s *scene) {
	s.bush(ctx)
	sent := s.meet(func(q gate.Request) bool { return strings.Contains(q.URL.Path, s.own("n0")+"/secrets") }, func(n int) gate.Fault {
		return gate.Fault{LoseAnswer: n == 1}
	})
	s.create(ctx, s.source("s", "1"))
	s.copied(ctx, "n0", "s", "1")
	Consistently(ctx, func(g Gomega) {
		g.Expect(sent.count()).To(BeNumerically("<=", 2))
		for _, q := range sent.all() {
			g.Expect(q.method).To(Equal(http.MethodPost), "it is taken as done")
		}
	}).WithTimeout(test.Quiet(soon)).Should(Succeed())
	version := build.Secret(s.own("n0"), "s", "")
	s.exist(ctx, version)
	before := version.ResourceVersion
	change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte("2") })
	s.copied(ctx, "n0", "s", "2")
	Expect(version.ResourceVersion).To(Equal(before))
}

func madeByStranger(ctx context.Context, s *scene) {
	s.bush(ctx)
	own := build.Secret(s.own("n0"), "s", "theirs")
	s.scripts.set(s.key, func(q gate.Request) (gate.Fault, bool) {
		if q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, s.own("n0")+"/secrets") {
			_ = s.Admin().Create(ctx, own.DeepCopy())
		}
		return gate.Fault{}, false
	})
	s.create(ctx, s.source("s", "1"))
	s.propagationSays(ctx, "n0", metav1.ConditionFalse, "Conflict: ")
	s.exist(ctx, own)
	Expect(string(own.Data["key"])).To(Equal("theirs"))
	before := own.ResourceVersion
	change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte("2") })
	s.copied(ctx, "n1", "s", "2")
	Consistently(ctx, func(g Gomega) {
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(own), own)).To(Succeed())
		g.Expect(own.ResourceVersion).To(Equal(before))
	}).WithTimeout(test.Quiet(soon)).Should(Succeed())
}

func timeoutsWithSuccess(ctx context.Context, s *scene) {
	tenant(ctx, s)
	once := func(these func(gate.Request) bool) *recorder {
		return s.meet(these, func(n int) gate.Fault {
			if n == 1 {
				return gate.Fault{AnswerCode: http.StatusGatewayTimeout}
			}
			return gate.Fault{}
		})
	}
	sent := once(onPath(http.MethodPost, "/api/v1/namespaces"))
	s.create(ctx, build.SubNamespace(s.own("payments"), s.own("web")))
	made := s.bound(ctx, "payments", "web")
	Expect(sent.count()).To(BeNumerically("<=", 2))

	binding := build.Source(build.RoleBinding(s.own("payments"), "b", "view", build.RBACUser("eve")), v1alpha1.ModeUpdate)
	s.create(ctx, binding)
	s.exist(ctx, build.RoleBinding(s.own("web"), "b", ""))
	sent = once(onPath(http.MethodDelete, s.own("web")+"/rolebindings/b"))
	s.remove(ctx, binding)
	s.gone(ctx, build.RoleBinding(s.own("web"), "b", ""))
	Eventually(ctx, sent.count).Should(BeNumerically(">", 0))
	Consistently(ctx, sent.count).WithTimeout(soon).Should(BeNumerically("<=", 2))

	sent = once(onPath("", "/clusterrolebindings/warren:sudo:"+s.own("payments")))
	change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) { l.Spec.Sudoers = build.Users(s.own("sue")) })
	Eventually(ctx, s.sudoers).Should(ConsistOf(s.own("sue")))
	s.ready(ctx)
	Consistently(ctx, sent.count).WithTimeout(soon).Should(BeNumerically("<=", 2))
	Expect(s.bound(ctx, "payments", "web").UID).To(Equal(made.UID), "one object")
}

func editedAllTheWhile(ctx context.Context, s *scene) {
	s.create(ctx, s.payments().Sudoers().Object())
	var edits atomic.Int32
	s.scripts.set(s.key, func(q gate.Request) (gate.Fault, bool) {
		if !isWrite(q.Request) || strings.HasSuffix(q.URL.Path, "/status") || edits.Load() >= 20 {
			return gate.Fault{}, false
		}
		lns := s.payments().Object()
		if s.Admin().Get(ctx, client.ObjectKeyFromObject(lns), lns) == nil {
			lns.Spec.Sudoers = build.Users(s.own(fmt.Sprint("sudoer", edits.Load())))
			if s.Admin().Update(ctx, lns) == nil {
				edits.Add(1)
			}
		}
		return gate.Fault{}, false
	})
	Eventually(ctx, edits.Load).Should(BeNumerically("==", 20), s.explain)
	Eventually(ctx, s.sudoers).Should(ConsistOf(s.own("sudoer19")), s.explain) // the write that brought the last edit may have granted another
	for i := range 19 {
		s.rights.revoke(s.own(fmt.Sprint("sudoer", i)))
	}
	s.ready(ctx)
	for i := range 19 {
		s.loses(ctx, s.own(fmt.Sprint("sudoer", i)))
	}
	s.gains(ctx, s.own("sudoer19"))
	Expect(s.rights.broken(ctx, s)).To(BeEmpty(), "FLT-I2")
}
