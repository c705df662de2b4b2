package connection

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOptionsOfTheKernel reads from the kernel the options of a socket. With these values, a dead connection ends within 25 s.
func TestOptionsOfTheKernel(t *testing.T) {
	address, _ := server(t)
	c, err := Dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(conn).Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]struct{ id, want int }{
		"TCP_KEEPIDLE": {unix.TCP_KEEPIDLE, 10}, "TCP_KEEPINTVL": {unix.TCP_KEEPINTVL, 5}, "TCP_KEEPCNT": {unix.TCP_KEEPCNT, 3},
		"TCP_USER_TIMEOUT": {unix.TCP_USER_TIMEOUT, 25_000},
	} {
		err := raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option.id); err != nil || got != option.want {
				t.Errorf("%s is %d, want %d (%v)", name, got, option.want, err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}
