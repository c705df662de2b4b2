package attack_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

var _ = Describe("the operator's ports", Ordered, func() {
	f := &fixture{}

	BeforeAll(func(ctx SpecContext) {
		w, err := devcluster.Start(ctx, devcluster.Options{
			ControlPlane: controlplane.Options{Users: map[string][]string{"scraper": nil, "clara": nil}},
			Operator:     devcluster.OperatorOptions{Args: []string{"--metrics-secure=true"}},
			Webhooks:     true,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		f.World = w
		f.given(ctx, admin,
			create("clusterrolebinding scrapers", bindingTo("warren-metrics-reader", "scraper")),
			create("clusterrolebinding claras", bindingTo("cluster-admin", "clara")),
			create("lnamespace payments", `{spec: {users: [{kind: User, name: alice}]}}`),
			create("lnamespace victim", `{spec: {users: [{kind: User, name: dave}], billing: {owner: `+planted+`}}}`),
			create("subnamespace payments/pay-web", ``))
		f.appears(ctx, "rolebinding pay-web/warren:users")
		Eventually(ctx, f.may).WithArguments(clara, "update", "", "namespaces", "").Should(BeTrue())
	})

	It("SEC-X5 /metrics answers 401 without a token, 403 to a token without the right, 200 with it, and refuses plain HTTP; start with "+
		"--metrics-secure=false and :8443 fails", func(ctx SpecContext) {
		plain := f.Operator.MetricsURL
		secure := strings.Replace(plain, "http://", "https://", 1)
		token := func(user string) string { return f.Config(user).BearerToken }
		Eventually(ctx, scrape).WithArguments(secure, token("scraper")).Should(Equal(http.StatusOK))
		Expect(scrape(ctx, secure, "")).To(Equal(http.StatusUnauthorized))
		Expect(scrape(ctx, secure, "made-up")).To(Equal(http.StatusUnauthorized))
		Expect(scrape(ctx, secure, token("alice"))).To(Equal(http.StatusForbidden))
		Expect(scrape(ctx, plain, token("scraper"))).To(Equal(http.StatusBadRequest), "the server speaks HTTPS alone")

		manager, err := devcluster.BuildManager(ctx)
		Expect(err).NotTo(HaveOccurred())
		said, err := exec.CommandContext(ctx, manager, "--kubeconfig", f.Kubeconfig(controlplane.Operator),
			"--metrics-secure=false", "--metrics-bind-address=:8443").CombinedOutput()
		Expect(err).To(MatchError(ContainSubstring("exit status 1")), string(said))
		Expect(string(said)).To(ContainSubstring("insecure metrics need a loopback address"))
	})

	It("do nothing for who posts a review themselves, and tell them nothing of a tenant that isn't theirs", func(ctx SpecContext) {
		var before map[string]any
		Eventually(ctx, func(ctx context.Context) (bool, error) {
			last := before
			var err error
			before, err = f.state(ctx)
			return reflect.DeepEqual(before, last), err
		}).WithPolling(3*time.Second).Should(BeTrue(), "what the operator has to do at first is done; a status waits up to two seconds")
		for _, review := range f.madeUp(ctx) {
			answer, err := f.post(ctx, review.path, review.AdmissionReview)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer).To(ContainSubstring("made-up"), "%s answers", review.path)
			Expect(answer).NotTo(ContainSubstring(planted), review.path)
		}
		Consistently(ctx, f.state).WithTimeout(test.Quiet(soon)).Should(Equal(before))
	})

	It("SEC-P1 while the webhook is up, cl labels pay-web; its deletion is refused: `delete the SubNamespace pay-web in namespace "+
		"payments instead`, which cl may do",
		func(ctx SpecContext) {
			f.attempt(ctx, allowed(clara, merge("namespace pay-web", ours("x", `"y"`))))
			err := remove("namespace pay-web").send(ctx, f.caller(clara))
			Expect(err).To(MatchError(ContainSubstring("delete the SubNamespace pay-web in namespace payments instead")))
			f.attempt(ctx, allowed(clara, remove("subnamespace payments/pay-web")))
			f.gone(ctx, "namespace pay-web")
		})
})

// unverified sends a request without verifying the operator's certificate, which is self-signed.
func unverified(request *http.Request) (code int, text string, err error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// scrape returns the code of the answer. It returns an error unless an answer has metrics exactly if its code is 200.
func scrape(ctx context.Context, url, token string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	code, text, err := unverified(request)
	if err != nil {
		return 0, err
	}
	if shown := strings.Contains(text, "warren_"); shown != (code == http.StatusOK) {
		return 0, fmt.Errorf("%d: metrics shown: %t", code, shown)
	}
	return code, nil
}

// review is one that the API server didn't write; path is the webhook's.
type review struct {
	admissionv1.AdmissionReview
	path string
}

// wished are the objects of made-up reviews, by resource: what alice would like to change in tenant victim.
var wished = map[string]string{
	"lnamespaces":             "lnamespace victim",
	"subnamespaces":           "subnamespace victim/pay-web",
	"hierarchyconfigurations": "hierarchyconfiguration victim/hierarchy",
	"namespaces":              "namespace victim",
}

// madeUp returns made-up reviews for all of Warren's webhooks, in the name of the cluster admin.
func (f *fixture) madeUp(ctx context.Context) []review {
	GinkgoHelper()
	named := client.ObjectKey{Name: "warren"}
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	Expect(f.Admin().Get(ctx, named, validating)).To(Succeed())
	Expect(f.Admin().Get(ctx, named, mutating)).To(Succeed())
	var reviews []review
	add := func(c admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) {
		for _, rule := range rules {
			target, known := wished[rule.Resources[0]]
			Expect(known).To(BeTrue(), "nothing is made up for %s", rule.Resources[0])
			for _, operation := range rule.Operations {
				reviews = append(reviews, review{made(target, rule, operation), *c.Service.Path})
			}
		}
	}
	for _, w := range validating.Webhooks {
		add(w.ClientConfig, w.Rules)
	}
	for _, w := range mutating.Webhooks {
		add(w.ClientConfig, w.Rules)
	}
	Expect(len(reviews)).To(BeNumerically(">", 5))
	return reviews
}

func made(target string, rule admissionregistrationv1.RuleWithOperations,
	operation admissionregistrationv1.OperationType) admissionv1.AdmissionReview {
	GinkgoHelper()
	was := object(target, `{metadata: {labels: {$D/type: root}}, spec: {}}`)
	is := object(target, `{metadata: {labels: {$D/parent: payments}}, spec: {users: [{kind: User, name: alice}], parent: payments}}`)
	kind := is.GroupVersionKind()
	request := &admissionv1.AdmissionRequest{
		UID: "made-up", Operation: admissionv1.Operation(operation), Name: is.GetName(), Namespace: is.GetNamespace(),
		Kind:     metav1.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
		Resource: metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: rule.Resources[0]},
		UserInfo: authenticationv1.UserInfo{Username: controlplane.Admin, Groups: []string{"system:masters"}},
	}
	if operation != admissionregistrationv1.Delete {
		request.Object = runtime.RawExtension{Object: is}
	}
	if operation != admissionregistrationv1.Create {
		request.OldObject = runtime.RawExtension{Object: was}
	}
	return admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Request: request,
	}
}

// post sends a review to the operator's port, without any token. Whatever the answer's code is, its text is returned.
func (f *fixture) post(ctx context.Context, path string, r admissionv1.AdmissionReview) (string, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	url := fmt.Sprintf("https://localhost:%d%s", f.WebhookPort, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	_, text, err := unverified(request)
	return text, err
}

// state is all that a review could have changed.
func (f *fixture) state(ctx context.Context) (map[string]any, error) {
	now := map[string]any{}
	for _, kind := range []string{"namespace", "lnamespace", "subnamespace", "hierarchyconfiguration", "clusterrolebinding", "rolebinding"} {
		all := listOf(object(kind+" *", ""))
		if err := f.Admin().List(ctx, all); err != nil {
			return nil, err
		}
		for _, u := range all.Items {
			now[kind+" "+client.ObjectKeyFromObject(&u).String()] = u.Object
		}
	}
	return now, nil
}
