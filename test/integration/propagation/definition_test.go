package propagation_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("a configured kind", func() {
	It("PROP-X1 INF-I59 the operator is ready while the CRD of a configured kind does not exist; once it is Established, a source of that "+
		"kind is soon copied, without a restart", func(ctx SpecContext) {
		w := start(ctx, setup{Kinds: []string{"{kind: Secret}", "{group: example.com, kind: Gadget}"}})
		state := func(ctx SpecContext, state string) float64 {
			metrics, err := w.Operator.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			return metrics.Value("warren_config_kind", map[string]string{"kind": "Gadget", "state": state})
		}
		if os.Getenv("PROPAGATION_SCOPE") != "Namespaces" { // in scope Namespaces, the operator asks for no kind before the first tree
			Eventually(state).WithArguments(ctx, "pending").Should(Equal(1.0), "the operator is ready without it")
		}
		crd, err := manifest(widgets("Gadget", "gadgets"))
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), crd)).To(Succeed()) // Established
		f := grow(ctx, w)
		g := build.Source(widget("Gadget", f.acme, "g", "blue"), v1alpha1.ModeUpdate)
		f.create(ctx, g)
		f.copied(ctx, g, f.tree()...)
	})

	It("PROP-X2 while the CRD of a configured kind is deleted, at most 16 requests in 10 min are about it, and other kinds work; "+
		"afterwards its objects are copied again", func(ctx SpecContext) {
		w := start(ctx, setup{Kinds: []string{"{kind: Secret}", "{group: example.com, kind: Gadget}"}})
		crd, err := manifest(widgets("Gadget", "gadgets"))
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), crd)).To(Succeed())
		f := grow(ctx, w)
		put := func() {
			GinkgoHelper()
			g := build.Source(widget("Gadget", f.acme, "g", "blue"), v1alpha1.ModeUpdate)
			f.create(ctx, g)
			f.copied(ctx, g, f.tree()...)
		}
		put()

		Expect(w.Admin().Delete(ctx, crd[0])).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			return w.Admin().Get(ctx, client.ObjectKeyFromObject(crd[0]), crd[0].DeepCopy())
		}).Should(MatchError(ContainSubstring("not found")))
		mark, err := w.Mark(ctx)
		Expect(err).NotTo(HaveOccurred())
		asked := func(ctx context.Context) (int, error) {
			requests, err := w.Requests(ctx, mark)
			return len(slices.DeleteFunc(requests, func(r audit.Request) bool {
				return r.User != controlplane.Operator || !strings.Contains(r.URI, "/gadgets")
			})), err
		}
		// 2 at once, and 2 after 5, 15, 35 … s. In a window shorter than the page's 10 min, fewer are allowed.
		window, most := 20*time.Second, 8
		if full := test.Quiet(10 * time.Minute); full > window {
			window, most = full, 16
		}
		Consistently(ctx, asked).WithTimeout(window).WithPolling(time.Second).Should(BeNumerically("<=", most))
		secret := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, secret)
		f.copied(ctx, secret, f.tree()...)

		crd, err = manifest(widgets("Gadget", "gadgets"))
		Expect(err).NotTo(HaveOccurred())
		Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), crd)).To(Succeed())
		put()
	})

	It("PROP-X13 a kind has no version configured; its CRD gets v2 with one field more, and a user sets the field: copies get it without "+
		"a restart", func(ctx SpecContext) {
		w := start(ctx, setup{Kinds: []string{"{kind: Secret}", "{group: example.com, kind: Gadget}"}})
		crd := widgets("Gadget", "gadgets")
		apply := func() {
			GinkgoHelper()
			manifests, err := manifest(crd)
			Expect(err).NotTo(HaveOccurred())
			Expect(devcluster.Apply(ctx, w.Config(controlplane.Admin), manifests)).To(Succeed())
		}
		apply()
		f := grow(ctx, w)
		g := build.Source(widget("Gadget", f.acme, "g", "blue"), v1alpha1.ModeUpdate)
		f.create(ctx, g)
		f.copied(ctx, g, f.tree()...)

		By("the CRD gets v2, with one field more, beside v1; the field is set at once")
		second := crd.Spec.Versions[0].DeepCopy()
		second.Name, crd.Spec.Versions[0].Storage = "v2", false
		spec := second.Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["size"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		crd.Spec.Versions = append(crd.Spec.Versions, *second)
		apply()
		newer := widget("Gadget", f.acme, "g", "blue")
		newer.SetAPIVersion("example.com/v2")
		Eventually(ctx, func(ctx context.Context) error {
			return w.Admin().Patch(ctx, newer, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":"large"}}`)))
		}).Should(Succeed())
		for _, namespace := range f.tree() {
			Eventually(ctx, func(ctx context.Context) (string, error) {
				c := widget("Gadget", namespace, "g", "")
				c.SetAPIVersion("example.com/v2")
				err := w.Admin().Get(ctx, client.ObjectKeyFromObject(c), c)
				size, _, _ := unstructured.NestedString(c.Object, "spec", "size")
				return size, err
			}).Should(Equal("large"), "the copy in %s has the new field without a restart", namespace)
		}
	})

	for config, sentence := range map[string]string{
		"{kind: Pod}": "propagation.kinds[0].kind: Forbidden: Pod can't be propagated",
		"{group: rbac.authorization.k8s.io, kind: RoleBinding, mode: Remove}": `propagation.kinds[0].mode: Invalid value: "Remove": must be ` +
			`OptIn or All`,
		"{kind: Secret, mode: all}":                             `propagation.kinds[0].mode: Invalid value: "all": must be OptIn, All or Remove`,
		"{group: rbac.authorization.k8s.io, kind: ClusterRole}": `propagation.kinds[0].kind: Forbidden: "ClusterRole" is cluster-scoped`,
		"{kind: Secret}\n  - {kind: Secret}":                    "propagation.kinds[1]: Duplicate value",
	} {
		It("PROP-X3 the start fails, with path and text, for Pod, Secret twice, RoleBinding "+
			"in mode Remove, mode all, ClusterRole: "+strings.ReplaceAll(config, "\n", ""), func(ctx SpecContext) {
			o, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
				Kubeconfig: world.Kubeconfig(controlplane.Operator), Dir: filepath.Join(GinkgoT().TempDir(), "operator"),
				Config: setup{Kinds: []string{config}}.config(),
			})
			if o != nil {
				DeferCleanup(o.Stop)
			}
			Expect(err).To(MatchError(ContainSubstring(sentence)))
		})
	}
})
