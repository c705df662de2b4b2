package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/billing/cli"
)

// The operator doesn't link the billing drivers, and the exporter links neither controllers nor webhooks. This keeps
// them out of memory.
func TestWhoLinksWhat(t *testing.T) {
	for program, want := range map[string]struct{ drivers, controllers bool }{
		".": {drivers: true}, "../manager-bigquery": {drivers: true}, "../..": {controllers: true}, "../kubectl-warren": {},
	} {
		t.Run("BILL-75 only manager-billing and manager-bigquery link the drivers, and only manager links controllers: "+
			program, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", program).Output()
			if err != nil {
				t.Fatal(err)
			}
			packages := string(out)
			for _, driver := range []string{"modernc.org/sqlite", "github.com/jackc/pgx/v5"} {
				if got := strings.Contains(packages, driver+"\n"); got != want.drivers {
					t.Errorf("it links %s: %t, want %t", driver, got, want.drivers)
				}
			}
			if got := strings.Contains(packages, "/warren/controllers/") || strings.Contains(packages, "/warren/webhooks"); got != want.controllers {
				t.Errorf("it links controllers or webhooks: %t, want %t", got, want.controllers)
			}
		})
	}
}

func TestWords(t *testing.T) {
	help := &strings.Builder{}
	if err := cli.RunProgram(t.Context(), version, []string{"--help"}, help); err != nil || !strings.Contains(help.String(),
		"billing-exporter --help") {
		t.Errorf("--help: %q, %v", help, err)
	}
	help.Reset()
	if err := cli.RunProgram(t.Context(), version, []string{"billing", "--help"}, help); err != nil ||
		!strings.Contains(help.String(), "sql") {
		t.Errorf("billing --help: %q, %v", help, err)
	}
	for _, args := range [][]string{nil, {"release"}, {"--config=x"}} {
		if err := cli.RunProgram(t.Context(), version, args, nil); err == nil || !strings.Contains(err.Error(),
			"has only the commands billing and billing-exporter") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
