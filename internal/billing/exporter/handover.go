package exporter

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

// bigqueryProgram is this program linked with the driver of BigQuery, in the same folder. In the operator's own program, Google's
// client would cost each replica 20 MB of memory, which few installations need.
const bigqueryProgram = "manager-bigquery"

// OpenBigQuery opens the ledger in BigQuery. Only bigqueryProgram sets it.
var OpenBigQuery func(*config.BillingBigQuery) *sql.DB

// HandOver replaces this process by bigqueryProgram, with the same arguments, if the configured driver is bigquery and this program
// lacks it. Otherwise it returns nil.
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
