package propagation_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
)

// deadWebhook has the API server answer 500 to each creation of a Secret in a namespace, because no server answers for the webhook.
func deadWebhook(namespace string) *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-dead"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:         "dead.example.com",
			ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			FailurePolicy:     ptr.To(admissionv1.Fail), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

var _ = Describe("a copy to which the API server never answers but by 500", func() {
	It("PROP-R9 after a restart, while writes of Secrets in b get 500, z and zeta report "+
		"their conflict; afterwards b gets its copy", func(ctx SpecContext) {
		f := grow(ctx, start(ctx, setup{}))
		dead := deadWebhook(f.b)
		f.create(ctx, dead)
		Eventually(func() error { return f.Admin().Create(ctx, build.Secret(f.b, "try", ""), client.DryRunAll) }).
			WithContext(ctx).Should(MatchError(apierrors.IsInternalError, "IsInternalError"))
		s := build.Source(build.Secret(f.acme, "s", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, s)
		f.copied(ctx, s, f.a, f.a1)
		Expect(f.Operator.Restart(ctx)).To(Succeed())
		inTheWay, x := build.Secret(f.z, "x", "own"), build.Source(build.Secret(f.zeta, "x", "1"), v1alpha1.ModeUpdate)
		f.create(ctx, inTheWay, x)
		f.says(ctx, map[string]string{f.z: "Conflict: ", f.zeta: "DescendantConflict: "})
		f.remove(ctx, dead)
		f.copied(ctx, s, f.b)
	})
})
