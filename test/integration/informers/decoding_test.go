package informers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// sized is a Go type of Widgets.
type sized struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (s *sized) DeepCopyObject() runtime.Object {
	c := *s
	s.DeepCopyInto(&c.ObjectMeta)
	return &c
}

var _ = Describe("an object", func() {
	It("INF-I83 while an object can't be decoded into the Go type, the lease is Degraded with an error that names it; it shows what it saw "+
		"last; afterwards it is Synced", func(ctx SpecContext) {
		o := blind()
		o.DegradedAfter, o.Scheme = time.Second, runtime.NewScheme()
		w := prepare(51, o)
		crd, gvr := w.crd()
		o.Scheme.AddKnownTypeWithName(gvr.GroupVersion().WithKind("Widget"), &sized{})
		w.run()
		a := w.namespaces(ctx, "a")[0]
		w.grantAll(ctx, "see", rule(gvr, see))
		create(ctx, crd)
		sizedWidget := func(name string, size any) *unstructured.Unstructured {
			u := widget(gvr, a, name)
			u.Object["spec"] = map[string]any{"size": size}
			return u
		}
		soon(ctx, sizedWidget("bad", "huge"))
		create(ctx, sizedWidget("good", int64(1)))
		l := w.lease(watchset.Request{Resource: gvr, Form: watchset.Full})
		becomes(l, watchset.Degraded)
		Eventually(func() string { return text(l.Status().Err) }).Should(ContainSubstring("decoding " + a + "/bad"))
		sizes := func() map[string]int64 {
			found := map[string]int64{}
			all, _ := l.List("", nil)
			for _, object := range all {
				found[object.GetName()] = object.(*sized).Spec.Size
			}
			return found
		}
		set := func(name string, size any) {
			GinkgoHelper()
			u := widget(gvr, a, name)
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(u), u)).To(Succeed())
			u.Object["spec"] = map[string]any{"size": size}
			Expect(admin.Update(ctx, u)).To(Succeed())
		}
		set("good", int64(2))
		Eventually(sizes).Should(Equal(map[string]int64{"good": 2}))
		set("bad", int64(3))
		becomes(l, watchset.Synced)
		Expect(sizes()).To(Equal(map[string]int64{"good": 2, "bad": 3}))
		set("bad", "huge again")
		becomes(l, watchset.Degraded)
		Expect(sizes()).To(HaveKeyWithValue("bad", int64(3)), "as it was seen last")
		remove(ctx, widget(gvr, a, "bad"))
		becomes(l, watchset.Synced)
		Expect(sizes()).To(Equal(map[string]int64{"good": 2}))
	})
})
