package exporter

import (
	"database/sql"
	"os"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/billing/programs"
)

// OpenBigQuery opens the ledger in BigQuery, for questions alone with readOnly. Only the program
// manager-bigquery sets it; it is nil in others.
var OpenBigQuery func(c *config.BillingBigQuery, readOnly bool) *sql.DB

// HandOver replaces this process by programs.BigQuery, with the same arguments, if the configured driver is bigquery
// and this program lacks it. Otherwise it returns nil.
func HandOver(c *config.Billing) error {
	if c.Driver != config.DriverBigQuery || OpenBigQuery != nil {
		return nil
	}
	return programs.HandOver(programs.BigQuery, "billing.driver bigquery", os.Args[1:])
}
