package ui

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/protect"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/ui/restrict"
)

const (
	// headerPatience is how long a browser may take to send a header, bodyPatience to send a whole request.
	headerPatience = 5 * time.Second
	bodyPatience   = 30 * time.Second
	// idlePatience is how long a connection without a request is kept.
	idlePatience = 2 * time.Minute
	// endPatience is how long the pages may take to read that the program ends.
	endPatience = 2 * time.Second
)

func restrictTransport(prefix string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return restrict.NewTransport(next, prefix) }
}

// runListener answers requests until ctx is done or the lifetime is over.
func (v *server) runListener(ctx context.Context) error {
	listener, err := listenLocally(ctx, v.settings.port)
	if err != nil {
		return fmt.Errorf("listening on 127.0.0.1: %w: choose another --port", err)
	}
	// ending does not inherit the cause of ctx, which names a signal.
	ending, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	over := time.AfterFunc(v.settings.lifetime,
		func() { end(fmt.Errorf("kubectl warren ui has ended: --lifetime %s is over", v.settings.lifetime)) })
	defer over.Stop()
	context.AfterFunc(ctx, func() { end(errors.New("kubectl warren ui has ended")) })

	web := &http.Server{
		Handler: v.guard.Handler(v.newHandler(ending)), ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience, IdleTimeout: idlePatience,
		MaxHeaderBytes: protect.MaxHeader, DisableGeneralOptionsHandler: true,
		ErrorLog: log.New(io.Discard, "", 0), // it would hold addresses of requests
	}
	served, followed := make(chan error, 1), make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	go func() { followed <- v.follower.Run(ending) }()
	removeFile, err := v.printAddress(ending, "http://"+listener.Addr().String())
	defer removeFile()
	if err != nil {
		end(err)
	}
	select {
	case err = <-served:
	case err = <-followed:
	case <-ending.Done():
	}
	end(err)
	patience, stop := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer stop()
	_ = web.Shutdown(patience)
	_ = web.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// listenLocally listens on a loopback address that is random, so that no program has served a page there before: such a
// page, or its service worker, would get what the browser sends to the same address and port. If port is not 0, or the
// system has no other loopback address, listenLocally uses 127.0.0.1.
func listenLocally(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	if port == 0 {
		var random [3]byte
		_, _ = rand.Read(random[:])
		own := netip.AddrFrom4([4]byte{127, 1 + random[0]%254, random[1], 1 + random[2]%254})
		if listener, err := config.Listen(ctx, "tcp", netip.AddrPortFrom(own, 0).String()); err == nil {
			return listener, nil
		}
	}
	return config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// printAddress prints an address that works once, and another each time when the person presses Enter; with --open it
// has the browser open one. The function that it returns removes the file of --open.
func (v *server) printAddress(ctx context.Context, origin string) (removeFile func(), err error) {
	out := v.inv.Streams.Out
	removeFile = func() {}
	if v.settings.open {
		login := v.guard.NewLogin()
		if removeFile, err = openBrowser(ctx, origin+login); err != nil {
			return removeFile, err
		}
		v.guard.OnLogin(login, removeFile)
	}
	printAddress := func() error {
		_, err := terminal.Fprintf(out, "forest of %s as %s:\n%s%s\n", v.place, v.describeReader(), origin,
			v.guard.NewLogin())
		return err
	}
	if err := printAddress(); err != nil {
		return removeFile, fmt.Errorf("printing the address: %w", err)
	}
	terminal.Fprintln(out, "works once; Enter prints another, Ctrl-C ends")
	go func() {
		for lines := bufio.NewScanner(v.inv.Streams.In); lines.Scan() && ctx.Err() == nil; {
			_ = printAddress()
		}
	}()
	return removeFile, nil
}
