package cli_test

import (
	"testing"
	"time"
)

func TestSQLChangesNothingUnasked(t *testing.T) {
	onEngines(t, func(t *testing.T, d desk) {
		d.paid(t, "4711", "ann@example.com", nine)
		d.paid(t, "4712", "ann@example.com", nine.Add(time.Hour))
		statements := []string{"DROP TABLE tenant_billing", "DROP VIEW tenant_billing_periods", "DELETE FROM tenant_billing",
			"UPDATE tenant_billing SET owner = ''", "CREATE TABLE mine (a int)", "INSERT INTO tenant_billing SELECT * FROM tenant_billing"}
		if d.file == "" {
			statements = append(statements, "WITH gone AS (DELETE FROM tenant_billing RETURNING *) SELECT * FROM gone",
				"EXPLAIN ANALYZE DELETE FROM tenant_billing")
		} else {
			statements = append(statements, "SELECT 1; DROP TABLE tenant_billing", "WITH a AS (SELECT 1) DELETE FROM tenant_billing",
				"VACUUM", "PRAGMA user_version = 7")
		}
		for _, statement := range statements {
			t.Run("BILL-89 without --write the engine refuses a statement that would change the ledger, and the error names the flag; "+
				"with --write the statement runs: "+statement, func(t *testing.T) {
				refused(t, d, "the ledger is open for reading alone, and the statement would change it", "sql", statement)
				refused(t, d, ": if you mean that, add --write", "sql", statement)
				want(t, d.told(t, "sql", "-o=csv", "SELECT count(*) AS n FROM tenant_billing_periods"), "n\n2\n")
			})
		}
		t.Run("BILL-89 without --write the engine refuses a statement that would change the ledger, and the error names the flag; "+
			"with --write the statement runs", func(t *testing.T) {
			want(t, d.told(t, "sql", "--write", "DELETE FROM tenant_billing WHERE cost_center = '4712'"), "CHANGED ROWS\n1\n")
			want(t, d.told(t, "sql", "-o=csv", "SELECT count(*) AS n FROM tenant_billing"), "n\n1\n")
		})
	})
}
