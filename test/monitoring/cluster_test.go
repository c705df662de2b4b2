package monitoring_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

const (
	operatorJob = "warren-controller-manager-metrics" // the name of the Service
	exporterJob = "warren-system/warren-billing-exporter"
	exporter    = "system:serviceaccount:warren-system:warren-billing-exporter"
)

// cluster is a control plane with two replicas of the operator and a billing exporter.
type cluster struct {
	*testing.T
	world    *devcluster.World
	manager  string // the program
	replicas [2]*devcluster.Operator
	running  [2]bool
	exporter string   // the address of its metrics
	saved    []string // objects that trouble deletes or changes
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	manager, err := devcluster.BuildManager(t.Context())
	plugins, problem := devcluster.BuildPlugins(t.Context())
	if err := errors.Join(err, problem, devcluster.BuildBilling(t.Context(), "manager-billing")); err != nil {
		t.Fatal(err)
	}
	world, err := devcluster.Start(t.Context(), devcluster.Options{
		ControlPlane: controlplane.Options{Users: map[string][]string{exporter: {"system:serviceaccounts",
			"system:serviceaccounts:warren-system"}}},
		Components: []string{"config/components/distribution", "config/components/billing-sqlite", "config/components/budgets"},
		Webhooks:   true, PlacesFreely: true, WithoutOperator: true,
		Operator: devcluster.OperatorOptions{Config: configuration("ledger.db"), Args: []string{"--leader-elect"},
			Env: []string{"GOMEMLIMIT=900MiB"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err)
		}
	})
	world.Plugins = plugins
	return &cluster{T: t, world: world, manager: manager}
}

func configuration(ledger string) string {
	return `apiVersion: config.tenancy.warren.dev/v1alpha1
kind: OperatorConfiguration
featureGates: {BudgetMetrics: true}
propagation:
  kinds:
  - {kind: Secret}
  - {kind: ConfigMap, scope: Namespaces}
billing: {driver: sqlite, clusterID: test, flushInterval: 1s, resyncInterval: 1m, sqlite: {path: ` + ledger + `}}
`
}

// startReplicas starts both replicas; the first one leads.
func (c *cluster) startReplicas() {
	c.Helper()
	var err error
	if c.replicas[0], err = c.world.StartOperator(c.Context()); err != nil {
		c.Fatal(err)
	}
	port, err := process.FreePort()
	if err != nil {
		c.Fatal(err)
	}
	c.replicas[1], err = devcluster.StartOperator(c.Context(), devcluster.OperatorOptions{
		Kubeconfig: c.world.Kubeconfig(controlplane.Operator), Dir: filepath.Join(c.world.Dir, "second"), Config: configuration("ledger.db"),
		WebhookPort: port, Args: []string{"--leader-elect"}, Env: []string{"GOMEMLIMIT=900MiB"},
	})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _, _ = c.replicas[1].Stop() })
	c.running = [2]bool{true, true}
}

// stop ends a replica as the kubelet does.
func (c *cluster) stop(replica int) {
	c.Helper()
	if code, err := c.replicas[replica].Stop(); code != 0 || err != nil {
		c.Fatalf("replica %d ended with %d: %v", replica, code, err)
	}
	c.running[replica] = false
}

// start starts a replica again with a configuration file; it is alive, and perhaps not ready.
func (c *cluster) start(replica int, file string) {
	c.Helper()
	if err := c.replicas[replica].WriteConfig(file); err != nil {
		c.Fatal(err)
	}
	if err := c.replicas[replica].StartAlive(c.Context()); err != nil {
		c.Fatal(err)
	}
	c.running[replica] = true
}

func (c *cluster) startExporter() {
	c.Helper()
	file := filepath.Join(c.world.Dir, "exporter.yaml")
	if err := os.WriteFile(file, []byte(configuration(filepath.Join(c.world.Dir, "ledger.db"))), 0o600); err != nil {
		c.Fatal(err)
	}
	err := process.OnFreePort(func(port int) (*process.Process, error) {
		address := "127.0.0.1:" + strconv.Itoa(port)
		c.exporter = "http://" + address + "/metrics"
		p := process.New(c.manager, []string{
			"billing-exporter", "--kubeconfig=" + c.world.Kubeconfig(exporter), "--config=" + file,
			"--metrics-bind-address=" + address, "--health-probe-bind-address=0",
		}, nil, filepath.Join(c.world.Dir, "exporter.log"))
		c.Cleanup(func() { _ = p.Stop() })
		return p, p.StartReady(c.Context(), process.HTTPOK(nil, c.exporter))
	})
	if err != nil {
		c.Fatal(err)
	}
}

// scrape scrapes all targets as Prometheus would.
func (c *cluster) scrape() scrape {
	c.Helper()
	all := scrape{}
	for i, replica := range c.replicas {
		target := map[string]string{"job": operatorJob, "namespace": "warren-system", "instance": "replica-" + strconv.Itoa(i)}
		up := 0.0
		if c.running[i] {
			if families, err := replica.Metrics(c.Context()); err == nil {
				all.add(c.T, families, target)
				up = 1
			}
		}
		all.add(c.T, map[string]*dto.MetricFamily{"up": gauge("up", up)}, target)
	}
	if c.exporter != "" {
		all.add(c.T, c.get(http.DefaultClient, c.exporter), map[string]string{"job": exporterJob, "namespace": "warren-system",
			"instance": "exporter-0"})
	}
	config := c.world.Config(controlplane.Admin)
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}
	text, err := api.RESTClient().Get().AbsPath("/metrics").DoRaw(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	families := c.parse(string(text))
	maps.DeleteFunc(families, func(name string, _ *dto.MetricFamily) bool {
		return !strings.HasPrefix(name, "apiserver_admission_webhook_")
	})
	all.add(c.T, families, map[string]string{"job": "apiserver", "instance": "apiserver-0"})
	return all
}

func gauge(name string, value float64) *dto.MetricFamily {
	kind := dto.MetricType_GAUGE
	return &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}
}

func (c *cluster) get(client *http.Client, url string) map[string]*dto.MetricFamily {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, url, nil)
	if err != nil {
		c.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		c.Fatal(err)
	}
	return families
}

func (c *cluster) parse(text string) map[string]*dto.MetricFamily {
	c.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		c.Fatal(err)
	}
	return families
}

// patience is how long something may take on a busy machine.
const patience = 2 * time.Minute

// until scrapes until the metrics say what is expected.
func (c *cluster) until(what string, ok func(scrape) bool) scrape {
	c.Helper()
	deadline := time.Now().Add(patience)
	for {
		now := c.scrape()
		if ok(now) {
			return now
		}
		if time.Now().After(deadline) {
			c.Fatalf("the metrics don't show %s; the operator's log:\n%s", what, tail(c.replicas[0].Log()))
		}
		pause(c.Context())
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

func tail(text string) string { return text[max(0, len(text)-4000):] }

// kubectl runs kubectl as a cluster admin until it succeeds: what it needs may not be there yet.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	deadline := time.Now().Add(patience)
	for {
		out, problems, code := c.world.Kubectl(c.Context(), controlplane.Admin, args...)
		if code == 0 {
			return out
		}
		if time.Now().After(deadline) {
			c.Fatalf("kubectl %s: %s", strings.Join(args, " "), problems)
		}
		pause(c.Context())
	}
}

func (c *cluster) apply(file string) {
	c.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", file))
	if err != nil {
		c.Fatal(err)
	}
	c.kubectl("apply", "-f", path)
}
