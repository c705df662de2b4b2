package programs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warren-tenancy/warren/internal/billing/programs"
)

func TestHandOver(t *testing.T) {
	const hands = "HANDS_OVER"
	if os.Getenv(hands) != "" {
		t.Fatal(programs.HandOver(programs.Billing, "manager billing-exporter", []string{"billing-exporter", "--a b"}))
	}
	t.Run("BILL-75 without manager-billing beside it, manager ends with an error that names the missing program", func(t *testing.T) {
		err := programs.HandOver(programs.Billing, "manager billing-exporter", []string{"billing-exporter"})
		if err == nil || !strings.HasPrefix(err.Error(), "manager billing-exporter needs the program /") || !strings.Contains(err.Error(),
			"/manager-billing beside this one") {
			t.Error(err)
		}
	})
	t.Run("BILL-75 manager hands its arguments and environment over to manager-billing", func(t *testing.T) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(filepath.Dir(self), programs.Billing)
		if err := os.WriteFile(other, []byte("#!/bin/sh\necho $$ $"+hands+" \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(other) })
		command := exec.CommandContext(t.Context(), self, "-test.run=^TestHandOver$")
		command.Env = append(os.Environ(), hands+"=yes")
		out, err := command.CombinedOutput()
		_, rest, _ := strings.Cut(string(out), " ")
		if want := "yes billing-exporter --a b\n"; err != nil || rest != want {
			t.Errorf("%v: %q, want %q", err, rest, want)
		}
	})
}
