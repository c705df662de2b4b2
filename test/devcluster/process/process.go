// Package process runs other programs as children, such as the control plane's components and the operator, and waits until they are ready.
// On Linux these children never outlive this program.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one child process that can be stopped and started again. On Linux it dies with the program that started it. Its methods may be
// called from any goroutine.
type Process struct {
	// Name of the program, for messages.
	Name string
	// LogFile takes all output of the process, appended over restarts.
	LogFile string

	path string
	args []string
	env  []string

	mu      sync.Mutex
	cmd     *exec.Cmd
	done    chan struct{}
	logFrom int64 // where in the log the lines of the last start begin
}

// killAfter is how long a process may take to end after SIGTERM. The operator's Deployment allows as much. The API server needs some
// seconds to drain watches.
const killAfter = 20 * time.Second

// New describes a process; Start starts it. env is added to the program's own environment.
func New(path string, args, env []string, logFile string) *Process {
	return &Process{Name: filepath.Base(path), LogFile: logFile, path: path, args: args, env: env}
}

// Start starts the process, and does not wait for it to be ready.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("%s runs already", p.Name)
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	if info, err := log.Stat(); err == nil {
		p.logFrom = info.Size()
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	if err := onLastingThread(cmd.Start); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		_ = cmd.Wait() // its exit status is in cmd.ProcessState
		close(done)
	}()
	return nil
}

func (p *Process) running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Running reports whether the process runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// Done is closed when the process that was last started has ended.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		ended := make(chan struct{}) // a process that never ran has ended
		close(ended)
		return ended
	}
	return p.done
}

// PID returns the process's number, 0 before its first start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// ExitCode returns the exit code of a process that has ended, -1 if a signal ended it or it never ran.
func (p *Process) ExitCode() int {
	<-p.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal; to a process that has ended it does nothing. SIGSTOP makes a process hang until SIGCONT.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Stop ends the process by SIGTERM, or SIGKILL if that takes too long, and waits for its end.
func (p *Process) Stop() error {
	err := errors.Join(p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
	select {
	case <-p.Done():
		return err
	case <-time.After(killAfter):
		return errors.Join(err, p.Kill())
	}
}

// Kill ends the process by SIGKILL, as a crash would, and waits for its end.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.Done()
	return err
}

// LogTail returns the last lines that the process printed since its last start.
func (p *Process) LogTail(lines int) string {
	p.mu.Lock()
	from := p.logFrom
	p.mu.Unlock()
	f, err := os.Open(p.LogFile)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	const enough = 64 << 10
	if info, err := f.Stat(); err == nil {
		from = max(from, info.Size()-enough)
	}
	content, err := io.ReadAll(io.NewSectionReader(f, from, enough))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
