package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// place has the paths of the playground's files. They are in .dev of the clone at root; manager and kubectl are in bin.
type place struct{ root string }

func (p place) devFile(name string) string { return filepath.Join(p.root, ".dev", name) }

// stateDir holds the control plane's files; it is removed with the playground.
func (p place) stateDir() string { return p.devFile("state") }

// configFile is the operator's configuration, which outlives the playground: it is the user's to edit.
func (p place) configFile() string { return p.devFile("config.yaml") }

// ledgerFile is the billing ledger. It goes with the playground, as the namespaces go that it names.
func (p place) ledgerFile() string { return filepath.Join(p.stateDir(), "billing.db") }

func (p place) logFile() string     { return p.devFile("playground.log") }
func (p place) pidFile() string     { return p.devFile("playground.pid") }
func (p place) managerFile() string { return filepath.Join(p.root, "bin", "manager") }
func (p place) kubectlFile() string { return filepath.Join(p.root, "bin", "kubectl") }

// kubeconfig returns the file of a user's kubeconfig. The name of the cluster admin's is kubeconfig alone, without a user.
func (p place) kubeconfig(user string) string {
	if user == controlplane.Admin {
		return p.devFile("kubeconfig")
	}
	return p.devFile(user + ".kubeconfig")
}

// tryLock takes the lock that the supervisor holds while it lives, and returns false if another process has it.
func (p place) tryLock() (*flock.Flock, bool, error) {
	if err := os.MkdirAll(p.devFile(""), 0o755); err != nil {
		return nil, false, fmt.Errorf("making %s: %w", p.devFile(""), err)
	}
	lock := flock.New(p.devFile("playground.lock"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, false, fmt.Errorf("locking the playground: %w", err)
	}
	return lock, locked, nil
}

// readPID returns the supervisor's process number, which is valid only while the supervisor holds the lock. `up` removes
// the file before it starts a supervisor, so that the number of a crashed supervisor is never read.
func (p place) readPID() (int, error) {
	for range 50 { // the supervisor writes the file a moment after it takes the lock
		text, err := os.ReadFile(p.pidFile())
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil {
			return pid, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return 0, fmt.Errorf("%s names no process, though the playground runs: end `playground supervise` by hand", p.pidFile())
}

// removeRemains removes the files of a playground that doesn't run any more. The caller holds the lock.
func (p place) removeRemains() error {
	kubeconfigs, err := filepath.Glob(p.devFile("*kubeconfig"))
	if err != nil {
		return err
	}
	for _, file := range append(kubeconfigs, p.pidFile(), p.stateDir()) {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("cleaning up after an earlier playground: %w", err)
		}
	}
	return nil
}

// userNames returns the users that have a kubeconfig now, in alphabetical order.
func (p place) userNames() []string {
	files, _ := filepath.Glob(p.devFile("*.kubeconfig")) // the pattern is valid
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(filepath.Base(file), ".kubeconfig")
	}
	return names
}

// usualUsers have a kubeconfig in every playground.
func usualUsers() []string { return []string{"alice", "bob", "carol", "dave", "mia"} }

// userName is what the name of a user of the playground looks like. It is the name of a file, too.
var userName = regexp.MustCompile(`^[a-z0-9][-.a-z0-9]*$`)

// parseUsers reads USERS: names separated by spaces, each with its groups behind colons, as in "eve otto:pay-oncall".
func parseUsers(text string) (map[string][]string, error) {
	users := map[string][]string{}
	for _, name := range usualUsers() {
		users[name] = nil
	}
	for word := range strings.FieldsSeq(text) {
		parts := strings.Split(word, ":")
		name, groups := parts[0], parts[1:]
		switch {
		case name == "" || slices.Contains(groups, ""):
			return nil, fmt.Errorf("USERS: %q is neither NAME nor NAME:GROUP:GROUP", word)
		case !userName.MatchString(name):
			return nil, fmt.Errorf("USERS: %q can't be a user: write lower-case letters, digits, - and ., with blanks between users", name)
		case slices.Contains(groups, "system"):
			return nil, fmt.Errorf("USERS: %q: groups of Kubernetes itself, such as system:masters, can't be given", word)
		case name == controlplane.Admin || name == "config" || name == "system":
			return nil, fmt.Errorf("USERS: %q can't be a user of the playground: take another name", name)
		}
		users[name] = groups
	}
	return users, nil
}
