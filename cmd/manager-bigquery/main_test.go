package main

import (
	"os/exec"
	"strings"
	"testing"
)

// Google's client costs memory and time to compile, and has a large attack surface. Only the program that needs it
// links it.
func TestWhoLinksIt(t *testing.T) {
	for program, linked := range map[string]bool{".": true, "../..": false, "../manager-billing": false, "../kubectl-warren": false,
		"../kubectl-sudo": false, "../../hack/demo": false} {
		t.Run("BILL-56 only manager-bigquery links Google's packages: "+program, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", program).Output()
			if err != nil {
				t.Fatal(err)
			}
			packages := string(out)
			if got := strings.Contains(packages, "cloud.google.com/go/") || strings.Contains(packages, "google.golang.org/api/"); got != linked {
				t.Errorf("it links Google's client: %t, want %t", got, linked)
			}
		})
	}
}
