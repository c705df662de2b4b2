package graph

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// killedFile is the environment variable that has the test write that file, until its parent kills it.
const killedFile = "WARREN_TEST_KILLED_FILE"

func TestKilledWhileWriting(t *testing.T) {
	if file := os.Getenv(killedFile); file != "" {
		for {
			if err := writeWhole(file, bytes.Repeat([]byte("new"), 64<<20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("WEB-G9 killed while writing", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "forest.html")
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		writer := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWhileWriting$") //nolint:gosec // this test
		writer.Env = append(os.Environ(), killedFile+"="+file)
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		for !isHalfWritten(t, dir) {
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Wait()
		content, err := os.ReadFile(file)
		if err != nil || string(content) != "old" && len(content) != 3*64<<20 {
			t.Errorf("%d bytes are there: %v", len(content), err)
		}
	})
}

// isHalfWritten reports whether a file is there beside the one that is replaced.
func isHalfWritten(t *testing.T, dir string) bool {
	t.Helper()
	if t.Context().Err() != nil {
		t.Fatal("nothing was written")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.Name() != "forest.html" && info.Size() > 0 {
			return true
		}
	}
	return false
}
