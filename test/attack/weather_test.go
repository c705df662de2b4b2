package attack_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/controlplane"
)

var _ = Describe("the operator's metrics", func() {
	It("SEC-X5 are for those who may read them", func(ctx SpecContext) {
		w, err := test.Start(ctx, test.Options{
			ControlPlane: controlplane.Options{Users: map[string][]string{"scraper": nil}},
			Operator:     test.OperatorOptions{Args: []string{"--metrics-secure=true"}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		f := &fixture{World: w}
		f.given(ctx, admin, create("clusterrolebinding scrapers", bindingTo("warren-metrics-reader", "scraper")))

		plain := w.Operator.MetricsURL
		secure := strings.Replace(plain, "http://", "https://", 1)
		token := func(user string) string { return w.Config(user).BearerToken }
		answers := func(url, token string) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) { return scrape(ctx, url, token) }
		}
		Eventually(ctx, answers(secure, token("scraper"))).Should(Equal(http.StatusOK))
		Expect(scrape(ctx, secure, "")).To(Equal(http.StatusUnauthorized))
		Expect(scrape(ctx, secure, "made-up")).NotTo(Equal(http.StatusOK))
		Expect(scrape(ctx, secure, token("alice"))).To(Equal(http.StatusForbidden))
		Expect(scrape(ctx, plain, token("scraper"))).To(Equal(http.StatusBadRequest), "the server speaks HTTPS alone")

		manager, err := test.BuildManager(ctx)
		Expect(err).NotTo(HaveOccurred())
		said, err := exec.CommandContext(ctx, manager, "--kubeconfig", w.Kubeconfig(controlplane.Operator),
			"--metrics-secure=false", "--metrics-bind-address=:8443").CombinedOutput()
		Expect(err).To(MatchError(ContainSubstring("exit status 1")), string(said))
		Expect(string(said)).To(ContainSubstring("insecure metrics need a loopback address"))
	})
})

// scrape returns the code of the answer. What isn't 200 holds no metrics.
func scrape(ctx context.Context, url, token string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// Its certificate is its own and made at its start.
	unverified := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // loopback
	defer unverified.CloseIdleConnections()
	answer, err := (&http.Client{Transport: unverified}).Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if shown := strings.Contains(string(text), "warren_"); shown != (answer.StatusCode == http.StatusOK) {
		return 0, fmt.Errorf("%s: metrics shown: %t", answer.Status, shown)
	}
	return answer.StatusCode, nil
}

// planted stands for a secret, in a form that every field takes.
const planted = "plantedvalue7h3k"

// plants have the value wherever a tenant can write one, also under names that stand in the way of each other.
var plants = []request{
	create("secret payments/plant", `{metadata: {labels: {$D/propagate: update}, annotations: {note: `+planted+`}}, stringData: {key: `+planted+`}}`),
	create("configmap payments/plant", `{metadata: {labels: {$D/propagate: update}}, data: {key: `+planted+`}}`),
	create("configmap payments/plant-once", `{metadata: {labels: {$D/propagate: create}}, data: {key: `+planted+`}}`),
	create("service payments/plant", `{metadata: {labels: {$D/propagate: update}}, spec: {selector: {app: `+planted+`}, ports: [{port: 80}]}}`),
	create("serviceaccount payments/plant", `{metadata: {labels: {$D/propagate: update}}, imagePullSecrets: [{name: `+planted+`}]}`),
	create("limitrange payments/plant", `{metadata: {labels: {$D/propagate: update}, annotations: {note: `+planted+`}}, spec: {limits: []}}`),
	create("resourcequota payments/plant", `{metadata: {labels: {$D/propagate: update}, annotations: {note: `+planted+`}}, spec: {hard: {count/secrets: "500"}}}`),
	create("role payments/plant", `{rules: [{apiGroups: [""], resources: [secrets], resourceNames: [`+planted+`], verbs: [get]}]}`),
	create("rolebinding payments/plant", marked("propagate: update", bindingTo("view", planted))),
	create("networkpolicy payments/plant", `{metadata: {labels: {$D/propagate: update}}, spec: {podSelector: {matchLabels: {app: `+planted+`}}}}`),
	create("subnamespace payments/pay-plant", `{spec: {labels: {note: `+planted+`}, annotations: {note: `+planted+`}}}`),
}

// obstacles of the same names make the operator and the policies speak.
var obstacles = []request{
	create("secret pay-secret/plant-below", `{stringData: {key: `+planted+`}}`),
	create("secret payments/plant-below", `{metadata: {labels: {$D/propagate: update}}, stringData: {key: `+planted+`}}`),
	create("secret payments/plant-bad", `{metadata: {labels: {$D/propagate: update}, annotations: {$D/select: "=="}}, stringData: {key: `+planted+`}}`),
}

var _ = Describe("a Secret's value", func() {
	f := running

	It("SEC-X10 is told to nobody", func(ctx SpecContext) {
		f.given(ctx, bob, obstacles...)
		f.given(ctx, bob, plants...)
		copies := []string{"secret", "configmap", "service", "serviceaccount", "limitrange", "resourcequota", "role", "rolebinding", "networkpolicy"}
		for _, kind := range copies {
			f.appears(ctx, kind+" pay-secret/plant")
		}
		Eventually(ctx, f.eventsOf).WithArguments("payments", "plant-below", v1alpha1.ReasonConflict).ShouldNot(BeEmpty())
		f.appears(ctx, "namespace pay-plant")

		for _, kind := range copies {
			target := kind + " pay-secret/plant"
			for _, r := range []request{merge(target, ours("x", planted)), remove(target)} {
				err := r.send(ctx, f.caller(bob))
				Expect(err).To(MatchError(ContainSubstring("is a copy of payments/plant")))
				Expect(err.Error()).NotTo(ContainSubstring(planted), "an admission answer")
			}
		}
		f.silent(ctx)
	})
})

// silent expects the planted value in nothing that the operator says.
func (f *fixture) silent(ctx context.Context) {
	GinkgoHelper()
	Expect(f.Operator.Log()).NotTo(ContainSubstring(planted), "the log")
	metrics, err := f.Operator.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(fmt.Sprint(metrics)).NotTo(ContainSubstring(planted), "metrics")
	for _, kind := range []string{"event", "lnamespace", "subnamespace", "hierarchyconfiguration"} {
		all := listOf(object(kind+" *", ""))
		Expect(f.Admin().List(ctx, all, client.InNamespace(""))).To(Succeed())
		for _, item := range all.Items {
			delete(item.Object, "spec") // as its owner wrote it
			delete(item.Object, "metadata")
			text, err := json.Marshal(item.Object)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).NotTo(ContainSubstring(planted), kind)
		}
	}
}
