// Package connection is how the manager reaches the API server: the kubeconfig, and connections that end when the other side has gone
// silent.
//
// A firewall that forgets a connection, or a node that loses its power, drops packets without a word. A client that only reads, as a
// watch does, then waits: Go's own probes give up after five minutes, and until then the operator doesn't learn of a right that was
// taken away. HTTP/2 has pings of its own, but the watches of propagation speak HTTP/1.1, which has none. Two limits end such a
// connection:
//
//   - Packets are dropped: the kernel's probes go unanswered, and the connection ends within 25 s.
//   - Packets are answered, by a proxy whose other side is dead, but no byte comes: the connection ends after 100 s. The API
//     server sends a bookmark on each watch at least every 75 s, so a watch that is only idle goes on. Shorter watches would
//     show a dead proxy earlier, but each of them would cost 2 requests a minute for ever.
package connection

import (
	"context"
	"net"
	"time"
)

const (
	// idle is the silence before the kernel sends its first probe, interval the time between two probes, probes how many may be lost.
	idle, interval = 10 * time.Second, 5 * time.Second
	probes         = 3
	// unanswered is how long sent bytes may stay without an acknowledgement before the connection ends; the kernel's default is 15 minutes.
	unanswered = idle + probes*interval
	// silence is how long no byte may come, although the other side acknowledges ours, before the connection ends.
	silence = 100 * time.Second
	// connecting bounds the time to make a connection.
	connecting = 20 * time.Second
)

// Dial is for the field Dial of a rest.Config.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout:         connecting,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: interval, Count: probes},
		Control:         boundUnanswered,
	}
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn{c, silence}, nil
}

// conn is a connection whose Read ends with an error when no byte has come for the time silence.
type conn struct {
	net.Conn
	silence time.Duration
}

// Read implements net.Conn.
func (c conn) Read(to []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(to)
}
