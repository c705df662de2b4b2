package fault_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/gate"
)

// obstacleCases are the cases in which something in the cluster is in the way of a write.
var obstacleCases = []faultCase{
	{"F31a", "is refused a copy by a policy of the cluster", refusedCopy},
	{"F31b", "is refused a RoleBinding by a policy of the cluster", refusedBinding},
	{"F31c", "is refused a Namespace by a policy of the cluster", refusedNamespace},
	{"F32a", "is refused a copy by a ResourceQuota", quota},
	{"F32b", "finds another object of the name of a copy", nameTaken},
}

// refuse has a policy of the cluster refuse creations in a namespace, and waits until it is in force. lift takes it away.
func (s *scene) refuse(ctx context.Context, namespace string, resource schema.GroupVersionResource, expression string,
	probe client.Object) (lift func()) {
	GinkgoHelper()
	policy, bound := build.Policy(namespace, admissionv1.Create, resource, expression, "not in this house")
	s.create(ctx, policy, bound)
	Eventually(ctx, func() error {
		return s.Admin().Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("not in this house")))
	return func() {
		GinkgoHelper()
		s.remove(ctx, bound)
		s.remove(ctx, policy)
	}
}

// fewTries checks that the operator sends few of these writes, which are refused, in a minute.
func (s *scene) fewTries(ctx context.Context, these func(gate.Request) bool) {
	GinkgoHelper()
	sent := s.meet(these, func(int) gate.Fault { return gate.Fault{} })
	sent.fewInAMinute(ctx, time.Now())
	s.calm()
}

func refusedCopy(ctx context.Context, s *scene) {
	s.bush(ctx)
	lift := s.refuse(ctx, s.own("n0"), corev1.SchemeGroupVersion.WithResource("secrets"), "object.metadata.name != 's'",
		build.Secret(s.own("n0"), "s", ""))
	s.create(ctx, s.source("s", "1"))
	s.copied(ctx, "n1", "s", "1")
	s.propagationSays(ctx, "n0", metav1.ConditionFalse, "not in this house")
	s.fewTries(ctx, onPath(http.MethodPost, s.own("n0")+"/secrets"))
	lift()
	change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte("2") })
	s.copied(ctx, "n0", "s", "2")
	s.propagationSays(ctx, "n0", metav1.ConditionTrue, "")
}

func refusedBinding(ctx context.Context, s *scene) {
	tenant(ctx, s)
	other := build.Tenant(s.own("other")).Users(s.own("alice")).Object()
	s.create(ctx, other.DeepCopy())
	s.exist(ctx, build.RoleBinding(s.own("other"), "warren:users", ""))
	policy, bound := build.Policy(s.own("other"), admissionv1.Update, rbacv1.SchemeGroupVersion.WithResource("rolebindings"), "false",
		"not in this house")
	probe := build.RoleBinding(s.own("other"), "probe", "view")
	s.create(ctx, policy, bound, probe)
	Eventually(ctx, func() error {
		return s.Admin().Update(ctx, build.Labelled(probe.DeepCopy(), "a", "b"), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("not in this house")))
	change(ctx, s, other, func(l *v1alpha1.LNamespace) { l.Spec.Users = build.Users(s.own("alice"), s.own("ann")) })
	s.says(ctx, other, func() []metav1.Condition { return other.Status.Conditions }, v1alpha1.ConditionAccessReady, metav1.ConditionFalse,
		"not in this house")
	s.admit(ctx, "ann")
	Eventually(ctx, s.users).Should(ContainElement(s.own("ann")), "others are served")
	s.remove(ctx, bound)
	s.remove(ctx, policy)
	s.says(ctx, other, func() []metav1.Condition { return other.Status.Conditions }, v1alpha1.ConditionAccessReady, metav1.ConditionTrue, "")
}

func refusedNamespace(ctx context.Context, s *scene) {
	tenant(ctx, s)
	lift := s.refuse(ctx, s.own("web"), corev1.SchemeGroupVersion.WithResource("namespaces"), "false", build.Namespace(s.own("web")))
	sub := build.SubNamespace(s.own("payments"), s.own("web"))
	s.create(ctx, sub)
	s.subSays(ctx, "payments", "web", metav1.ConditionFalse, "not in this house")
	s.create(ctx, build.SubNamespace(s.own("payments"), s.own("db")))
	s.bound(ctx, "payments", "db")
	lift()
	change(ctx, s, sub, func(n *v1alpha1.SubNamespace) { n.Spec.Labels = map[string]v1alpha1.LabelValue{"at": "once"} })
	s.exist(ctx, build.Namespace(s.own("web")))
}

func quota(ctx context.Context, s *scene) {
	s.bush(ctx)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.own("n0"), Name: "few"}}
	quota.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("1")} // the one that was planted
	s.create(ctx, quota)
	Eventually(ctx, func() error {
		return s.Admin().Create(ctx, build.Secret(s.own("n0"), "probe", ""), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("exceeded quota: few")))
	s.create(ctx, s.source("s", "1"))
	s.copied(ctx, "n1", "s", "1")
	s.propagationSays(ctx, "n0", metav1.ConditionFalse, "exceeded quota: few")
	s.fewTries(ctx, onPath(http.MethodPost, s.own("n0")+"/secrets"))
	s.remove(ctx, quota)
	s.copied(ctx, "n0", "s", "1")
	s.propagationSays(ctx, "n0", metav1.ConditionTrue, "")
}

func nameTaken(ctx context.Context, s *scene) {
	s.bush(ctx)
	own := build.Secret(s.own("n0"), "s", "theirs")
	s.create(ctx, own)
	s.create(ctx, s.source("s", "1"))
	s.copied(ctx, "n1", "s", "1")
	s.propagationSays(ctx, "n0", metav1.ConditionFalse, "Conflict: ")
	Consistently(ctx, func(g Gomega) {
		now := own.DeepCopy()
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(now), now)).To(Succeed())
		g.Expect(now.ResourceVersion).To(Equal(own.ResourceVersion))
	}).WithTimeout(test.Quiet(soon)).Should(Succeed())
	s.remove(ctx, own)
	s.copied(ctx, "n0", "s", "1")
}
