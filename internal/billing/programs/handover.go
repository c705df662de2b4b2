// Package programs replaces the running process (exec) by manager-billing or manager-bigquery from the same folder, and
// knows the name of the exporter's Lease. It links no driver, because the operator imports it.
//
// Why three programs in one image: the operator may impersonate and escalate, so it links no driver and has no way to a
// warehouse. The exporter needs no controller. In one program, each would hold the other's code in memory. Google's
// client makes every exporter 16 to 19 MiB larger at rest (gRPC, Arrow, OpenTelemetry), so that
// only manager-bigquery links it.
package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// Billing is the program with the billing exporter and its commands, and the drivers of SQLite and PostgreSQL.
	Billing = "manager-billing"
	// BigQuery is the same program with the driver of BigQuery, too.
	BigQuery = "manager-bigquery"
)

// LeaseName is the name of the exporter's Lease, in the operator's namespace. The replica that holds the Lease exports.
const LeaseName = "warren-billing-exporter"

// HandOver replaces this process by a program in the same folder, with these arguments. It returns only if that fails.
// what names the feature that needs the program, such as a subcommand, and begins the error's text.
func HandOver(program, what string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for %s: %w", program, err)
	}
	path := filepath.Join(filepath.Dir(self), program)
	err = syscall.Exec(path, append([]string{path}, args...), os.Environ())
	return fmt.Errorf("%s needs the program %s beside this one: %w; `make build` makes it, and the image has it", what, path, err)
}
