package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// The supervisor sends its messages to `up` over a pipe, one a line. The last of them begins with readyLine or failedLine.
const (
	readyLine  = "ready "
	failedLine = "failed "
	lineBreak  = "\x1f" // replaces a line break within a message
)

// startPlayground starts the supervisor and waits until it is ready.
func startPlayground(ctx context.Context, p place, userText string) error {
	users, err := parseUsers(userText)
	if err != nil {
		return err
	}
	if _, err := os.Stat(p.managerFile()); err != nil {
		return errors.New("bin/manager is missing; run: make up")
	}
	lock, locked, err := p.tryLock()
	if err != nil {
		return err
	}
	if !locked {
		for _, user := range p.userNames() {
			delete(users, user)
		}
		if missing := slices.Sorted(maps.Keys(users)); len(missing) > 0 {
			return fmt.Errorf("the playground runs already, without user %s: make down up USERS=%q starts it anew, and deletes its tenants",
				missing[0], userText)
		}
		fmt.Println(`The playground runs already. For other users, or for another build: make down up USERS="…", which deletes its tenants`)
		printHint(p)
		return nil
	}
	if err := errors.Join(p.removeRemains(), lock.Unlock()); err != nil {
		return err
	}
	return launchSupervisor(ctx, p, userText)
}

func launchSupervisor(ctx context.Context, p place, userText string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	log, err := os.Create(p.logFile())
	if err != nil {
		return fmt.Errorf("making the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	reports, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = reports.Close() }()
	cmd := exec.Command(self, "supervise", userText)
	cmd.Dir = p.root
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs} // file descriptor 3 in the supervisor
	// A session of its own, so that neither ctrl-C in the terminal nor the terminal's end reaches the supervisor.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	_ = theirs.Close()
	stopAsking := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stopAsking()
	if err := followReports(p, reports); err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if ctx.Err() != nil {
			return errors.New("interrupted; nothing runs")
		}
		return err
	}
	printHint(p)
	return nil
}

// followReports prints what the supervisor reports until it is ready or fails.
func followReports(p place, reports io.Reader) error {
	lines := bufio.NewScanner(reports)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := strings.ReplaceAll(lines.Text(), lineBreak, "\n")
		if reason, ok := strings.CutPrefix(text, failedLine); ok {
			return errors.New(reason)
		}
		if what, ok := strings.CutPrefix(text, readyLine); ok {
			fmt.Println(what)
			return nil
		}
		fmt.Println(text)
	}
	return fmt.Errorf("the supervisor ended without a word: see %s", p.logFile())
}

// printHint prints what to type next: a cluster admin creates a tenant, alice grows it.
func printHint(p place) {
	fmt.Printf(`
  export PATH=%[1]s/bin:$PATH
  export KUBECONFIG=%[6]s
  kubectl create -f %[3]s
  kubectl wait --for=condition=Ready lns/payments
  export KUBECONFIG=%[2]s
  kubectl create -f %[4]s -f %[5]s
  kubectl warren tree payments

To look at it in a browser: kubectl warren ui --open
Each user has a file beside these, .dev/USER.kubeconfig: %[9]s.
The cluster admin's is %[6]s.
The operator's configuration is %[7]s, its log %[8]s.
Who pays for what: kubectl warren billing sql 'SELECT namespace, tenant, cost_center, valid_from FROM tenant_billing_periods' --config %[7]s
To end it: make down
`, p.root, p.kubeconfig("alice"), sampleFiles()[0], sampleFiles()[1], sampleFiles()[2],
		p.kubeconfig(controlplane.Admin), p.configFile(), p.devFile("manager.log"), strings.Join(p.userNames(), ", "))
}

// sampleFiles are a tenant, a sub-namespace of it, and a Secret that reaches the whole tree.
func sampleFiles() [3]string {
	return [3]string{
		"config/samples/tenancy_v1alpha1_lnamespace.yaml",
		"config/samples/tree/tenancy_v1alpha1_subnamespace.yaml",
		"config/samples/tree/propagated_secret.yaml",
	}
}
