package informers_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/warren-tenancy/warren/pkg/watchset"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// crd defines widgets in a group of the case.
func (w *world) crd() (*apiextensionsv1.CustomResourceDefinition, schema.GroupVersionResource) {
	group := w.name + ".example.com"
	return build.CustomResource(group, "Widget", "widgets"), schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
}

func widget(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvr.GroupVersion().WithKind("Widget"))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// soon makes an object as soon as its kind is served.
func soon(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(func() error { return admin.Create(ctx, object.DeepCopyObject().(client.Object)) }).Should(Succeed())
}

func undefined(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	remove(ctx, crd)
	Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()) }).
		Should(MatchError(apierrors.IsNotFound, "is a 404"))
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

var _ = Describe("a resource", func() {
	for number, watched := range map[int]bool{21: true, 22: false} {
		how := map[bool]string{true: "by the watch of CRDs", false: "by the back-off"}[watched]
		It("INF-I21 before the CRD exists, a lease is NotServed and not Forbidden, with IsNoMatchError; INF-I22 when the right is granted and "+
			"the CRD created, the lease is Synced by the watch of CRDs, or else at the next back-off: "+how, func(ctx SpecContext) {
			o := blind()
			if watched {
				o = patient()
				o.WatchRBAC = watchset.Off
			}
			w := prepare(number, o)
			if watched {
				w.grantAll(ctx, "crds", rule(crds, see))
			}
			w.run()
			crd, gvr := w.crd()
			l := w.lease(watchset.Request{Resource: gvr})
			becomes(l, watchset.NotServed)
			Expect(meta.IsNoMatchError(l.Status().Err)).To(BeTrue())
			_, err := l.List("", nil)
			Expect(err).To(MatchError(ContainSubstring("widgets.%s are not served", gvr.Group)))
			stays(l, watchset.NotServed)
			By("it is served")
			w.grantAll(ctx, "widgets", rule(gvr, see))
			create(ctx, crd)
			becomes(l, watchset.Synced)
		})
	}

	It("INF-I23 when the CRD of 3 objects is deleted, there are Delete events, then NotServed, few requests, and other resources are "+
		"untouched; INF-I24 when the CRD is created again, the lease is Synced with the new objects alone, and later events arrive; INF-I25 "+
		"when the CRD returns cluster-scoped, scope Cluster is Synced, scope Namespace says cluster-scoped; without its version, the lease's "+
		"error names the version", func(ctx SpecContext) {
		o := patient()
		o.WatchRBAC = watchset.Off
		w := prepare(23, o)
		crd, gvr := w.crd()
		w.grantAll(ctx, "see", rule(crds, see), rule(gvr, see), rule(secrets, see))
		w.run()
		a := w.namespaces(ctx, "a")[0]
		create(ctx, crd.DeepCopy())
		for _, name := range []string{"one", "two", "three"} {
			soon(ctx, widget(gvr, a, name))
		}
		told := w.listen(gvr)
		l := w.lease(watchset.Request{Resource: gvr})
		narrow := w.lease(watchset.Request{Resource: gvr, Scope: watchset.Namespace(a)})
		other := w.lease(in(a))
		becomes(l, watchset.Synced)
		becomes(narrow, watchset.Synced)
		becomes(other, watchset.Synced)
		Eventually(told.seen).Should(HaveLen(6))
		told.take()

		By("INF-I23: its CRD is deleted")
		undefined(ctx, crd)
		becomes(l, watchset.NotServed)
		becomes(narrow, watchset.NotServed)
		Eventually(told.seen).Should(HaveExactElements("delete one", "delete one", "delete three", "delete three", "delete two", "delete two"))
		before := w.count("", "", "")
		stays(l, watchset.NotServed)
		Expect(w.count("", "", "")-before).To(BeNumerically("<=", 8), "reviews and retries are rare")
		Expect(w.count("watch", secrets.Resource, "")).To(Equal(1), "others go on")
		told.take()

		By("INF-I24: it is made again")
		create(ctx, crd.DeepCopy())
		soon(ctx, widget(gvr, a, "new"))
		becomes(l, watchset.Synced)
		Eventually(func() ([]client.Object, error) { return l.List("", nil) }).Should(ConsistOf(HaveField("GetName()", "new")))
		soon(ctx, widget(gvr, a, "later"))
		Eventually(told.seen).Should(ContainElements("create new", "create later"))
		becomes(narrow, watchset.Synced)

		By("INF-I25: it is made again for the whole cluster, and then in another version")
		undefined(ctx, crd)
		becomes(l, watchset.NotServed)
		becomes(narrow, watchset.NotServed)
		global := crd.DeepCopy()
		global.Spec.Scope = apiextensionsv1.ClusterScoped
		create(ctx, global)
		becomes(l, watchset.Synced)
		Eventually(func() string { return text(narrow.Status().Err) }).Should(ContainSubstring("cluster-scoped"))
		undefined(ctx, crd)
		becomes(l, watchset.NotServed)
		newer := crd.DeepCopy()
		newer.Spec.Versions[0].Name = "v2"
		create(ctx, newer)
		Consistently(l.Status).WithTimeout(test.Quiet(5 * time.Second)).Should(HaveField("Err", MatchError(ContainSubstring("v1"))))
	})

	It("INF-I28 while the token is invalid, the lease is Degraded, Err names Unauthorized, and objects can be read; then it "+
		"is Synced", func(ctx SpecContext) {
		o := blind()
		o.DegradedAfter = time.Second
		w := begin(28, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		create(ctx, secret(a, "s"))
		l := w.lease(in(a))
		becomes(l, watchset.Synced)
		w.setBroken(true)
		w.cut()
		becomes(l, watchset.Degraded)
		Eventually(func() string { return text(l.Status().Err) }).Should(ContainSubstring("Unauthorized"))
		object, err := l.Get(key(a, "s"))
		Expect(object).NotTo(BeNil())
		Expect(err).To(BeAssignableToTypeOf(&watchset.DegradedError{}))
		w.setBroken(false)
		becomes(l, watchset.Synced)
	})

	It("INF-I26 while the CRD's conversion webhook fails, the lease is Degraded after DegradedAfter, not Forbidden; then it is Synced; "+
		"INF-I87 while the conversion webhook fails, a Sink gets no Replace, but Degraded with the API server's message; then Replace and "+
		"Synced", func(ctx SpecContext) {
		o := blind()
		o.DegradedAfter = 5 * time.Second // the server ends a stream after three
		w := begin(26, o)
		a := w.namespaces(ctx, "a")[0]
		crd, gvr := w.crd()
		older := crd.Spec.Versions[0].DeepCopy()
		older.Name, older.Storage = "v1alpha1", false
		crd.Spec.Versions = append(crd.Spec.Versions, *older)
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
			},
		}
		w.grantAll(ctx, "see", rule(gvr, see))
		create(ctx, crd)
		soon(ctx, widget(gvr, a, "one"))
		l, kept := w.lease(watchset.Request{Resource: gvr.GroupResource().WithVersion("v1alpha1")}), &keeper{}
		w.lease(watchset.Request{Kind: gvr.GroupVersion().WithKind("Widget").GroupKind().WithVersion("v1alpha1"), Sink: kept})
		becomes(l, watchset.Degraded)
		stays(l, watchset.Degraded)
		kept.becomes(watchset.Degraded)
		for _, status := range []func() watchset.Status{l.Status, kept.status} {
			Eventually(status).Should(HaveField("Err", MatchError(ContainSubstring("conversion webhook for"))), "the server says so to a list")
		}
		Expect(kept.timesReplaced()).To(BeZero())
		Eventually(func() error {
			if err := admin.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			return admin.Update(ctx, crd)
		}).Should(Succeed())
		becomes(l, watchset.Synced)
		Expect(l.List("", nil)).To(HaveLen(1))
		kept.becomes(watchset.Synced, "one")
	})

	// Like INF-I27, but the connection is cut, and the API server goes on.
	It("is shown as it was last known while nothing answers", func(ctx SpecContext) {
		o := blind()
		o.DegradedAfter = 5 * time.Second
		w := begin(27, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		create(ctx, secret(a, "s"), secret(a, "t"))
		told := w.listen(secrets)
		l := w.lease(in(a))
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveLen(2))
		told.take()
		By("for a short time")
		w.setDown(true)
		w.cut()
		Consistently(l.Status).WithTimeout(time.Second).Should(HaveField("State", watchset.Synced))
		w.setDown(false)
		Eventually(w.open("", a)).Should(Equal(1))
		By("for a longer time")
		w.setDown(true)
		w.cut()
		becomes(l, watchset.Degraded)
		object, err := l.Get(key(a, "s"))
		Expect(object).NotTo(BeNil())
		Expect(err).To(BeAssignableToTypeOf(&watchset.DegradedError{}))
		remove(ctx, secret(a, "t"))
		create(ctx, secret(a, "u"))
		w.setDown(false)
		becomes(l, watchset.Synced)
		Eventually(told.seen).Should(HaveExactElements("create u", "delete t"))
	})

	It("INF-I55 a slow handler of one resource delays no event of others; twenty changes of an object are one "+
		"queue entry", func(ctx SpecContext) {
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		w := begin(55, blind())
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see), rule(configMaps, see))
		busy, free := make(chan string, 1), make(chan struct{})
		var calls atomic.Int32
		block := func(object client.Object) {
			calls.Add(1)
			select {
			case busy <- object.GetName():
			default:
			}
			<-free
		}
		w.feed(secrets, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { block(e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) { block(e.ObjectNew) },
		})
		told := w.listen(configMaps)
		l := w.lease(in(a))
		becomes(w.lease(watchset.Request{Resource: configMaps, Scope: watchset.Namespace(a)}), watchset.Synced)
		becomes(l, watchset.Synced)
		slow := secret(a, "slow")
		create(ctx, slow)
		Eventually(busy).Should(Receive(Equal("slow")))
		for i := range 20 {
			slow.Data["key"] = []byte(fmt.Sprint(i))
			Expect(admin.Update(ctx, slow)).To(Succeed())
		}
		create(ctx, build.ConfigMap(a, "quick", ""))
		Eventually(told.seen).Should(ContainElement("create quick"))
		create(ctx, secret(a, "last")) // whoever has seen it has queued all changes before it
		Eventually(func() error {
			_, err := l.Get(key(a, "last"))
			return err
		}).Should(Succeed())
		close(free)
		Eventually(calls.Load).Should(BeEquivalentTo(3), "a creation, twenty changes that are one, and the last Secret")
		Consistently(calls.Load).WithTimeout(test.Quiet(5 * time.Second)).Should(BeEquivalentTo(3))
	})

	// The case has a thousand parts with ten objects each.
	It("INF-I39 1,000 leases with 10 objects each become Synced, with never more than StartConcurrency lists at once; an idle part takes at "+
		"most 64 KiB", func(ctx SpecContext) {
		const parts = 1000
		o := blind()
		o.StartConcurrency = 4
		w := begin(39, o)
		a := w.namespaces(ctx, "a")[0]
		w.grant(ctx, a, "see", rule(secrets, see))
		for i := range 10 {
			create(ctx, secret(a, fmt.Sprint("s", i)))
		}
		before := memory()
		var leases []*watchset.Lease
		for i := range parts {
			none, err := labels.NewRequirement("part", selection.NotEquals, []string{fmt.Sprint(i)})
			Expect(err).NotTo(HaveOccurred())
			l, err := w.Acquire(owner(fmt.Sprint(i)), watchset.Request{
				Resource: secrets, Scope: watchset.Namespace(a), LabelSelector: labels.NewSelector().Add(*none),
			})
			Expect(err).NotTo(HaveOccurred())
			leases = append(leases, l)
		}
		for _, l := range leases {
			becomes(l, watchset.Synced)
			Expect(l.Status().Objects).To(Equal(10))
		}
		Expect(w.mostLists()).To(BeNumerically("<=", 4))
		Expect(w.open("", "")()).To(Equal(parts))
		each := (memory() - before) / parts
		AddReportEntry("bytes per part", each)
		if os.Getenv("WARREN_RACE") != "1" { // the race detector needs memory of its own
			Expect(each).To(BeNumerically("<=", 64<<10), "bytes per part")
		}
	})
})

// memory is the memory in use, in bytes, after a collection.
func memory() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
