package operator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/connection"
	"github.com/warren-tenancy/warren/internal/preview"
)

// printPlan prints every write to Namespaces that exist, and to copies, that the operator would do on a cluster, and why. It writes
// nothing.
func printPlan(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	path := flags.String("config", "", "the configuration file; without it the defaults hold")
	access := flags.String("kubeconfig", "", "how to reach the cluster; empty: kubectl's rules")
	namespace := flags.String("operator-namespace", "warren-system", "the operator's namespace, which is protected")
	format := flags.String("o", preview.Table, "table, json or yaml")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, "manager plan prints every write to Namespaces that exist, and to copies, that the operator would do on this "+
			"cluster, and why. It writes nothing.")
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return fmt.Errorf("plan: %w; see manager plan --help", err)
	case flags.NArg() > 0:
		return fmt.Errorf("plan: unknown argument %q; see manager plan --help", flags.Arg(0))
	case !slices.Contains([]string{preview.Table, preview.JSON, preview.YAML}, *format):
		return fmt.Errorf("plan: -o %q: choose table, json or yaml", *format)
	}
	c, err := configfile.Load(*path)
	if err != nil {
		return err
	}
	cfg, err := connection.LoadKubeconfig(*access)
	if err != nil {
		return err
	}
	api, err := planClient(cfg)
	if err != nil {
		return err
	}
	plan, err := preview.Make(ctx, preview.Options{API: api, Config: c, OperatorNamespace: *namespace})
	if err != nil {
		return err
	}
	return plan.Print(out, *format)
}

// planClient returns a client for all kinds that preview.Make reads.
func planClient(cfg *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, metav1.AddMetaToScheme, corev1.AddToScheme, rbacv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}
