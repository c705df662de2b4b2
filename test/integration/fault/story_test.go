package fault_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// story is what people do. Each step waits for what it needs of the steps before it, whatever happens to the operator.
type story struct {
	id, title string
	// given is what was there before, without a fault.
	given func(context.Context, *scene)
	steps func(context.Context, *scene)
	// sparse counts the writes of which one meets a fault where not every one does.
	sparse int
}

// scene is a story that runs under names of its own.
type scene struct {
	*stage
	key string
}

func (s *scene) own(name string) string { return s.key + "-" + name }

func (s *scene) payments() *build.LNamespace {
	return build.Tenant(s.own("payments")).Users(s.own("alice"), s.own("anna")).Managers(s.own("mia")).
		Sudoers(s.own("bob"), s.own("sue")).SudoerSubjects(build.Group(s.own("oncall")))
}

func (s *scene) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(ctx, func() error { return client.IgnoreAlreadyExists(s.Admin().Create(ctx, object)) }).Should(Succeed())
	}
}

func (s *scene) remove(ctx context.Context, object client.Object, options ...client.DeleteOption) {
	GinkgoHelper()
	Eventually(ctx, func() error { return client.IgnoreNotFound(s.Admin().Delete(ctx, object, options...)) }).Should(Succeed())
}

// change applies by to the stored object, as often as it takes.
func change[T client.Object](ctx context.Context, s *scene, object T, by func(T)) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		if err := s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		by(object)
		return s.Admin().Update(ctx, object)
	}).Should(Succeed())
}

func (s *scene) exist(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(ctx, func() error { return s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object) }).Should(Succeed(), s.explain)
	}
}

func (s *scene) gone(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(ctx, func() error { return s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object) }).
			Should(MatchError(apierrors.IsNotFound, "IsNotFound"), s.explain)
	}
}

func (s *scene) explain() string {
	return "the end of the operator's log:\n" + s.Operator.Process().LogTail(40)
}

// ready waits until the tenant is.
func (s *scene) ready(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		lns := &v1alpha1.LNamespace{}
		g.Expect(s.Admin().Get(ctx, client.ObjectKey{Name: s.own("payments")}, lns)).To(Succeed())
		c := v1alpha1.FindCondition(lns.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.ObservedGeneration).To(Equal(lns.Generation))
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue), c.Message)
	}).Should(Succeed(), s.explain)
}

// tenant makes the tenant with something of a user's own in it.
func tenant(ctx context.Context, s *scene) {
	GinkgoHelper()
	s.create(ctx, s.payments().Cascading().Object())
	s.ready(ctx)
	s.create(ctx, build.ConfigMap(s.own("payments"), "own", "1"))
}

// bound waits until a SubNamespace is Ready, and returns its Namespace.
func (s *scene) bound(ctx context.Context, parent, name string) *corev1.Namespace {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		sub := build.SubNamespace(s.own(parent), s.own(name))
		g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(sub), sub)).To(Succeed())
		c := v1alpha1.FindCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(metav1.ConditionTrue), c.Message)
	}).Should(Succeed(), s.explain)
	namespace := build.Namespace(s.own(name))
	s.exist(ctx, namespace)
	return namespace
}

// family is a tenant with three sub-namespaces.
func family(ctx context.Context, s *scene) {
	GinkgoHelper()
	tenant(ctx, s)
	for i := range 3 {
		s.create(ctx, build.SubNamespace(s.own("payments"), s.own(fmt.Sprint("n", i))))
	}
	for i := range 3 {
		s.bound(ctx, "payments", fmt.Sprint("n", i))
	}
}

// everywhere waits until check holds for the copy of each child.
func everywhere[T client.Object](ctx context.Context, s *scene, copied func(namespace string) T, check func(Gomega, T)) {
	GinkgoHelper()
	for i := range 3 {
		Eventually(ctx, func(g Gomega) {
			object := copied(s.own(fmt.Sprint("n", i)))
			g.Expect(s.Admin().Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			check(g, object)
		}).Should(Succeed(), s.explain)
	}
}

// stories are those of the specification's page faults, FLT-S1 and so on, with fewer namespaces.
var stories = []story{
	{id: "S1", title: "a tenant comes", given: func(context.Context, *scene) {}, steps: tenant, sparse: 4},
	{
		id: "S2", title: "a sudoer is removed and a manager comes in one edit", given: tenant, sparse: 2,
		steps: func(ctx context.Context, s *scene) {
			change(ctx, s, s.payments().Object(), func(lns *v1alpha1.LNamespace) {
				lns.Spec.Sudoers = build.Users(s.own("sue"))
				lns.Spec.Managers = build.Users(s.own("mia"), s.own("max"))
			})
			s.gone(ctx, build.ClusterRole("warren:self:"+s.own("bob")))
			s.ready(ctx)
		},
	},
	{
		id: "S3", title: "a tenant goes with what is below it", given: family, sparse: 9,
		steps: func(ctx context.Context, s *scene) {
			s.remove(ctx, s.payments().Object())
			s.gone(ctx, s.payments().Object(), build.Namespace(s.own("payments")), build.Namespace(s.own("n0")))
		},
	},
	{
		id: "S3o", title: "a tenant goes and leaves what is below it", given: family, sparse: 9,
		steps: func(ctx context.Context, s *scene) {
			s.remove(ctx, s.payments().Object(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
			s.gone(ctx, s.payments().Object())
		},
	},
	{
		id: "S4", title: "three levels come at once, and the middle one goes with the last", given: tenant, sparse: 6,
		steps: func(ctx context.Context, s *scene) {
			s.create(ctx, build.SubNamespace(s.own("payments"), s.own("mid")))
			s.exist(ctx, build.Namespace(s.own("mid")))
			s.create(ctx, build.SubNamespace(s.own("mid"), s.own("low")))
			s.bound(ctx, "mid", "low")
			s.create(ctx, build.ConfigMap(s.own("payments"), "stays", "1"))
			s.remove(ctx, build.SubNamespace(s.own("payments"), s.own("mid")))
			s.gone(ctx, build.Namespace(s.own("low")), build.Namespace(s.own("mid")), build.SubNamespace(s.own("payments"), s.own("mid")))
		},
	},
	{id: "S6", title: "a source comes, changes, and goes; a binding changes its role", given: family, steps: sources, sparse: 5},
}

func sources(ctx context.Context, s *scene) {
	GinkgoHelper()
	root := s.own("payments")
	secret, binding := build.Source(build.Secret(root, "s", "1"), v1alpha1.ModeUpdate),
		build.Source(build.RoleBinding(root, "b", "view", build.RBACUser(s.own("eve"))), v1alpha1.ModeUpdate)
	s.create(ctx, secret, binding)
	ofSecret := func(namespace string) *corev1.Secret { return build.Secret(namespace, "s", "") }
	has := func(value string) func(Gomega, *corev1.Secret) {
		return func(g Gomega, c *corev1.Secret) { g.Expect(string(c.Data["key"])).To(Equal(value)) }
	}
	everywhere(ctx, s, ofSecret, has("1"))
	change(ctx, s, secret, func(s *corev1.Secret) { s.Data["key"] = []byte("2") })
	everywhere(ctx, s, ofSecret, has("2"))
	s.remove(ctx, binding)
	for i := range 3 {
		s.gone(ctx, build.RoleBinding(s.own(fmt.Sprint("n", i)), "b", "view"))
	}
	s.create(ctx, build.Source(build.RoleBinding(root, "b", "edit", build.RBACUser(s.own("eve"))), v1alpha1.ModeUpdate))
	change(ctx, s, secret, func(s *corev1.Secret) { delete(s.Labels, v1alpha1.LabelPropagate) })
	for i := range 3 {
		s.gone(ctx, build.Secret(s.own(fmt.Sprint("n", i)), "s", ""))
	}
}
