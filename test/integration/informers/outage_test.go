package informers_test

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/devcluster"
	"github.com/warren-tenancy/warren/internal/devcluster/controlplane"
	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

var _ = Describe("an outage of the API server", func() {
	It("INF-I27 is not noticed while it is short, and shown when it is long", func(ctx SpecContext) {
		cp, err := controlplane.Start(ctx, controlplane.Options{WithoutControllers: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(cp.Stop)
		there, err := client.New(cp.Config(controlplane.Admin), client.Options{Scheme: devcluster.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect(there.Create(ctx, build.Namespace("a"))).To(Succeed())
		for _, name := range []string{"s", "t"} {
			Expect(there.Create(ctx, secret("a", name))).To(Succeed())
		}
		o := blind()
		short := test.Quiet(20 * time.Second)
		o.DegradedAfter = short * 3 / 2
		w := &world{wire: newWire(), config: cp.Config(controlplane.Admin), ended: make(chan error, 1)}
		w.config.Wrap(w.wrap)
		w.Set, err = watchset.New(w.config, o)
		Expect(err).NotTo(HaveOccurred())
		w.run()
		told := &events{}
		w.feed(secrets, told.handler())
		l := w.lease(in("a"))
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveLen(2))
		told.take()
		back := func() {
			GinkgoHelper()
			Expect(errors.Join(cp.APIServer.Start(), cp.Ready(ctx))).To(Succeed())
		}

		By("a long one")
		Expect(cp.APIServer.Kill()).To(Succeed())
		Consistently(l.Status).WithTimeout(short).Should(HaveField("State", watchset.Synced))
		becomes(l, watchset.Degraded)
		object, err := l.Get(key("a", "s"))
		Expect(object).NotTo(BeNil())
		Expect(err).To(BeAssignableToTypeOf(&watchset.DegradedError{}))
		_, err = l.Get(key("a", "none"))
		Expect(err).To(BeAssignableToTypeOf(&watchset.DegradedError{}), "absence means nothing")
		back()
		gone := &corev1.Secret{}
		gone.Namespace, gone.Name = "a", "t"
		Expect(there.Delete(ctx, gone, &client.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})).To(Succeed())
		Expect(there.Create(ctx, secret("a", "u"))).To(Succeed())
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveExactElements("create u", "delete t"))
	})
})
