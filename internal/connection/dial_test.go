package connection

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// server accepts one connection on loopback.
func server(t *testing.T) (address string, accepted <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := make(chan net.Conn, 1)
	go func() {
		if one, err := l.Accept(); err == nil {
			c <- one
		}
	}()
	return l.Addr().String(), c
}

func TestDialedConnectionReads(t *testing.T) {
	address, accepted := server(t)
	c, err := Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := (<-accepted).Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if n, err := c.Read(got); n != 1 || err != nil || got[0] != 'x' {
		t.Errorf("read %d %q: %v", n, got, err)
	}
}

func TestReadEndsWhereNothingComes(t *testing.T) {
	address, accepted := server(t)
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	peer := <-accepted
	c := conn{raw, 50 * time.Millisecond}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want a deadline: the peer is alive and silent", err)
	}
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	c.silence = time.Minute // the first deadline has passed: only one of its own lets the next read succeed
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("each read has a deadline of its own: read %d: %v", n, err)
	}
}
