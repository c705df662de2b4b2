package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/warren-tenancy/warren/test/controlplane"
)

// place knows the playground's files. All of them lie in .dev of the clone, and kubectl in bin.
type place struct{ root string }

func (p place) dev(name string) string { return filepath.Join(p.root, ".dev", name) }

// state holds the control plane's files; it goes with the playground.
func (p place) state() string { return p.dev("state") }

// config is the operator's configuration, which outlives the playground: it is the user's to edit.
func (p place) config() string { return p.dev("config.yaml") }

func (p place) log() string     { return p.dev("playground.log") }
func (p place) pidFile() string { return p.dev("playground.pid") }
func (p place) manager() string { return filepath.Join(p.root, "bin", "manager") }
func (p place) kubectl() string { return filepath.Join(p.root, "bin", "kubectl") }

// kubeconfig of a user; the cluster admin's has no name in front.
func (p place) kubeconfig(user string) string {
	if user == controlplane.Admin {
		return p.dev("kubeconfig")
	}
	return p.dev(user + ".kubeconfig")
}

// lock takes the lock that the supervisor holds while it lives, or says that somebody has it.
func (p place) lock() (*flock.Flock, bool, error) {
	if err := os.MkdirAll(p.dev(""), 0o755); err != nil {
		return nil, false, fmt.Errorf("making %s: %w", p.dev(""), err)
	}
	lock := flock.New(p.dev("playground.lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, false, fmt.Errorf("locking the playground: %w", err)
	}
	return lock, locked, nil
}

// pid is the supervisor's process number. It means something only while the supervisor holds the lock: whoever takes
// the lock removes the file first, so that a crash's number is never read again.
func (p place) pid() (int, error) {
	for range 50 { // between the lock and the file there is a moment
		text, err := os.ReadFile(p.pidFile())
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
			return pid, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s names no process, though the playground runs: end `playground supervise` by hand", p.pidFile())
}

// clean removes what a playground leaves that no longer runs. The caller holds the lock.
func (p place) clean() error {
	kubeconfigs, err := filepath.Glob(p.dev("*kubeconfig"))
	if err != nil {
		return err
	}
	for _, file := range append(kubeconfigs, p.pidFile(), p.state()) {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("cleaning up after an earlier playground: %w", err)
		}
	}
	return nil
}

// usualUsers have a kubeconfig in every playground.
func usualUsers() []string { return []string{"alice", "bob", "carol", "dave", "mia"} }

// parseUsers reads USERS: names separated by spaces, each with its groups behind colons, as in "eve otto:pay-oncall".
func parseUsers(text string) (map[string][]string, error) {
	users := map[string][]string{}
	for _, name := range usualUsers() {
		users[name] = nil
	}
	for _, word := range strings.Fields(text) {
		parts := strings.Split(word, ":")
		name, groups := parts[0], parts[1:]
		switch {
		case name == "" || slices.Contains(groups, ""):
			return nil, fmt.Errorf("USERS: %q is neither NAME nor NAME:GROUP:GROUP", word)
		case name == controlplane.Admin || name == "config" || strings.ContainsAny(name, "/,"):
			return nil, fmt.Errorf("USERS: %q can't be a user of the playground: take another name", name)
		}
		users[name] = groups
	}
	return users, nil
}
