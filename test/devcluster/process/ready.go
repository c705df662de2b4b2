package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyTimeout bounds the wait for one process: on two cores with a load of 20, three API servers that start at once have taken
// more than 90 s.
const readyTimeout = 3 * time.Minute

// ErrPortTaken means that another program took the port between our choice and the process's bind.
var ErrPortTaken = errors.New("address already in use")

// OnFreePort calls start with a free loopback port, and again with another one as long as start fails because another program took
// the port.
func OnFreePort(start func(port int) (*Process, error)) error {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		port, err := FreePort()
		if err != nil {
			return err
		}
		p, err := start(port)
		if !errors.Is(err, ErrPortTaken) || attempt == attempts {
			return err
		}
		if err := p.Stop(); err != nil {
			return err
		}
	}
}

// Ports are chosen below the range for outgoing connections (from 32768 on Linux, 49152 on macOS). Otherwise a connection could
// take a port between the choice and its use, or while a program restarts.
const lowestPort, highestPort = 20000, 32000

// FreePort returns a TCP port of the loopback address that is not in use at this moment. No other call returns it, in any process,
// until this process ends: what uses the port may start much later, or again.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		claim, err := net.ListenPacket("udp", address)
		if err != nil {
			last = err
			continue
		}
		l, err := net.Listen("tcp", address)
		if err == nil {
			claims.Store(port, claim)
			return port, l.Close()
		}
		last = errors.Join(err, claim.Close())
	}
	return 0, fmt.Errorf("looking for a free port between %d and %d: %w", lowestPort, highestPort, last)
}

// claims are UDP sockets, by number: whoever holds one has chosen the TCP port of that number.
var claims sync.Map

// StartReady starts the process and waits until it is ready.
func (p *Process) StartReady(ctx context.Context, ready func(context.Context) error) error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.WaitReady(ctx, ready)
}

// WaitReady calls ready until it returns nil. A process that ends meanwhile, or takes too long, is an error that shows the end of its log.
func (p *Process) WaitReady(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	for {
		last := ready(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.Done():
			tail := p.LogTail(20)
			if strings.Contains(tail, syscall.EADDRINUSE.Error()) {
				return fmt.Errorf("starting %s: %w", p.Name, ErrPortTaken)
			}
			return fmt.Errorf("%s ended at its start with exit code %d; the end of its log:\n%s", p.Name, p.ExitCode(), tail)
		case <-ctx.Done():
			return fmt.Errorf("starting %s: %w (%w); the end of its log:\n%s", p.Name, context.Cause(ctx), last, p.LogTail(20))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// HTTPOK returns a check that a GET of the address answers 200. A nil client means a plain one.
func HTTPOK(c *http.Client, address string) func(context.Context) error {
	if c == nil {
		c = &http.Client{Timeout: 2 * time.Second}
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := c.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s", address, answer.Status)
		}
		return nil
	}
}
