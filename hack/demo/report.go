package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// writeReport writes to .reports how the demo ended, in the format of `go test -json`. `make spec-coverage` reads there whether case
// BILL-51 passed.
func writeReport(root, ledger string, failure error) error {
	outcome := "pass"
	if failure != nil {
		outcome = "fail"
	}
	line, err := json.Marshal(map[string]string{"Action": outcome, "Package": "hack/demo",
		"Test": "BILL-51 make demo with the warehouse " + ledger})
	if err != nil {
		return fmt.Errorf("writing the demo's report: %w", err)
	}
	folder := filepath.Join(root, ".reports")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("writing the demo's report: %w", err)
	}
	return os.WriteFile(filepath.Join(folder, "demo-"+ledger+".json"), append(line, '\n'), 0o644)
}
