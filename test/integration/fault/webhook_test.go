package fault_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
)

// webhookCases are those in which a webhook of the cluster changes, or delays, what the operator writes.
var webhookCases = []faultCase{
	{"F33a", "has a field added to each of its writes", func(ctx context.Context, s *scene) { mutated(ctx, s, false) }},
	{"F33b", "has half of its writes time out in a webhook", func(ctx context.Context, s *scene) { mutated(ctx, s, true) }},
}

// mutate has a webhook add a label to each Secret that is written in a namespace. If hangs, every second review is not answered in time.
func (s *scene) mutate(ctx context.Context, namespace string, hangs bool) (reviews *atomic.Int32, lift func()) {
	GinkgoHelper()
	reviews = &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reviews.Add(1)%2 == 1 && hangs {
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
			return
		}
		review, patched := &reviewv1.AdmissionReview{}, reviewv1.PatchTypeJSONPatch
		if json.NewDecoder(r.Body).Decode(review) != nil {
			return
		}
		review.Response = &reviewv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: &patched,
			Patch: []byte(`[{"op":"add","path":"/metadata/labels/mutated","value":"yes"}]`),
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	url, none, fail, timeout := server.URL, admissionv1.SideEffectClassNone, admissionv1.Fail, int32(1)
	hook := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.own("hook")}}
	hook.Webhooks = []admissionv1.MutatingWebhook{{
		Name: s.own("hook") + ".example.com", SideEffects: &none, FailurePolicy: &fail, TimeoutSeconds: &timeout,
		AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionv1.WebhookClientConfig{URL: &url,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
		}},
	}}
	s.create(ctx, hook)
	Eventually(ctx, func() int32 {
		_ = s.Admin().Create(ctx, build.Secret(namespace, "probe", "", "a", "b"), client.DryRunAll)
		return reviews.Load()
	}).Should(BeNumerically(">", 0))
	return reviews, func() {
		s.remove(ctx, hook)
		server.CloseClientConnections()
		server.Close()
	}
}

func mutated(ctx context.Context, s *scene, hangs bool) {
	s.bush(ctx)
	reviews, lift := s.mutate(ctx, s.own("n0"), hangs)
	defer lift()
	mark, err := s.Mark(ctx)
	Expect(err).NotTo(HaveOccurred())
	s.create(ctx, s.source("s", "1"))
	s.copied(ctx, "n1", "s", "1")
	s.copied(ctx, "n0", "s", "1")
	s.copied(ctx, "n2", "s", "1")
	written := func(g Gomega) int {
		writes, err := s.Writes(ctx, mark)
		g.Expect(err).NotTo(HaveOccurred())
		n := 0
		for _, w := range writes {
			if w.Resource != "secrets" || !strings.HasPrefix(w.Namespace, s.own("")) {
				continue
			}
			g.Expect(w.Verb).NotTo(HavePrefix("delete"), "%s", w)
			if w.Namespace == s.own("n0") && (w.Code < 300 || !hangs) {
				n++
			}
		}
		return n
	}
	Consistently(ctx, written).WithTimeout(max(time.Minute, test.Quiet(10*time.Minute))).WithPolling(time.Second).
		Should(BeNumerically("<=", 2))
	Expect(reviews.Load()).To(BeNumerically(">", 1))
	for _, child := range []string{"n0", "n1", "n2"} {
		s.copied(ctx, child, "s", "1")
	}
}
