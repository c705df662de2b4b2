package programs_test

import (
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/billing/programs"
)

func TestHandOver(t *testing.T) {
	t.Run("BILL-75 what is missing is named where the other program isn't there", func(t *testing.T) {
		err := programs.HandOver(programs.Billing, "manager billing-exporter", []string{"billing-exporter"})
		if err == nil || !strings.HasPrefix(err.Error(), "manager billing-exporter needs the program /") || !strings.Contains(err.Error(),
			"/manager-billing beside this one") {
			t.Error(err)
		}
	})
}
