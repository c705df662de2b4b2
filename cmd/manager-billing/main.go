// Manager-billing is the billing exporter and its commands with the drivers of SQLite and PostgreSQL. The program manager, which stands
// beside it, hands over to it; it takes the same words and flags. Where the ledger is in BigQuery, it hands over to manager-bigquery.
package main

import (
	"fmt"
	"os"

	// As in /main.go, the program manager: the image has no root certificates of its own.
	_ "golang.org/x/crypto/x509roots/fallback"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/warren-tenancy/warren/internal/billing/cli"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if err := cli.RunProgram(signals.SetupSignalHandler(), version, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
