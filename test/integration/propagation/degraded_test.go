package propagation_test

import (
	"context"
	"io"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// deadConversion makes the API server call a webhook that does not answer, for every object that is read in another version than it is
// stored.
func deadConversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")},
		},
	}
}

// inVersions adds further versions to a CRD, which are served but not stored.
func inVersions(crd *apiextensionsv1.CustomResourceDefinition, further ...string) *apiextensionsv1.CustomResourceDefinition {
	for _, name := range further {
		one := crd.Spec.Versions[0].DeepCopy()
		one.Name, one.Storage = name, false
		crd.Spec.Versions = append(crd.Spec.Versions, *one)
	}
	return crd
}

// convert puts a CRD's conversion in force.
func convert(ctx context.Context, w *devcluster.World, crd *apiextensionsv1.CustomResourceDefinition) {
	GinkgoHelper()
	applied, err := manifest(crd)
	Expect(err).NotTo(HaveOccurred())
	Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), applied)).To(Succeed())
}

// kindState is the metric that tells how far the watches of a kind are.
func kindState(ctx context.Context, w *devcluster.World, kind, state string) (float64, error) {
	metrics, err := w.Operator.Metrics(ctx)
	return metrics.Value("warren_config_kind", map[string]string{"kind": kind, "state": state}), err
}

// probePath is the path of the Deployment's readiness probe, which decides whether the Service of the webhooks leads to a pod.
func probePath() string {
	GinkgoHelper()
	shipped, err := devcluster.Render("config/overlays/standard")
	Expect(err).NotTo(HaveOccurred())
	for _, u := range shipped {
		if u.GetKind() == "Deployment" {
			deployment := &appsv1.Deployment{}
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, deployment)).To(Succeed())
			return deployment.Spec.Template.Spec.Containers[0].ReadinessProbe.HTTPGet.Path
		}
	}
	Fail("no Deployment is shipped")
	return ""
}

// readyzText is what /readyz?verbose answers.
func readyzText(ctx context.Context, w *devcluster.World) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Operator.HealthURL+"/readyz?verbose", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

var _ = Describe("a kind whose version is replaced", func() {
	It("PROP-X6 after a CRD with v1alpha1 alone is replaced by one with v1 alone, new sources are copied; copies of a deleted older "+
		"source are deleted, without a restart", func(ctx SpecContext) {
		w := start(ctx, setup{Kinds: []string{"{kind: Secret}", "{group: example.com, kind: Gadget}"}})
		crd := widgets("Gadget", "gadgets")
		crd.Spec.Versions[0].Name = "v1alpha1"
		convert(ctx, w, crd)
		f := grow(ctx, w)
		old := build.Source(widget("Gadget", f.acme, "old", "blue"), v1alpha1.ModeUpdate)
		old.SetAPIVersion("example.com/v1alpha1")
		f.create(ctx, old)
		f.copied(ctx, old, f.tree()...)

		crd = inVersions(widgets("Gadget", "gadgets"), "v1alpha1")
		crd.Spec.Versions[1].Served = false
		convert(ctx, w, crd)
		g := build.Source(widget("Gadget", f.acme, "g", "blue"), v1alpha1.ModeUpdate)
		Eventually(ctx, func(ctx context.Context) error { return f.Admin().Create(ctx, g.DeepCopy()) }).Should(Succeed())
		f.copied(ctx, g, f.tree()...)
		old.SetAPIVersion("example.com/v1")
		f.remove(ctx, old)
		f.absent(ctx, old, f.tree()...)
	})
})

var _ = Describe("a kind that can't be listed", func() {
	It("PROP-X5 while a conversion webhook does not answer, the kind is degraded, with a sentence in readyz; the probe, the webhooks and "+
		"other kinds work; once repaired, it is copied", func(ctx SpecContext) {
		w := start(ctx, setup{Webhooks: true, Kinds: []string{"{kind: Secret}", "{group: example.com, kind: Gadget}"}})
		crd := inVersions(widgets("Gadget", "gadgets"), "v2")
		convert(ctx, w, crd)
		f := grow(ctx, w)
		_, err := w.Operator.Stop()
		Expect(err).NotTo(HaveOccurred())
		g := build.Source(widget("Gadget", f.acme, "g", "blue"), v1alpha1.ModeUpdate)
		f.create(ctx, g)
		crd.Spec.Conversion = deadConversion()
		convert(ctx, w, crd)
		Eventually(ctx, func(ctx context.Context) error {
			newer := g.DeepCopy()
			newer.SetAPIVersion("example.com/v2")
			return f.Admin().Get(ctx, client.ObjectKeyFromObject(g), newer)
		}).Should(MatchError(ContainSubstring("conversion webhook")))

		started := make(chan error, 1)
		go func() { started <- w.Operator.Start(ctx) }()
		probe, all := w.Operator.HealthURL+probePath(), w.Operator.HealthURL+"/readyz"
		Eventually(ctx, func(ctx context.Context) ([2]int, error) {
			alone, err := answers(ctx, probe)
			if err != nil {
				return [2]int{}, err
			}
			together, err := answers(ctx, all)
			return [2]int{alone, together}, err
		}).Should(Equal([2]int{http.StatusOK, http.StatusInternalServerError}), "the pod serves its webhooks while the kind is waited for")
		Eventually(started).Should(Receive(BeNil()), "readiness of all waits a bounded time")
		Eventually(ctx, kindState).WithArguments(w, "Gadget", "degraded").Should(Equal(1.0))
		Eventually(ctx, readyzText).WithArguments(w).Should(And(
			ContainSubstring(`[!]kind Gadget of group "example.com" is Degraded: `),
			ContainSubstring("conversion webhook for example.com/v1, Kind=Gadget failed")))
		Eventually(ctx, func(ctx context.Context) error {
			return f.Admin().Create(ctx, build.Child(f.prefix+"new", f.acme), client.DryRunAll)
		}).Should(Succeed(), "the webhooks answer")
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.tree()...)

		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		convert(ctx, w, crd)
		f.copied(ctx, g, f.tree()...)
		Eventually(ctx, kindState).WithArguments(w, "Gadget", "degraded").Should(BeZero())
		Eventually(ctx, readyzText).WithArguments(w).ShouldNot(ContainSubstring("Degraded"))
	})
})
