// Package exporter is the program `manager billing-exporter`: it follows LNamespaces and Namespaces, and appends each change of
// which tenant owns a namespace, and of how the tenant is billed, to the ledger.
//
// Three loops share the work, so that none waits for another: the tracker turns changes that the watches bring into events and puts
// these into the outbox at once; the keeper sends the outbox's events to the warehouse and compares cluster and ledger; the
// reporter writes condition BillingExported. A slow or broken warehouse delays no tenant.
package exporter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing/apiserver"
	"github.com/warren-tenancy/warren/internal/billing/programs"
	"github.com/warren-tenancy/warren/internal/configfile"
)

// DefaultNamespace is the operator's own namespace, unless it was deployed into another.
const DefaultNamespace = "warren-system"

// options are the flags of the program.
type options struct {
	config, namespace, metrics, health string
}

// Run runs the program until ctx is done, and returns nil then. Otherwise it returns an error that says what must change.
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
	return o.run(ctx, c, version)
}

// LoadConfig returns the operator's configuration from the file, or the defaults for an empty path.
func LoadConfig(path string) (*config.OperatorConfiguration, error) {
	return configfile.Load(path)
}

func (o options) run(ctx context.Context, c *config.OperatorConfiguration, version string) error {
	cfg, err := clientconfig.GetConfig()
	if err != nil {
		return fmt.Errorf("no access to an API server: set --kubeconfig or KUBECONFIG, or run in a pod: %w", err)
	}
	cfg.UserAgent = "warren-billing-exporter/" + version
	clock := &serverClock{}
	cfg.Wrap(clock.listen)
	for name, address := range map[string]string{"--metrics-bind-address": o.metrics, "--health-probe-bind-address": o.health} {
		if err := free(ctx, name, address); err != nil {
			return err
		}
	}
	identity, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the host has no name, by which the exporter's Lease would know it: %w", err)
	}
	api, err := apiserver.NewClient(cfg)
	if err != nil {
		return err
	}
	events, stop := api.NewRecorder("warren-billing-exporter")
	defer stop()
	election := &apiserver.Election{Client: api, Namespace: o.namespace, Name: programs.LeaseName, Identity: identity + "_" + string(uuid.NewUUID()),
		Timing: apiserver.DefaultElectionTiming()}
	program, err := assemble(ctx, c, surroundings{api: api, events: events, clock: clock, election: election, identity: identity, version: version, namespace: o.namespace})
	if err != nil {
		return err
	}
	defer program.close()
	return runLoops(ctx, election, program.elected, append(program.loops, healthEndpoint(o.health), metricsEndpoint(o.metrics)))
}

var namespaceType = metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}

// free returns an error with the flag's name if the program can't listen on the address; nil for "0".
func free(ctx context.Context, flagName, address string) error {
	if address == "0" {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s %q can't be used: %w; choose another port", flagName, address, err)
	}
	return l.Close()
}
