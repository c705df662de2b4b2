package devcluster

import (
	"context"
	"strconv"

	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// ExporterAccount is the billing exporter's service account, and ExporterGroups are its groups: an entry of controlplane.Options.Users.
const ExporterAccount = "system:serviceaccount:warren-system:warren-billing-exporter"

// ExporterGroups returns the groups that a token of ExporterAccount has.
func ExporterGroups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:warren-system"}
}

// StartExporter starts `MANAGER billing-exporter` with a configuration file, under the exporter's own account, and waits until it is ready.
// healthURL is where it answers probes.
func StartExporter(ctx context.Context, world *World, manager, configFile, logFile string) (exporter *process.Process, healthURL string,
	err error) {
	err = process.OnFreePort(func(port int) (*process.Process, error) {
		address := "127.0.0.1:" + strconv.Itoa(port)
		healthURL = "http://" + address
		exporter = process.New(manager, []string{"billing-exporter", "--kubeconfig=" + world.Kubeconfig(ExporterAccount),
			"--config=" + configFile, "--metrics-bind-address=0", "--health-probe-bind-address=" + address}, nil, logFile)
		return exporter, exporter.StartReady(ctx, process.HTTPOK(nil, healthURL+"/readyz"))
	})
	return exporter, healthURL, err
}
