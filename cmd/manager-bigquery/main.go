// Manager-bigquery is the billing exporter and its commands with the driver of BigQuery. Package
// internal/billing/programs says why it is a program of its own.
package main

import (
	"database/sql"
	"fmt"
	"os"

	// The image has no root certificates of its own; this package links them in.
	_ "golang.org/x/crypto/x509roots/fallback"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing/bigquery"
	"github.com/warren-tenancy/warren/internal/billing/cli"
	"github.com/warren-tenancy/warren/internal/billing/exporter"
)

// version is set by the linker.
var version = "unknown"

func main() {
	exporter.OpenBigQuery = openWarehouse
	if err := cli.RunProgram(signals.SetupSignalHandler(), version, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func openWarehouse(c *config.BillingBigQuery, readOnly bool) *sql.DB {
	return bigquery.Open(bigquery.Options{Project: c.Project, Dataset: c.Dataset, Location: c.Location, CredentialsFile: c.CredentialsFile,
		Endpoint: c.Endpoint, StatementTimeout: c.StatementTimeout.Duration, MaximumBytesBilled: c.MaximumBytesBilled.Value(),
		ReadOnly: readOnly})
}
