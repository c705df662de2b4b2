package fault_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// story is what people do. Each step waits for what it needs of the steps before it, whatever happens to the operator.
type story struct {
	id, title string
	// given makes what exists before the story, without a fault.
	given func(context.Context, *scene)
	play  func(context.Context, *scene)
	// goes are the namespaces that the story deletes.
	goes []string
	// sparse is n if only each n-th write meets kill-after. With everyFault, each write does.
	sparse int
	// order, unless nil, returns what came too early in the story's own order (FLT-I5).
	order func(*scene, []event) []string
}

func (s story) misordered(scene *scene, events []event) []string {
	if s.order == nil {
		return nil
	}
	return s.order(scene, events)
}

// scene is a story that runs under names of its own.
type scene struct {
	*stage
	key    string
	rights *rights
	// regrants says that the configuration changes what a tenant that is Ready gets.
	regrants bool
	// withoutClaims plants no PersistentVolumeClaim: it would delay the deletion of its namespace.
	withoutClaims bool

	mu    sync.Mutex // guards asked
	asked []string   // places of what people deleted
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
	s.mu.Lock()
	s.asked = append(s.asked, object.GetNamespace()+"/"+object.GetName())
	s.mu.Unlock()
	Eventually(ctx, func() error { return client.IgnoreNotFound(s.Admin().Delete(ctx, object, options...)) }).Should(Succeed())
}

// wasAsked reports whether the story has deleted the object at a place.
func (s *scene) wasAsked(place string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.asked, func(asked string) bool { return strings.HasSuffix(place, " "+asked) })
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
	return s.key + ": the end of the operator's log:\n" + s.Operator.Process().LogTail(6)
}

// ready waits until the tenant is Ready.
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

// tenant makes the tenant, and plants a user's own objects in its root.
func tenant(ctx context.Context, s *scene) {
	GinkgoHelper()
	s.create(ctx, s.payments().Cascading().Object())
	s.ready(ctx)
	s.plant(ctx, s.own("payments"))
}

// planted is the name of a user's own objects, which the operator must leave alone.
const planted = "own"

// plant makes a ConfigMap, a Secret, a claim and a custom resource of a user's own in a namespace.
func (s *scene) plant(ctx context.Context, namespace string) {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: planted}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"colour": "red"}}}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	widget.SetNamespace(namespace)
	widget.SetName(planted)
	s.create(ctx, build.ConfigMap(namespace, planted, "1"), build.Secret(namespace, planted, "1"), widget)
	if !s.withoutClaims {
		s.create(ctx, claim)
	}
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
		s.plant(ctx, s.bound(ctx, "payments", fmt.Sprint("n", i)).Name)
	}
}

// familyIsGone waits for the end of what family has made.
func familyIsGone(ctx context.Context, s *scene) {
	GinkgoHelper()
	s.gone(ctx, s.payments().Object(), build.Namespace(s.own("payments")))
	for i := range 3 {
		s.gone(ctx, build.Namespace(s.own(fmt.Sprint("n", i))))
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

// tenantUID is the UID of the scene's LNamespace.
func (s *scene) tenantUID(ctx context.Context) types.UID {
	GinkgoHelper()
	lns := s.payments().Object()
	s.exist(ctx, lns)
	return lns.UID
}
