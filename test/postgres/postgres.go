// Package postgres runs Debian's PostgreSQL for tests: a server of their own in a new folder, on a socket there.
package postgres

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
	"syscall"
	"testing"
	"time"
)

// Missing is the message of a test that is skipped because no server is installed.
const Missing = "PostgreSQL's server is missing: install Debian's package postgresql, or put initdb and postgres on the PATH"

// Server is a PostgreSQL server with a data directory of its own. It listens only on a socket in Dir, so that no ports collide.
type Server struct {
	// Dir is the folder of its data and its socket.
	Dir string
	// DSN reaches its database as its superuser.
	DSN string

	bin     string
	process *exec.Cmd
	output  bytes.Buffer
}

// Installed reports whether there is a server to run.
func Installed() bool { return binaries() != "" }

// Require skips a test if no server is installed. In CI, the test fails.
func Require(t testing.TB) {
	t.Helper()
	switch {
	case Installed():
	case os.Getenv("CI") == "true":
		t.Fatal(Missing)
	default:
		t.Skip(Missing)
	}
}

// Start makes a data directory and starts its server. Stop ends it and removes all files.
func Start() (*Server, error) {
	s := &Server{bin: binaries()}
	if err := s.make(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting PostgreSQL: %w\n%s", err, s.output.String())
	}
	return s, nil
}

func binaries() string {
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

func (s *Server) make() error {
	// Not TMPDIR: the name of a socket has 107 bytes at most.
	dir, err := os.MkdirTemp("/tmp", "warren-billing-")
	if err != nil {
		return err
	}
	s.Dir, s.DSN = dir, "host="+dir+" user=warren dbname=postgres"
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
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", data, "-U", "warren", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr, initdb.Stdout, initdb.Stderr = dir, process, &s.output, &s.output
	if err := initdb.Run(); err != nil {
		return err
	}
	return s.Resume()
}

// Resume starts the server on its cluster again.
func (s *Server) Resume() error {
	process := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() == 0 {
		var err error
		if process.Credential, err = otherUser(); err != nil {
			return err
		}
	}
	s.process = exec.Command(filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.Dir, "data"), "-k", s.Dir, "-c",
		"listen_addresses=", "-c", "fsync=off",
		"-c", "max_connections=100", "-c", "log_min_messages=log", "-c", "log_min_error_statement=panic")
	s.process.Dir, s.process.SysProcAttr = s.Dir, process
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
func (s *Server) ready(stderr io.Reader) error {
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

// Halt ends the server at once, and leaves its cluster.
func (s *Server) Halt() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGQUIT)
		_ = s.process.Wait()
		s.process = nil
	}
}

// Stop ends the server and removes its files.
func (s *Server) Stop() {
	s.Halt()
	if s.Dir != "" {
		_ = os.RemoveAll(s.Dir)
	}
}
