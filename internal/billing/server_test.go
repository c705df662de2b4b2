package billing_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server is a PostgreSQL for all tests of the package, started by the first that needs one.
var server postgresServer

type postgresServer struct {
	once    sync.Once
	dir     string
	process *exec.Cmd
	output  bytes.Buffer
	err     error
}

// start returns a data source name. Where no server is installed the test is skipped, but not in CI.
func (s *postgresServer) start(t *testing.T) (dsn string) {
	t.Helper()
	bin := postgresBin()
	if bin == "" {
		const advice = "PostgreSQL's server is missing: install Debian's package postgresql, or put initdb and postgres on the PATH"
		if os.Getenv("CI") == "true" {
			t.Fatal(advice)
		}
		t.Skip(advice)
	}
	s.once.Do(func() { s.err = s.run(bin) })
	if s.err != nil {
		t.Fatalf("starting PostgreSQL: %v\n%s", s.err, s.output.String())
	}
	return "host=" + s.dir + " user=warren dbname=postgres"
}

func postgresBin() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}

// run makes a cluster in a new folder and starts a server that listens only on a socket there: no port to collide on.
func (s *postgresServer) run(bin string) error {
	// Not TMPDIR: the name of a socket has 107 bytes at most.
	dir, err := os.MkdirTemp("/tmp", "warren-billing-")
	if err != nil {
		return err
	}
	s.dir = dir
	process := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		if process.Credential, err = otherUser(); err != nil {
			return err
		}
		if err := os.Chown(dir, int(process.Credential.Uid), int(process.Credential.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "warren", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr, initdb.Stdout, initdb.Stderr = dir, process, &s.output, &s.output
	if err := initdb.Run(); err != nil {
		return err
	}
	s.process = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "max_connections=100", "-c", "log_min_messages=log", "-c", "log_min_error_statement=panic")
	s.process.Dir, s.process.SysProcAttr = dir, process
	stderr, err := s.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	return s.ready(stderr)
}

// ready returns when the server takes connections.
func (s *postgresServer) ready(stderr io.Reader) error {
	guard := time.AfterFunc(time.Minute, func() { _ = s.process.Process.Kill() })
	defer guard.Stop()
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(&s.output, lines.Text())
		if strings.Contains(lines.Text(), "database system is ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return nil
		}
	}
	return fmt.Errorf("it ended: %w", s.process.Wait())
}

func otherUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.ParseUint(u.Uid, 10, 32)
			gid, _ := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("it doesn't run as root, and there is neither a user postgres nor nobody")
}

func (s *postgresServer) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT) // at once
		_ = s.process.Wait()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
