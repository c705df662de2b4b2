package informers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

var _ = Describe("a kind", func() {
	for number, watched := range map[int]bool{84: true, 85: false} {
		how := map[bool]string{true: "by the watch of CRDs", false: "by the back-off"}[watched]
		It("INF-I84 leases of a kind without a version are Synced in the one that is served, and Status names resource and kind; INF-I85 "+
			"without a CRD, or a served version, a kind is NotServed, without a list or watch; then Synced, also when the CRD returns in another "+
			"version: "+how, func(ctx SpecContext) {
			o := blind()
			if watched {
				o = patient()
				o.WatchRBAC = watchset.Off
			}
			w := prepare(number, o)
			crd, gvr := w.crd()
			w.grantAll(ctx, "see", rule(gvr, see))
			if watched {
				w.grantAll(ctx, "crds", rule(crds, see))
			}
			w.run()
			a := w.namespaces(ctx, "a")[0]
			kind, kept := schema.GroupVersionKind{Group: gvr.Group, Kind: "Widget"}, &keeper{}
			w.lease(watchset.Request{Kind: kind, Sink: kept})
			set := watchset.NewNamespaceSet(a)
			leases := []*watchset.Lease{
				w.lease(watchset.Request{Kind: kind}),
				w.lease(watchset.Request{Kind: kind, Form: watchset.Full}),
				w.lease(watchset.Request{Kind: kind, Scope: watchset.Namespaces(set)}),
				w.lease(watchset.Request{Kind: kind, Scope: watchset.Auto(set)}),
			}
			sees := func(want schema.GroupVersionResource, names ...string) {
				GinkgoHelper()
				kept.becomes(watchset.Synced, names...)
				Expect(kept.status().Resource).To(Equal(want))
				Expect(kept.status().Kind).To(Equal(want.GroupVersion().WithKind("Widget")))
				for _, l := range leases {
					becomes(l, watchset.Synced)
					Expect(l.Status().Resource).To(Equal(want))
					Eventually(func() ([]client.Object, error) { return l.List("", nil) }).Should(HaveLen(len(names)))
				}
			}
			misses := func() {
				GinkgoHelper()
				kept.becomes(watchset.NotServed)
				for _, l := range leases {
					becomes(l, watchset.NotServed)
				}
			}
			misses()
			Expect(meta.IsNoMatchError(kept.status().Err)).To(BeTrue())
			Expect(kept.status().Err).To(MatchError("kind " + kind.GroupKind().String() + " is not served"))
			Expect(kept.status().Resource).To(BeZero())
			Expect(w.count("list", gvr.Resource, "") + w.count("watch", gvr.Resource, "")).To(BeZero())

			By("its CRD is made, but serves no version")
			hidden := crd.DeepCopy()
			hidden.Spec.Versions[0].Served = false
			create(ctx, hidden)
			stays(leases[0], watchset.NotServed)
			By("it is served")
			Eventually(func() error {
				if err := admin.Get(ctx, client.ObjectKeyFromObject(crd), hidden); err != nil {
					return err
				}
				hidden.Spec.Versions[0].Served = true
				return admin.Update(ctx, hidden)
			}).Should(Succeed())
			soon(ctx, widget(gvr, a, "one"))
			sees(gvr, "one")

			By("its CRD is deleted")
			undefined(ctx, crd)
			misses()
			By("it is made again, in another version")
			newer := crd.DeepCopy()
			newer.Spec.Versions[0].Name = "v2"
			create(ctx, newer)
			v2 := gvr.GroupResource().WithVersion("v2")
			soon(ctx, widget(v2, a, "two"))
			sees(v2, "two")
		})
	}

	It("INF-I91 when the API server prefers v2, a lease without a version follows, and its Sink gets Synced and Replace alone; one with v1 "+
		"stays", func(ctx SpecContext) {
		o := patient()
		o.WatchRBAC, o.Backoff.Initial = watchset.Off, 2*time.Second
		w := prepare(91, o)
		crd, gvr := w.crd()
		w.grantAll(ctx, "see", rule(gvr, see), rule(crds, see))
		w.run()
		a := w.namespaces(ctx, "a")[0]
		create(ctx, crd)
		soon(ctx, widget(gvr, a, "one"))
		kind, kept := schema.GroupVersionKind{Group: gvr.Group, Kind: "Widget"}, &keeper{}
		w.lease(watchset.Request{Kind: kind, Sink: kept})
		whole := w.lease(watchset.Request{Kind: kind, Form: watchset.Full})
		fixed := w.lease(watchset.Request{Kind: gvr.GroupVersion().WithKind("Widget")})
		kept.becomes(watchset.Synced, "one")
		becomes(whole, watchset.Synced)
		becomes(fixed, watchset.Synced)

		By("the CRD gets v2 beside v1")
		Eventually(func() error {
			both := crd.DeepCopy()
			if err := admin.Get(ctx, client.ObjectKeyFromObject(crd), both); err != nil {
				return err
			}
			second := both.Spec.Versions[0].DeepCopy()
			second.Name, second.Storage = "v2", false
			both.Spec.Versions = append(both.Spec.Versions, *second)
			return admin.Update(ctx, both)
		}).Should(Succeed())
		v2 := gvr.GroupResource().WithVersion("v2")
		Eventually(kept.status).Should(HaveField("Resource", v2), "the API server prefers v2")
		Eventually(whole.Status).Should(HaveField("Resource", v2))
		soon(ctx, widget(v2, a, "two"))
		kept.becomes(watchset.Synced, "one", "two")
		Eventually(func() ([]client.Object, error) { return whole.List("", nil) }).Should(HaveEach(
			HaveField("GetObjectKind().GroupVersionKind().Version", "v2")), "objects come in the version that is followed")
		Expect(fixed.Status().Resource).To(Equal(gvr), "a version that is named stays")
	})
})
