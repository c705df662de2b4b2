// Package monitoring_test has Prometheus's own packages evaluate the alerts and dashboards of config/prometheus on what a real operator, a
// billing exporter and an API server expose: a metric that is renamed or lost fails.
package monitoring_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

func TestMonitoring(t *testing.T) {
	day := newCluster(t).tell()
	t.Run("alerts", day.checkAlerts)
	t.Run("dashboards", day.checkDashboards)
	t.Run("reference", day.checkReference)
}

// edit is trouble that no test can make: a series that the cluster exposes gets other values.
type edit struct {
	metric string
	labels []string
	// set is the value while there is trouble. If grow is set, the value grows by it each minute instead, as a counter does.
	set, grow float64
	// twin is a label and another value of it. The trouble then happens to a further series with this value, which begins at 0.
	twin []string
	// clock means that the value is the time of the scrape. It stays the same while there is trouble.
	clock bool
}

// edits are by alert. Alerts that are not here fire because of what goes wrong in the story.
var edits = map[string][]edit{
	"WarrenNoLeader": {{metric: "leader_election_master_status", labels: []string{"name", "warren"}}},
	"WarrenPanics": {{metric: "controller_runtime_reconcile_panics_total", labels: []string{"controller", "lnamespace"},
		grow: 1}},
	"WarrenReconcileErrors": {{metric: "controller_runtime_reconcile_errors_total", labels: []string{"controller", "lnamespace"},
		grow: 1}},
	"WarrenQueueNotDraining": {{metric: "workqueue_depth", labels: []string{"controller", "lnamespace"}, set: 20}},
	"WarrenWorkerHangs": {{metric: "workqueue_longest_running_processor_seconds", labels: []string{"controller", "lnamespace"},
		set: 900}},
	"WarrenMemoryNearLimit":        {{metric: "process_resident_memory_bytes", labels: []string{"job", operatorJob}, set: 890 << 20}},
	"WarrenCageRefusals":           {{metric: "warren_cage_refusals_total", labels: []string{"policy", "operator-cage-objects"}, grow: 1}},
	"WarrenWebhookErrors":          {{metric: "controller_runtime_webhook_requests_total", labels: []string{"code", "500"}, grow: 1}},
	"WarrenCertificateExpires":     {{metric: "warren_certificate_expiry_timestamp_seconds", set: float64(start.Unix()) + 10*86400}},
	"WarrenWebhookCANotSynced":     {{metric: "warren_webhook_ca_synced", set: 0}},
	"WarrenKindNotActive":          {{metric: "warren_config_kind", labels: []string{"kind", "Secret", "state", "forbidden"}, set: 1}},
	"WarrenRightsBeforeRails":      {{metric: "warren_propagation_rights_before_rails_total", grow: 0.1}},
	"WarrenPropagationNotDraining": {{metric: "warren_propagation_pending_actions", set: 300}},
	"WarrenCertificateNotWritten":  {{metric: "warren_certificate_rotations_total", labels: []string{"result", "error"}, grow: 1}},
	"WarrenRevocationSlow": {
		{metric: "warren_access_revocation_seconds_bucket", labels: []string{"le", "10"}, grow: 1},
		{metric: "warren_access_revocation_seconds_bucket", labels: []string{"le", "30"}, grow: 1},
		{metric: "warren_access_revocation_seconds_bucket", labels: []string{"le", "+Inf"}, grow: 1},
	},
	"WarrenBudgetNotEnforced": {{metric: "warren_budget_conditions", labels: []string{"reason", "Enforced"},
		twin: []string{"reason", "NotInstalled"}, set: 1}},
	"WarrenBreakGlass":            {{metric: "warren_sudo_break_glass_total", grow: 1}},
	"WarrenSudoNotEnded":          {{metric: "warren_sudo_requests", labels: []string{"reason", "NotEnded"}, set: 1}},
	"WarrenSudoNotGranted":        {{metric: "warren_sudo_requests", labels: []string{"reason", "TimerMissing"}, set: 1}},
	"WarrenDistributionDriftLoop": {{metric: "warren_distribution_drift_loops", labels: []string{"distribution", "pull"}, set: 1}},
	"WarrenBillingLags":           {{metric: "warren_billing_oldest_pending_seconds", set: 1000}},
	"WarrenBillingRefused": {{metric: "warren_billing_flush_total", labels: []string{"result", "success"},
		twin: []string{"result", "AccessDenied"}, grow: 1}},
	"WarrenBillingInvalidData": {{metric: "warren_billing_refused_total", grow: 1}},
	"WarrenBillingDrifts":      {{metric: "warren_billing_drift_rows_total", grow: 1}},
	"WarrenBillingEndsHeld":    {{metric: "warren_billing_held_ends", set: 7}},
	"WarrenBillingStands":      {{metric: "warren_billing_watermark_timestamp_seconds", clock: true}},
}

// Minutes of the scenes in which alerts are evaluated: the longest `for` is 6 h.
const (
	calmFor, firstTroubleFor, lastTroubleFor, healedFor = 60, 30, 8 * 60, 7 * 60
)

func (s story) checkAlerts(t *testing.T) {
	all := alerts(t)
	for name := range edits {
		if all[name].Alert == "" {
			t.Errorf("there is no alert %s to make trouble for", name)
		}
	}
	for name, rule := range all {
		t.Run(name, func(t *testing.T) {
			firing, annotations := s.play(t, metricNames(t, rule.Expr), edits[name]).evaluate(t, rule)
			if first := slices.Index(firing, true); first < 0 {
				t.Error("it never fires")
			} else if first < calmFor {
				t.Errorf("it fires in minute %d, when all is well: %s", first, annotations["summary"])
			}
			if firing[len(firing)-1] {
				t.Error("it doesn't stop when all is well again")
			}
			for _, text := range annotations {
				if strings.Contains(text, "<no value>") || strings.Contains(text, "error expanding") {
					t.Errorf("annotation %q", text)
				}
			}
			t.Log(annotations["summary"])
		})
	}
}

// play records the story or, if there are edits, only the last calm frame of it, with these edits.
func (s story) play(t *testing.T, names []string, edits []edit) *recording {
	t.Helper()
	calm := s.calm[len(s.calm)-1]
	if len(edits) == 0 {
		scenes := []scene{{minutes: calmFor, scrape: calm}}
		for i, frame := range s.trouble {
			minutes := firstTroubleFor
			if i == 0 || i == len(s.trouble)-1 {
				minutes = lastTroubleFor
			}
			scenes = append(scenes, scene{minutes: minutes, scrape: frame})
		}
		return record(t, names, append(scenes, scene{minutes: healedFor, scrape: s.healed[0]})...)
	}
	for _, e := range edits {
		calm = e.prepare(t, calm)
	}
	// change returns the field change of a scene that begins in minute begin of the recording. trouble returns for how many minutes trouble
	// has lasted.
	change := func(begin int, trouble func(minute int) int) func(sample, int) (float64, bool) {
		return func(one sample, minute int) (float64, bool) {
			for _, e := range edits {
				lasted := trouble(minute)
				switch over := begin > calmFor; {
				case !e.concerns(one.labels):
				case e.clock && lasted > 0 && !over:
					return float64(start.Add(calmFor * time.Minute).Unix()), true
				case e.clock:
					return float64(start.Add(time.Duration(begin+minute) * time.Minute).Unix()), true
				case e.grow != 0:
					return one.value + e.grow*float64(lasted), true
				case lasted > 0 && !over:
					return e.set, true
				}
			}
			return one.value, true
		}
	}
	return record(t, names,
		scene{calmFor, calm, change(0, func(int) int { return 0 })},
		scene{lastTroubleFor, calm, change(calmFor, func(minute int) int { return minute + 1 })},
		scene{healedFor, calm, change(calmFor+lastTroubleFor, func(int) int { return lastTroubleFor })})
}

func (e edit) concerns(ls labels.Labels) bool {
	if len(e.twin) > 0 {
		return matches(ls, e.metric, e.twin)
	}
	return matches(ls, e.metric, e.labels)
}

// prepare returns a scrape that has the series of an edit. It fails the test if the cluster doesn't expose them.
func (e edit) prepare(t *testing.T, from scrape) scrape {
	t.Helper()
	found, to := false, scrape{}
	for key, one := range from {
		to[key] = one
		if matches(one.labels, e.metric, e.labels) {
			found = true
			if len(e.twin) > 0 {
				to.put(labels.NewBuilder(one.labels).Set(e.twin[0], e.twin[1]).Labels(), 0)
			}
		}
	}
	if !found {
		t.Fatalf("no target exposes %s with labels %q", e.metric, e.labels)
	}
	return to
}

func (s story) frames() []scrape { return slices.Concat(s.calm, s.trouble, s.healed) }

// checkReference compares docs/reference/metrics.md with what is exposed, names and labels, both ways.
func (s story) checkReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	described, exposed := map[string]string{}, map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(warren_[a-z_]+)` \\| \\w+ \\| (?:`([a-z, ]+)`)? ?\\|").
		FindAllStringSubmatch(string(page), -1) {
		described[row[1]] = row[2]
	}
	for _, frame := range s.frames() {
		for _, one := range frame {
			name := one.labels.Get(model.MetricNameLabel)
			if !strings.HasPrefix(name, "warren_") {
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			var own []string
			one.labels.Range(func(l labels.Label) {
				if !slices.Contains([]string{model.MetricNameLabel, "job", "instance", "namespace", "le"}, l.Name) {
					own = append(own, l.Name)
				}
			})
			exposed[name] = strings.Join(own, ",")
		}
	}
	for name, names := range described {
		sorted := strings.Split(names, ", ")
		slices.Sort(sorted)
		described[name] = strings.Join(sorted, ",")
	}
	delete(described, "warren_propagation_scrub_last_timestamp_seconds") // exposed after the first pass, at some time of a day
	if diff := cmp.Diff(exposed, described); diff != "" {
		t.Errorf("metrics and their labels (-exposed +docs/reference/metrics.md):\n%s", diff)
	}
}
