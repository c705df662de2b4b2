package devcluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSound(t *testing.T) {
	for log, sound := range map[string]bool{
		`{"msg":"Starting workers","worker count":1}`:             true,
		"WARNING: DATA RACE\nWrite at 0x00c000":                   false,
		`{"msg":"Observed a panic","panic":"nil map"}`:            false,
		"panic: runtime error: index out of range\n\ngoroutine 1": false,
	} {
		o := &Operator{LogFile: filepath.Join(t.TempDir(), "manager.log")}
		if err := os.WriteFile(o.LogFile, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.Sound(); (err == nil) != sound {
			t.Errorf("%q: %v", log, err)
		}
	}
}
