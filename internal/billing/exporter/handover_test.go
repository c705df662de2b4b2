package exporter

import (
	"strings"
	"testing"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
)

func TestHandOver(t *testing.T) {
	t.Run("BILL-56 if the program for driver bigquery is missing, the error says so", func(t *testing.T) {
		err := HandOver(&config.Billing{Driver: config.DriverBigQuery})
		if err == nil || !strings.Contains(err.Error(), "billing.driver bigquery needs the program /") ||
			!strings.Contains(err.Error(), "make build") {
			t.Error(err)
		}
	})
	for _, driver := range []config.BillingDriver{config.DriverNone, config.DriverSQLite, config.DriverPostgres} {
		if err := HandOver(&config.Billing{Driver: driver}); err != nil {
			t.Errorf("%s: %v", driver, err)
		}
	}
}
