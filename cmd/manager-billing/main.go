// Manager-billing is the billing exporter and its commands with the drivers of SQLite and PostgreSQL. Package
// internal/billing/programs says why it is a program of its own.
package main

import (
	"fmt"
	"os"

	// The image has no root certificates of its own; this package links them in.
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
