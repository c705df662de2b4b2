package monitoring_test

import (
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"

	"github.com/warren-tenancy/warren/test/devcluster"
)

// alerts are the rules of config/prometheus, by their names, as Prometheus's own parser reads them.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	manifests, err := devcluster.Render("config/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, u := range manifests {
		if u.GetKind() != "PrometheusRule" {
			continue
		}
		text, err := yaml.Marshal(u.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		groups, problems := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		for _, problem := range problems {
			t.Errorf("PrometheusRule %s: %v", u.GetName(), problem)
		}
		for _, group := range groups.Groups {
			for _, rule := range group.Rules {
				if _, twice := all[rule.Alert]; twice {
					t.Errorf("two alerts are called %s", rule.Alert)
				}
				all[rule.Alert] = rule
			}
		}
	}
	return all
}

const runbook = "https://github.com/warren-tenancy/warren/blob/main/docs/runbooks/README.md#"

// TestAlertsHaveRunbooks compares alerts and sections of the page both ways.
func TestAlertsHaveRunbooks(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	all := alerts(t)
	for name, rule := range all {
		if got, want := rule.Annotations["runbook_url"], runbook+strings.ToLower(name); got != want {
			t.Errorf("%s: runbook_url is %q, want %q", name, got, want)
		}
		if !strings.Contains(string(page), "\n### "+name+"\n") {
			t.Errorf("docs/runbooks/README.md has no section %s", name)
		}
		for _, key := range []string{"summary", "description"} {
			if rule.Annotations[key] == "" {
				t.Errorf("%s has no %s", name, key)
			}
		}
		switch rule.Labels["severity"] {
		case "critical", "warning", "info":
		default:
			t.Errorf("%s has severity %q", name, rule.Labels["severity"])
		}
	}
	for line := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok && all[name].Alert == "" {
			t.Errorf("docs/runbooks/README.md has a section %s, and there is no such alert", name)
		}
	}
}

// evaluate evaluates an alert once a minute, as Prometheus does, and returns in which minutes it fires, and the annotations of the first.
func (r *recording) evaluate(t *testing.T, rule rulefmt.Rule) (firing []bool, annotations map[string]string) {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alert := rules.NewAlertingRule(rule.Alert, expression, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
		labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	query := rules.EngineQueryFunc(r.engine, r.storage)
	for minute := range r.minutes {
		if _, err := alert.Eval(t.Context(), 0, r.at(minute), query, &url.URL{}, 0); err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		alert.SetEvaluationTimestamp(r.at(minute))
		fires := alert.State() == rules.StateFiring
		if fires && annotations == nil {
			annotations = alert.ActiveAlerts()[0].Annotations.Map()
		}
		firing = append(firing, fires)
	}
	return firing, annotations
}
