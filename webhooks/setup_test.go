package webhooks_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

// Before the forest is complete, no request is decided, and the client is asked to try again.
func TestUnready(t *testing.T) {
	c := grown(build.Root("payments"))
	c.unready = true
	objects := map[string]client.Object{
		webhooks.PathLNamespaceDefaults: sudoed("t"), webhooks.PathLNamespaces: sudoed("t"),
		webhooks.PathSubNamespaceDefaults: build.SubNamespace("payments", "w"),
		webhooks.PathSubNamespaces:        build.SubNamespace("payments", "w"), webhooks.PathNamespaces: build.Root("r"),
		webhooks.PathHierarchyConfiguration: build.Hierarchy("payments"),
		webhooks.PathDistributions:          &v1alpha1.ResourceDistribution{},
		webhooks.PathSudoRequestDefaults:    &v1alpha1.SudoRequest{},
		webhooks.PathSudoRequests:           &v1alpha1.SudoRequest{},
	}
	for path := range webhooks.Handlers(scheme(), webhooks.Options{View: c}) {
		r := c.as(t, alice, path, nil, objects[path])
		refused(503, "has not seen the namespaces of this cluster yet").check(t, path, r)
		if r.Result == nil || r.Result.Details == nil || r.Result.Details.RetryAfterSeconds != 1 {
			t.Errorf("%s: the client isn't told when to come again: %+v", path, r.Result)
		}
	}
}

// If a handler panics, the request is refused, and counted as a refusal.
func TestPanic(t *testing.T) {
	count := func() float64 {
		return counted(t, `warren_admission_requests_total{allowed="false",webhook="subnamespaces"}`)
	}
	before := count()
	c := grown(build.Root("app-team1"))
	rules := c.forest.Rules()
	rules.CheckName = func(string, string) error { panic("out of paper") }
	c.forest = c.forest.WithRules(rules)
	refused(500, "out of paper").check(t, "", c.as(t, alice, webhooks.PathSubNamespaces, nil, build.SubNamespace("app-team1", "x")))
	if after := count(); after != before+1 {
		t.Errorf("counted %v refusals, then %v", before, after)
	}
}

func counted(t *testing.T, series string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
			}
			if family.GetName()+"{"+strings.Join(labels, ",")+"}" == series {
				return m.Counter.GetValue()
			}
		}
	}
	return 0
}
