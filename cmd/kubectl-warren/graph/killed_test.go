package graph

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// writesOn is the environment variable that makes the test write forest.html in its folder again and again, until its parent kills it.
const writesOn = "WARREN_TEST_WRITES_ON"

// forestSize is the size of the file in bytes, large enough that the process can be killed during a write.
const forestSize = 48 << 20

func TestKilledWhileWriting(t *testing.T) {
	if os.Getenv(writesOn) != "" {
		for {
			if err := writeWhole("forest.html", bytes.Repeat([]byte("n"), forestSize)); err != nil {
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
		writer := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWhileWriting$")
		writer.Dir, writer.Env = dir, append(os.Environ(), writesOn+"=1")
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		for !isHalfWritten(t, dir) {
			time.Sleep(time.Millisecond)
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Wait()
		content, err := os.ReadFile(file)
		if err != nil || string(content) != "old" && len(content) != forestSize {
			t.Errorf("%d bytes are there: %v", len(content), err)
		}
	})
}

// isHalfWritten reports whether the folder has a second file, beside the one that a finished write replaces.
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
