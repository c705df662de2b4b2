package graph_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// killedAt is the environment variable with the address of the API server from which a child of the test draws
// forest.html in its folder.
const killedAt = "WARREN_TEST_KILLED_AT"

func TestKilledWhileWriting(t *testing.T) {
	if address := os.Getenv(killedAt); address != "" {
		if _, err := runGraph(t, address, nil, "--file", "forest.html"); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Run("WEB-G9 if the command is killed while it writes, the old file is whole", func(t *testing.T) {
		address, _ := lists(t, 3000) // a file of some MiB, so that there is time to kill
		for !isKilledInside(t, address) && !t.Failed() {
		}
	})
}

// isKilledInside runs the command over an old file and kills it as soon as it writes. It reports whether it was killed
// before all was written.
func isKilledInside(t *testing.T, address string) bool {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "forest.html")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	writer := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWhileWriting$")
	writer.Dir, writer.Env = dir, append(os.Environ(), killedAt+"="+address, "HOME="+dir)
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = writer.Wait()
	}()
	for !isHalfWritten(dir) && !isClosed(ended) {
		if info, err := os.Stat(file); err == nil && info.Size() != int64(len("old")) {
			break // it writes into the old file, or has replaced it
		}
	}
	_ = writer.Process.Kill()
	<-ended
	if code := writer.ProcessState.ExitCode(); code > 0 { // -1 if it was killed
		t.Fatalf("the command ended with status %d before it was killed", code)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if isHalfWritten(dir) {
		if string(content) != "old" {
			t.Errorf("half of a file is left, and of the old file there are %d bytes", len(content))
		}
		return true
	}
	if text := strings.TrimSpace(string(content)); text != "old" && !strings.HasSuffix(text, "</html>") {
		t.Errorf("the file ends with %q", text[max(0, len(text)-100):])
	}
	return false
}

// isHalfWritten reports whether the folder has the file that is to replace the old one.
func isHalfWritten(dir string) bool {
	halves, _ := filepath.Glob(filepath.Join(dir, ".forest.html.*"))
	return len(halves) > 0
}

func isClosed(ended chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}
