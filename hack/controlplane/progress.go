package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows how far a build is: on a terminal one line that is rewritten each second, elsewhere (a log) one line
// every half minute, so that nobody takes minutes of silence for a hang. The go command writes its output to it: with
// -v, that is the name of one package a line.
type progress struct {
	out      io.Writer
	terminal bool
	total    int
	began    time.Time
	stop     chan struct{}

	mu        sync.Mutex
	component string
	number    int
	packages  int
	expected  int // packages, or 0 if that is not known
	since     time.Time
	output    []byte
}

func newProgress(out *os.File, total int) *progress {
	p := &progress{
		out: out, terminal: term.IsTerminal(int(out.Fd())), total: total,
		began: time.Now(), stop: make(chan struct{}),
	}
	_, _ = fmt.Fprintln(out, "building a control plane from Go modules: 10 to 40 minutes the first time, seconds when Go's cache is warm")
	go p.tick()
	return p
}

func (p *progress) tick() {
	every := 30 * time.Second
	if p.terminal {
		every = time.Second
	}
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(every):
			p.mu.Lock()
			p.show("")
			p.mu.Unlock()
		}
	}
}

// show prints the state and then end, which is the result of the component, or empty while it is being built. The caller holds mu.
func (p *progress) show(end string) {
	text := fmt.Sprintf("[%d/%d] %s: %s", p.number, p.total, p.component, time.Since(p.since).Round(time.Second))
	switch {
	case p.expected > 0:
		text += fmt.Sprintf(", %d of %d packages compiled", min(p.packages, p.expected), p.expected)
	case p.packages > 0:
		text += fmt.Sprintf(", %d packages compiled", p.packages)
	}
	switch {
	case p.terminal && end == "":
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", text)
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s%s\n", text, end)
	default:
		_, _ = fmt.Fprintf(p.out, "%s%s\n", text, end)
	}
}

func (p *progress) start(component string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.component, p.packages, p.expected, p.since, p.output = component, 0, 0, time.Now(), nil
	p.number++
	if p.terminal {
		p.show("")
	}
}

// expect tells how many packages the component has to compile.
func (p *progress) expect(packages int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected, p.packages = packages, 0
}

func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(", done")
}

func (p *progress) fail(component string, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.stop)
	p.show(", failed")
	return fmt.Errorf("building %s: %w", component, err)
}

func (p *progress) finish(what string) {
	close(p.stop)
	_, _ = fmt.Fprintf(p.out, "%s, after %s\n", what, time.Since(p.began).Round(time.Second))
}

// Write counts the compiled packages and keeps the last 8 KiB of the output for an error message.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range bytes.Lines(b) {
		if !bytes.HasPrefix(line, []byte("go: ")) { // "go: downloading …" is no package
			p.packages++
		}
	}
	p.output = append(p.output, b...)
	if keep := 8 << 10; len(p.output) > keep {
		p.output = p.output[len(p.output)-keep:]
	}
	return len(b), nil
}

// lastLines returns the last lines of what was written: the reason of a failure is among them.
func (p *progress) lastLines() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(p.output)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
