package attack_test

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

// planted is the value of a secret, in a form that is valid in every field.
const planted = "plantedvalue7h3k"

// plants are objects with the planted value in each field where a tenant can write it.
var plants = []request{
	create("secret payments/plant", `{metadata: {labels: {$D/propagate: update}, annotations: {note: `+planted+
		`}}, stringData: {key: `+planted+`}}`),
	create("configmap payments/plant", `{metadata: {labels: {$D/propagate: update}}, data: {key: `+planted+`}}`),
	create("configmap payments/plant-once", `{metadata: {labels: {$D/propagate: create}}, data: {key: `+planted+`}}`),
	create("service payments/plant", `{metadata: {labels: {$D/propagate: update}}, spec: {selector: {app: `+planted+
		`}, ports: [{port: 80}]}}`),
	create("serviceaccount payments/plant", `{metadata: {labels: {$D/propagate: update}}, imagePullSecrets: [{name: `+planted+`}]}`),
	create("limitrange payments/plant", `{metadata: {labels: {$D/propagate: update}, annotations: {note: `+planted+`}}, spec: {limits: []}}`),
	create("resourcequota payments/plant", `{metadata: {labels: {$D/propagate: update}, annotations: {note: `+planted+
		`}}, spec: {hard: {count/secrets: "500"}}}`),
	create("role payments/plant", `{rules: [{apiGroups: [""], resources: [secrets], resourceNames: [`+planted+`], verbs: [get]}]}`),
	create("rolebinding payments/plant", marked("propagate: update", bindingTo("view", planted))),
	create("networkpolicy payments/plant", `{metadata: {labels: {$D/propagate: update}}, spec: {podSelector: {matchLabels: {app: `+planted+
		`}}}}`),
	create("subnamespace payments/pay-plant", `{spec: {labels: {note: `+planted+`}, annotations: {note: `+planted+`}}}`),
}

// obstacles are a conflict and an invalid source with the value: the operator reports both.
var obstacles = []request{
	create("secret pay-secret/plant-below", `{stringData: {key: `+planted+`}}`),
	create("secret payments/plant-below", `{metadata: {labels: {$D/propagate: update}}, stringData: {key: `+planted+`}}`),
	create("secret payments/plant-bad", `{metadata: {labels: {$D/propagate: update}, annotations: {$D/select: "=="}}, stringData: {key: `+
		planted+`}}`),
}

var _ = Describe("a Secret's value", func() {
	f := running

	It("SEC-X10 a Secret's value that is planted in objects of every kind is in no log, Event, metric, "+
		"condition or admission answer", func(ctx SpecContext) {
		f.given(ctx, bob, obstacles...)
		f.given(ctx, bob, plants...)
		copies := []string{"secret", "configmap", "service", "serviceaccount", "limitrange", "resourcequota", "role",
			"rolebinding", "networkpolicy"}
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

// silent expects that nothing that the operator writes about itself or its objects contains the planted value.
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
			delete(item.Object, "spec") // its owner wrote it, so it may have the value
			delete(item.Object, "metadata")
			text, err := json.Marshal(item.Object)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(text)).NotTo(ContainSubstring(planted), kind)
		}
	}
}
