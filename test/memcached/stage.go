// Package memcached plays the demonstration of informers that follow RBAC: the operator of examples/memcached on a real control
// plane, whose rights come and go. `make demo-informers` shows it, and a suite runs it as a test.
package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/audit"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// operator is the service account of examples/memcached/config/rbac.yaml.
const operator = "system:serviceaccount:memcached-system:memcached-operator"

// patience bounds the wait for what must come; how long it took is printed, not judged.
const patience = 90 * time.Second

// stage is a control plane with the example's operator.
type stage struct {
	out     io.Writer
	root    string
	cp      *controlplane.ControlPlane
	process *process.Process
	checked int
}

// Play plays the whole demonstration and prints to out what it does and sees. It fails at the first expectation that doesn't hold,
// and leaves neither process nor file behind.
func Play(ctx context.Context, out io.Writer) (err error) {
	root, err := devcluster.Root()
	if err != nil {
		return err
	}
	s := &stage{out: out, root: root}
	s.cp, err = controlplane.Start(ctx, controlplane.Options{
		Audit: true, Users: map[string][]string{operator: {"system:serviceaccounts", "system:serviceaccounts:memcached-system"}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.cp.Stop()) }()
	if err := s.startOperator(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n\nThe end of the operator's log:\n%s", err, s.process.LogTail(15))
		}
		err = errors.Join(err, s.process.Stop())
	}()
	for _, scene := range scenes() {
		s.say("\n%s", scene.story)
		if err := scene.play(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", scene.story, err)
		}
	}
	s.say("\nAll %d expectations held. Everything is stopped and removed.", s.checked)
	return nil
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// startOperator installs the example without any right to Deployments or Pods, and starts its operator.
func (s *stage) startOperator(ctx context.Context) error {
	for _, file := range []string{"cache.example.com_memcacheds.yaml", "rbac.yaml"} {
		if _, err := s.kubectl(ctx, "apply", "-f", s.config(file)); err != nil {
			return err
		}
	}
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Established", "crd/memcacheds.cache.example.com", "--timeout=60s"); err != nil {
		return err
	}
	binary := filepath.Join(s.cp.Dir, "memcached")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./examples/memcached")
	build.Dir = s.root
	if answer, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the example's operator: %w\n%s", err, bytes.TrimSpace(answer))
	}
	return process.OnFreePort(func(port int) (*process.Process, error) {
		probes := "127.0.0.1:" + strconv.Itoa(port)
		s.process = process.New(binary, []string{"--kubeconfig", s.cp.Kubeconfig(operator), "--health-probe-bind-address", probes},
			nil, filepath.Join(s.cp.Dir, "memcached.log"))
		return s.process, s.process.StartReady(ctx, process.HTTPOK(nil, "http://"+probes+"/readyz"))
	})
}

func (s *stage) config(file string) string {
	return filepath.Join(s.root, "examples", "memcached", "config", file)
}

// kubectl runs kubectl as the cluster's admin.
func (s *stage) kubectl(ctx context.Context, args ...string) (string, error) {
	k := devcluster.Kubectl{Path: s.cp.KubectlPath, Home: s.cp.Dir}
	stdout, stderr, code := k.Run(ctx, s.cp.Kubeconfig(controlplane.Admin), controlplane.Admin, "", args...)
	if code != 0 {
		return "", fmt.Errorf("kubectl %s: exit code %d: %s", strings.Join(args, " "), code, strings.TrimSpace(stderr))
	}
	return strings.TrimSpace(stdout), nil
}

// do runs kubectl and prints the command.
func (s *stage) do(ctx context.Context, command string) error {
	s.say("  $ kubectl %s", command)
	_, err := s.kubectl(ctx, strings.Fields(command)...)
	return err
}

// see waits until kubectl's answer holds all fragments, and prints it with the time that it took.
func (s *stage) see(ctx context.Context, command string, fragments ...string) error {
	return s.await(ctx, command, func(answer string) string {
		for _, fragment := range fragments {
			if !strings.Contains(answer, fragment) {
				return fmt.Sprintf("the answer lacks %q", fragment)
			}
		}
		return ""
	})
}

// await waits until judge finds nothing wrong with kubectl's answer.
func (s *stage) await(ctx context.Context, command string, judge func(answer string) string) error {
	began := time.Now()
	for {
		answer, err := s.kubectl(ctx, strings.Fields(command)...)
		wrong := ""
		if err != nil {
			wrong = err.Error()
		} else {
			wrong = judge(answer)
		}
		if wrong == "" {
			s.checked++
			s.say("  $ kubectl %s\n    %s\n    (after %.1f s)", command, strings.ReplaceAll(answer, "\n", "\n    "), time.Since(began).Seconds())
			return nil
		}
		if time.Since(began) > patience || ctx.Err() != nil {
			return fmt.Errorf("kubectl %s: %s; it says %q", command, wrong, answer)
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// requests counts what the operator asked about a namespace since a place in the audit log.
func (s *stage) requests(namespace string, since audit.Position) (int, error) {
	all, _, err := audit.Read(s.cp.AuditLog(), since)
	n := 0
	for _, r := range all {
		if r.User == operator && r.Namespace == namespace {
			n++
		}
	}
	return n, err
}

// quiet waits for d, and returns an error if the operator has sent more than most requests for a namespace meanwhile.
func (s *stage) quiet(ctx context.Context, namespace string, d time.Duration, most int) error {
	from, err := audit.End(s.cp.AuditLog())
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	}
	n, err := s.requests(namespace, from)
	if err != nil {
		return err
	}
	if n > most {
		return fmt.Errorf("%d requests for namespace %s in %s, want %d at most", n, namespace, d, most)
	}
	s.checked++
	s.say("  %d requests for namespace %s in %s", n, namespace, d)
	if !s.process.Running() {
		return os.ErrProcessDone
	}
	return nil
}
