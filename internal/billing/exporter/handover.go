package exporter

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// bigqueryProgram is this program with the driver of BigQuery, and stands beside it: linked into the operator, Google's client
// would cost each replica 20 MB that only the exporter of a few needs.
const bigqueryProgram = "manager-bigquery"

// OpenBigQuery opens the ledger in BigQuery. Only bigqueryProgram sets it.
var OpenBigQuery func(*config.BillingBigQuery) *sql.DB

// HandOver replaces this process by the program that has the configured driver, with the same arguments, where this one lacks it.
func HandOver(c *config.Billing) error {
	if c.Driver != config.DriverBigQuery || OpenBigQuery != nil {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for %s: %w", bigqueryProgram, err)
	}
	path := filepath.Join(filepath.Dir(self), bigqueryProgram)
	if err := syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ()); err != nil {
		return fmt.Errorf("billing.driver bigquery needs the program %s beside this one: %w; `make build` makes it, and the image has it", path, err)
	}
	return nil
}
