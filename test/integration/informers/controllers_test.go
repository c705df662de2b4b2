package informers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

var _ = Describe("a controller", func() {
	It("INF-I45 Session.Reader().Get in a forbidden namespace is IsForbidden after at most one list and watch; the next call makes no "+
		"request", func(ctx SpecContext) {
		w := begin(45, patient())
		a := w.namespaces(ctx, "denied")[0]
		reader := w.Session(owner("x")).Reader()
		err := reader.Get(ctx, key(a, "s"), &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
		Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(w.count("watch", secrets.Resource, a)).To(Equal(1))
		before := w.count("", secrets.Resource, a)
		Expect(before).To(BeNumerically("<=", 2))
		err = reader.Get(ctx, key(a, "s"), &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
		Expect(err).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Expect(w.count("", secrets.Resource, a)).To(Equal(before))
	})

	It("INF-I46 Reader.Get of a Deployment fills the Go type and PartialObjectMetadata; the typed one is a deep copy, whose change does not "+
		"change the store", func(ctx SpecContext) {
		o := blind()
		o.Scheme = devcluster.Scheme()
		w := begin(46, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(deployments, see))
		create(ctx, build.Labelled(build.Deployment(a, "d", 2), "x", "1"), build.Deployment(a, "e", 1))
		session := w.Session(owner("x"))
		reader := session.Reader()

		typed, again := &appsv1.Deployment{}, &appsv1.Deployment{}
		Expect(reader.Get(ctx, key(a, "d"), typed)).To(Succeed())
		Expect(typed.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		Expect(typed.ManagedFields).To(BeEmpty())
		typed.Labels["x"], *typed.Spec.Replicas = "changed", 7
		Expect(reader.Get(ctx, key(a, "d"), again)).To(Succeed())
		Expect(again.Labels).To(HaveKeyWithValue("x", "1"))
		Expect(again.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))

		partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
		Expect(reader.Get(ctx, key(a, "d"), partial)).To(Succeed())
		Expect(partial.Labels).To(HaveKeyWithValue("x", "1"))
		Expect(partial.Kind).To(Equal("Deployment"))
		loose := &unstructured.Unstructured{}
		loose.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		Expect(reader.Get(ctx, key(a, "d"), loose)).To(Succeed())
		Expect(loose.Object["spec"]).To(HaveKeyWithValue("replicas", BeEquivalentTo(2)))
		Expect(reader.Get(ctx, key(a, "none"), partial)).To(MatchError(apierrors.IsNotFound, "is a 404"))

		By("lists")
		list := &appsv1.DeploymentList{}
		Expect(reader.List(ctx, list, client.InNamespace(a))).To(Succeed())
		Expect(list.Items).To(HaveLen(2))
		Expect(reader.List(ctx, list, client.InNamespace(a), client.MatchingLabels{"x": "1"})).To(Succeed())
		Expect(list.Items).To(ConsistOf(HaveField("Name", "d")))
		metadata := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}}
		Expect(reader.List(ctx, metadata, client.InNamespace(a), client.MatchingFields{"metadata.name": "e"})).To(Succeed())
		Expect(metadata.Items).To(ConsistOf(HaveField("Name", "e")))
		Expect(reader.List(ctx, list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.replicas", "1")})).
			To(MatchError(watchset.ErrInvalid))
		Expect(reader.List(ctx, list)).To(MatchError(apierrors.IsForbidden, "is a 403"))

		By("a namespace for many reads")
		many := session.Reader(watchset.GetByNamespace(), watchset.SyncTimeout(time.Minute))
		before := w.count("watch", deployments.Resource, a)
		Expect(many.Get(ctx, key(a, "d"), typed)).To(Succeed())
		Expect(many.Get(ctx, key(a, "e"), typed)).To(Succeed())
		Expect(w.count("watch", deployments.Resource, a)).To(Equal(before), "List leased it already")
	})

	It("INF-I47 a manager whose controller has Source and States starts without any right, and other controllers work", func(ctx SpecContext) {
		o := patient()
		o.Scheme = devcluster.Scheme()
		w := prepare(47, o)
		a := w.namespaces(ctx, "a")[0]
		w.grantAll(ctx, "configmaps", rule(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, append(see, "get")))
		w.observes(ctx)
		mgr, err := ctrl.NewManager(w.config, ctrl.Options{Scheme: devcluster.Scheme(), Metrics: server.Options{BindAddress: "0"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(mgr.Add(w.Set)).To(Succeed())
		Expect(w.NeedLeaderElection()).To(BeFalse())

		found := make(chan error, 100)
		c, err := controller.New("secrets", mgr, controller.Options{SkipNameValidation: new(true),
			Reconciler: reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				session := w.Session(watchset.Owner{Controller: "secrets", NamespacedName: r.NamespacedName})
				found <- session.Reader().Get(ctx, key(a, "s"), &corev1.Secret{})
				session.Commit()
				return reconcile.Result{}, nil
			})})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Watch(w.Source("secrets", secrets, nil))).To(Succeed())
		Expect(c.Watch(w.States("secrets"))).To(Succeed())
		others := make(chan struct{}, 100)
		Expect(ctrl.NewControllerManagedBy(mgr).Named("others").For(&corev1.ConfigMap{}).
			WithOptions(controller.Options{SkipNameValidation: new(true)}).
			Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				others <- struct{}{}
				return reconcile.Result{}, nil
			}))).To(Succeed())
		running, stop := context.WithCancel(context.Background())
		go func() { w.ended <- mgr.Start(running) }()
		DeferCleanup(func() {
			stop()
			Eventually(w.ended).Should(Receive(BeNil()))
		})
		Eventually(others).Should(Receive())
		Expect(w.Informers()).To(BeEmpty())

		By("a first look, as a For() would bring it")
		session := w.Session(watchset.Owner{Controller: "secrets", NamespacedName: key(a, "cr")})
		Expect(session.Reader().Get(ctx, key(a, "s"), &corev1.Secret{})).To(MatchError(apierrors.IsForbidden, "is a 403"))
		Eventually(found).Should(Receive(MatchError(apierrors.IsForbidden, "is a 403")), "States enqueues")
		w.grant(ctx, a, "see", rule(secrets, see))
		Eventually(found).Should(Receive(MatchError(apierrors.IsNotFound, "is a 404")), "States enqueues")
		create(ctx, secret(a, "s"))
		Eventually(found).Should(Receive(BeNil()), "Source enqueues")
	})

	It("INF-I48 a change of a leased object enqueues each owner once, and an owner that has released it no more", func(ctx SpecContext) {
		w := begin(48, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		s := secret(a, "s")
		create(ctx, s, secret(a, "other"))
		q := w.feed(secrets, nil)
		one := watchset.Request{Resource: secrets, Scope: watchset.Object(a, "s")}
		x, err := w.Acquire(owner("x"), one)
		Expect(err).NotTo(HaveOccurred())
		y, err := w.Acquire(owner("y"), one)
		Expect(err).NotTo(HaveOccurred())
		becomes(y, watchset.Synced)
		Eventually(q.Len).Should(Equal(2))
		enqueued(q)
		change := func(value string) {
			GinkgoHelper()
			s.Data["key"] = []byte(value)
			Expect(admin.Update(ctx, s)).To(Succeed())
		}
		change("2")
		Eventually(q.Len).Should(Equal(2))
		Expect(enqueued(q)).To(HaveExactElements("x", "y"))
		x.Release()
		change("3")
		Eventually(q.Len).Should(Equal(1))
		Expect(enqueued(q)).To(HaveExactElements("y"))
		Consistently(q.Len).WithTimeout(test.Quiet(5 * time.Second)).Should(BeZero())
	})
})
