// Manager is the operator: soft multi-tenancy for shared Kubernetes clusters.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	// The image is empty but for the binary: without these roots no certificate of the outside world, such as that of a
	// warehouse, could be trusted. Where the system has roots, the system's are taken.
	_ "golang.org/x/crypto/x509roots/fallback"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/warren-tenancy/warren/internal/operator"
)

// version and commit are set by the linker.
var version, commit = "unknown", "unknown"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx := ctrl.SetupSignalHandler()
	if len(os.Args) > 1 {
		if handled, err := operator.RunSubcommand(ctx, os.Args[1], os.Args[2:], os.Stdout); handled {
			return err
		}
	}
	var o operator.Options
	o.BindFlags(flag.CommandLine)
	path := flag.String("config", "", "the configuration file; without it the defaults hold")
	showVersion := flag.Bool("version", false, "print version, commit and Go, and end")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q: it is neither a flag nor a subcommand (manifests, plan, release, billing, billing-exporter); "+
			"see --help", flag.Arg(0))
	}
	if *showVersion {
		fmt.Println(version, commit, runtime.Version())
		return nil
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	file, err := operator.LoadConfigFile(*path)
	if err != nil {
		operator.ReportInvalidFile(ctx, &o, err)
		return err
	}
	mgr, err := operator.NewManager(ctx, &o, file.Config, "warren/"+version)
	if err != nil {
		return err
	}
	if err := operator.Setup(ctx, mgr, file, &o, operator.DefaultTiming()); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
