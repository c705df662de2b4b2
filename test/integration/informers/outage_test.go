package informers_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("an outage of the API server", Ordered, func() {
	var cp *controlplane.ControlPlane
	var there client.WithWatch
	BeforeAll(func(ctx SpecContext) {
		var err error
		cp, err = controlplane.Start(ctx, controlplane.Options{WithoutControllers: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		there, err = client.NewWithWatch(cp.Config(controlplane.Admin), client.Options{Scheme: devcluster.Scheme()})
		Expect(err).NotTo(HaveOccurred())
	})
	// short is the length of an outage that no reader notices.
	const short = 20 * time.Second
	// follow makes a namespace with Secrets s and t, and acquires a lease on its Secrets.
	follow := func(ctx context.Context, namespace string) (*world, *events, *watchset.Lease) {
		GinkgoHelper()
		Expect(there.Create(ctx, build.Namespace(namespace))).To(Succeed())
		for _, name := range []string{"s", "t"} {
			Expect(there.Create(ctx, secret(namespace, name))).To(Succeed())
		}
		o := blind()
		o.DegradedAfter = 30 * time.Second
		w := &world{wire: newWire(), config: cp.Config(controlplane.Admin), ended: make(chan error, 1)}
		w.config.Wrap(w.wrap)
		var err error
		w.Set, err = watchset.New(w.config, o)
		Expect(err).NotTo(HaveOccurred())
		w.run()
		told := &events{}
		w.feed(secrets, told.handler())
		l := w.lease(in(namespace))
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveLen(2))
		told.take()
		return w, told, l
	}
	back := func(ctx context.Context) {
		GinkgoHelper()
		Expect(errors.Join(cp.APIServer.Start(), cp.Ready(ctx))).To(Succeed())
	}
	// change removes t and makes u.
	change := func(ctx context.Context, namespace string) {
		GinkgoHelper()
		gone := &corev1.Secret{}
		gone.Namespace, gone.Name = namespace, "t"
		Expect(there.Delete(ctx, gone, &client.DeleteOptions{GracePeriodSeconds: new(int64(0))})).To(Succeed())
		Expect(there.Create(ctx, secret(namespace, "u"))).To(Succeed())
	}

	It("INF-I27 while the API server is killed, a lease is Synced for 20 s, then Degraded with its objects; when it is back, only the "+
		"differences come as events", func(ctx SpecContext) {
		_, told, l := follow(ctx, "a")
		By("a long one")
		Expect(cp.APIServer.Kill()).To(Succeed())
		Consistently(l.Status).WithTimeout(short).Should(HaveField("State", watchset.Synced))
		becomes(l, watchset.Degraded)
		object, err := l.Get(key("a", "s"))
		Expect(object).NotTo(BeNil())
		Expect(err).To(BeAssignableToTypeOf(&watchset.DegradedError{}))
		_, err = l.Get(key("a", "none"))
		Expect(err).To(BeAssignableToTypeOf(&watchset.DegradedError{}), "absence means nothing")
		back(ctx)
		change(ctx, "a")
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveExactElements("create u", "delete t"))
	})

	It("INF-I29 if the watch's history is gone (410) after an outage, the lease is Synced again; an object deleted meanwhile gives exactly "+
		"one Delete event", func(ctx SpecContext) {
		w, told, l := follow(ctx, "b")
		before := &corev1.SecretList{}
		Expect(there.List(ctx, before, client.InNamespace("b"))).To(Succeed())
		w.setDown(true)
		w.cut()
		change(ctx, "b")
		Expect(cp.CompactEtcd(ctx)).To(Succeed())
		Expect(cp.APIServer.Kill()).To(Succeed()) // its cache knows the history, too
		back(ctx)
		history, err := there.Watch(ctx, &corev1.SecretList{}, client.InNamespace("b"),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: before.ResourceVersion}})
		if err == nil {
			err = apierrors.FromObject((<-history.ResultChan()).Object)
			history.Stop()
		}
		Expect(err).To(MatchError(apierrors.IsResourceExpired, "is a 410"))

		w.setDown(false)
		Eventually(told.seen).Should(ConsistOf("create u", "delete t"))
		becomes(l, watchset.Synced)
		Expect(l.List("b", nil)).To(ConsistOf(HaveField("GetName()", "s"), HaveField("GetName()", "u")))
		Consistently(told.seen).WithTimeout(test.Quiet(5*time.Second)).Should(ConsistOf("create u", "delete t"), "once")
	})
})
