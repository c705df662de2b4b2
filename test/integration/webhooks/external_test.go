package webhooks_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/servingcert"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const certManager = "config/components/cert-manager"

var _ = Describe("The component cert-manager", func() {
	It("takes the operator's own certificate out, and its rights", func() {
		manifests, err := devcluster.RenderWith("config/overlays/standard", certManager)
		Expect(err).NotTo(HaveOccurred())
		var deployment appsv1.Deployment
		decode(manifests, "Deployment", "warren-controller-manager", &deployment)
		pod := deployment.Spec.Template.Spec
		Expect(pod.Containers[0].Args).To(ContainElements("--webhook-certs=external", "--webhook-cert-dir=/etc/warren-webhook"))
		Expect(pod.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", "/etc/warren-webhook")))
		var made unstructured.Unstructured
		decode(manifests, "Certificate", "warren-webhook", &made.Object)
		secret, _, _ := unstructured.NestedString(made.Object, "spec", "secretName")
		Expect(pod.Volumes).To(ContainElement(HaveField("VolumeSource.Secret.SecretName", secret)))
		dnsNames, _, _ := unstructured.NestedStringSlice(made.Object, "spec", "dnsNames")
		Expect(dnsNames).To(Equal(names))
		for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
			Expect(find(manifests, kind, "warren").GetAnnotations()).To(HaveKeyWithValue("cert-manager.io/inject-ca-from",
				"warren-system/warren-webhook"))
		}

		Expect(find(manifests, "Secret", "warren-webhook-cert")).To(BeNil())
		standard, err := devcluster.Render("config/overlays/standard")
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range []string{"ClusterRole", "Role"} {
			var with, without rbacv1.ClusterRole // a Role has the same rules
			decode(manifests, kind, "warren-manager", &with)
			decode(standard, kind, "warren-manager", &without)
			Expect(with.Rules).To(HaveLen(len(without.Rules) - 1))
			for _, rule := range with.Rules {
				Expect(rule.Resources).
					NotTo(ContainElements(BeElementOf("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "secrets")), kind)
			}
		}
	})

	It("lets files be replaced while they are served", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		w := start(ctx, devcluster.Options{
			Components: []string{certManager}, WithoutOperator: true,
			Operator: devcluster.OperatorOptions{Args: []string{"--webhook-certs=external", "--webhook-cert-dir=" + dir}},
		})
		Expect(apierrors.IsNotFound(w.Admin().Get(ctx, client.ObjectKeyFromObject(secretObject()), secretObject()))).To(BeTrue())
		_, err := w.StartOperator(ctx)
		Expect(err).To(MatchError(ContainSubstring("--webhook-cert-dir %q holds no certificate to serve", dir)))

		first, second := madeAt(time.Now(), names...), madeAt(time.Now(), names...)
		inject(ctx, w, append(bytes.Clone(first.Certificate), second.Certificate...)) // as cainjector would
		mount(dir, first)
		operator, err := w.StartOperator(ctx)
		Expect(err).NotTo(HaveOccurred())
		serves := func(g Gomega, pair servingcert.Pair) {
			want, err := servingcert.Judge(pair, names, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			got, err := served(ctx, w.WebhookPort)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Equal(want.Leaf)).To(BeTrue())
			metrics, err := operator.Metrics(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(metrics.Value("warren_certificate_expiry_timestamp_seconds", nil)).To(BeEquivalentTo(want.Leaf.NotAfter.Unix()))
		}
		Eventually(serves).WithArguments(first).Should(Succeed())
		mount(dir, second)
		Eventually(serves).WithArguments(second).Should(Succeed())
		Expect(operator.Process().Running()).To(BeTrue())
		Expect(asked(ctx, w)).To(Succeed())
		// It touched nothing that cert-manager keeps.
		all, err := bundles(ctx, w)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveEach(Equal(append(bytes.Clone(first.Certificate), second.Certificate...))))
	})
})

// mount replaces the pair in a folder as the kubelet does: both files at once, by a link to another folder.
func mount(dir string, pair servingcert.Pair) {
	GinkgoHelper()
	data, err := os.MkdirTemp(dir, "..")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(data, "tls.crt"), pair.Certificate, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(data, "tls.key"), pair.Key, 0o600)).To(Succeed())
	Expect(os.Symlink(filepath.Base(data), filepath.Join(dir, "..data_tmp"))).To(Succeed())
	Expect(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))).To(Succeed())
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); !os.IsExist(err) {
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// inject writes the caBundle of every webhook.
func inject(ctx context.Context, w *devcluster.World, bundle []byte) {
	GinkgoHelper()
	for object, count := range map[client.Object]int{
		&admissionv1.ValidatingWebhookConfiguration{}: 5, &admissionv1.MutatingWebhookConfiguration{}: 2,
	} {
		object.SetName("warren")
		var patch []map[string]any
		for i := range count {
			patch = append(patch, map[string]any{
				"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), "value": base64.StdEncoding.EncodeToString(bundle),
			})
		}
		text, err := json.Marshal(patch)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.As(controlplane.Admin).Patch(ctx, object, client.RawPatch("application/json-patch+json", text))).To(Succeed())
	}
}

// find returns the object of that kind and name, nil if there is none.
func find(manifests devcluster.Manifests, kind, name string) *unstructured.Unstructured {
	for _, u := range manifests {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	return nil
}

// decode reads the object of that kind and name.
func decode(manifests devcluster.Manifests, kind, name string, into any) {
	GinkgoHelper()
	u := find(manifests, kind, name)
	Expect(u).NotTo(BeNil(), "%s %s", kind, name)
	if object, ok := into.(*map[string]any); ok {
		*object = u.Object
		return
	}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)).To(Succeed())
}
