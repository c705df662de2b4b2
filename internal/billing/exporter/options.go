// Package exporter is the program `manager billing-exporter`: it follows LNamespaces and Namespaces. When a namespace
// gets another tenant or none, or a tenant is billed otherwise, it appends that change to the ledger.
//
// Three loops share the work, so that none waits for another: the tracker follows the cluster and records the states
// that the ledger lacks; the keeper compares cluster and ledger, and writes the difference; the reporter writes
// condition BillingExported. A slow or broken warehouse delays no tenant. Nothing is stored but in the ledger: after a
// restart, the difference is found again.
//
// The tracker uses reflectors, not informers: an informer passes changes on by other goroutines, and the watermark must
// know which changes came before a bookmark. If more than 100,000 states wait in an outage, each namespace keeps its
// last one.
//
// Two guards protect against a view of the cluster with holes. Nothing is compared before the whole cluster was read.
// ENDs without a deletion by the API server are doubtful; if more than max(1, 20 %) of the open periods have one
// between two comparisons, they wait.
package exporter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/leader"
)

// DefaultNamespace is the operator's own namespace, unless it was deployed into another.
const DefaultNamespace = "warren-system"

// options are the flags of the program.
type options struct {
	config, namespace, metrics, health string
}

// Run runs the program until ctx is done, and returns nil then. Otherwise it returns an error that describes what must
// change.
func Run(ctx context.Context, version string, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("billing-exporter", flag.ContinueOnError)
	flags.SetOutput(out)
	var o options
	flags.StringVar(&o.config, "config", "", "the configuration file, the operator's own")
	flags.StringVar(&o.namespace, "operator-namespace", DefaultNamespace, "the namespace of the exporter's Lease and Deployment")
	flags.StringVar(&o.metrics, "metrics-bind-address", ":8080", "where metrics are served, by HTTP; 0 switches them off")
	flags.StringVar(&o.health, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served; 0 switches them off")
	kubeconfig := flag.CommandLine.Lookup("kubeconfig")
	flags.Var(kubeconfig.Value, "kubeconfig", kubeconfig.Usage)
	logging := zap.Options{}
	logging.BindFlags(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q: billing-exporter takes flags alone; see --help", flags.Arg(0))
	}
	ctrllog.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	c, err := LoadConfig(o.config)
	if err != nil {
		return err
	}
	if c.Billing.Driver == config.DriverNone {
		return errors.New("billing.driver is none: there is nothing to export; choose sqlite, postgres or bigquery, or don't run the exporter")
	}
	if err := HandOver(&c.Billing); err != nil {
		return err
	}
	return o.runExporter(ctx, c, version)
}

// LoadConfig returns the operator's configuration from the file, or the defaults for an empty path.
func LoadConfig(path string) (*config.OperatorConfiguration, error) {
	return configfile.Load(path)
}

// runExporter connects to the API server, opens the ledger, and runs the exporter.
func (o options) runExporter(ctx context.Context, c *config.OperatorConfiguration, version string) error {
	cfg, err := clientconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("no access to an API server: set --kubeconfig or KUBECONFIG, or run in a pod: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this exporter in the ledger: %w", err)
	}
	cfg.UserAgent = "warren-billing-exporter/" + version
	clock := &serverClock{}
	cfg.Wrap(clock.wrapTransport)
	mgr, lock, err := o.newManager(cfg)
	if err != nil {
		return err
	}
	store, db, err := openLedger(&c.Billing)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	e := exporter{mgr: mgr, lock: lock, ledger: store, clock: clock, config: c, host: host, namespace: o.namespace, version: version}
	if err := e.addLoops(ctx); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager whose leader holds the exporter's Lease. It serves metrics and probes. The exporter is
// always ready, because it serves no requests that another replica could serve better.
func (o options) newManager(cfg *rest.Config) (ctrl.Manager, *leader.Lock, error) {
	lock, err := leader.NewLock(cfg, o.namespace, programs.LeaseName, nil)
	if err != nil {
		return nil, nil, err
	}
	options := ctrl.Options{Scheme: newScheme(), Metrics: server.Options{BindAddress: o.metrics}, HealthProbeBindAddress: o.health,
		LeaderElection:          true,
		GracefulShutdownTimeout: new(lastFlush + time.Second)}
	lock.Elect(cfg, &options)
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, nil, fmt.Errorf("making the exporter's manager: %w", err)
	}
	return mgr, lock, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
}

// newScheme returns the types that the exporter reads and writes.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	return scheme
}
