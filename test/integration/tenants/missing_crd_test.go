package tenants_test

import (
	"context"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

// withoutDefinitions deletes CRDs of ours, of which no object is left, while the operator is away, and starts it.
func withoutDefinitions(ctx context.Context, w *devcluster.World, resources ...string) {
	GinkgoHelper()
	_, err := w.Operator.Stop()
	Expect(err).NotTo(HaveOccurred())
	for _, resource := range resources {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource + "." + v1alpha1.Domain}}
		Expect(w.Admin().Delete(ctx, crd)).To(Succeed())
		Eventually(func() error { return w.Admin().Get(ctx, client.ObjectKeyFromObject(crd), crd) }).WithContext(ctx).Should(beNotFound())
	}
	Expect(w.Operator.Start(ctx)).To(Succeed(), "the operator runs without %s", strings.Join(resources, ", "))
	for _, resource := range resources {
		sentence := "CRD " + resource + "." + v1alpha1.Domain + " is not installed"
		Eventually(missing).WithContext(ctx).WithArguments(w, resource).Should(Equal(1.0))
		Eventually(w.Operator.Log).WithContext(ctx).Should(ContainSubstring(sentence))
		Eventually(readiness).WithContext(ctx).WithArguments(w).Should(ContainSubstring("[!]" + sentence))
	}
}

// readiness is what /readyz?verbose answers.
func readiness(ctx context.Context, w *devcluster.World) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Operator.HealthURL+"/readyz?verbose", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// missing is the metric that tells whether a CRD of ours is missing.
func missing(ctx context.Context, w *devcluster.World, resource string) (float64, error) {
	metrics, err := w.Operator.Metrics(ctx)
	return metrics.Value("warren_crd_missing", map[string]string{"crd": resource + "." + v1alpha1.Domain}), err
}

var _ = Describe("a CRD of ours that isn't there at the start", Ordered, SpecPriority(1), func() {
	var w *devcluster.World
	var f *fixture
	BeforeAll(func(ctx SpecContext) {
		w = ownWorld(ctx, devcluster.Options{}, "d12")
		f = of(w, "d12")
	})
	apply := func(ctx context.Context, resources ...string) {
		GinkgoHelper()
		manifests, err := devcluster.Render("config/overlays/standard")
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), manifests.Definitions())).To(Succeed())
		for _, resource := range resources {
			Eventually(missing).WithContext(ctx).WithArguments(w, resource).Should(BeZero(), "%s is taken up", resource)
		}
	}

	It("FLT-F49 keeps no finalizer of another kind waiting, and is taken up when it comes", func(ctx SpecContext) {
		f.settle(ctx, f.payments(), f.shop())
		f.grow(ctx, f.own("payments"), f.own("web"))
		withoutDefinitions(ctx, w, "hierarchyconfigurations")
		Expect(f.Admin().Delete(ctx, build.SubNamespace(f.own("payments"), f.own("web")))).To(Succeed())
		f.Gone(ctx, build.SubNamespace(f.own("payments"), f.own("web")), build.Namespace(f.own("web")))
		Expect(f.Admin().Delete(ctx, f.shop().Object())).To(Succeed())
		f.Gone(ctx, f.shop().Object(), build.Namespace(f.own("shop")))

		apply(ctx, "hierarchyconfigurations")
		hc := build.Hierarchy(f.own("payments"))
		f.create(ctx, hc)
		Eventually(func() ([]metav1.Condition, error) {
			err := f.Admin().Get(ctx, client.ObjectKeyFromObject(hc), hc)
			return hc.Status.Conditions, err
		}).WithContext(ctx).Should(ContainElement(HaveField("Type", string(v1alpha1.ConditionReady))))
	}, SpecTimeout(4*suite.Patience))

	It("FLT-F49 may be each of them", func(ctx SpecContext) {
		Expect(f.Admin().Delete(ctx, f.payments().Object())).To(Succeed())
		f.Gone(ctx, f.payments().Object())
		withoutDefinitions(ctx, w, "lnamespaces", "subnamespaces")
		apply(ctx, "lnamespaces", "subnamespaces")
		f.settle(ctx, f.shop())
		f.grow(ctx, f.own("shop"), f.own("late"))
	}, SpecTimeout(4*suite.Patience))
})
