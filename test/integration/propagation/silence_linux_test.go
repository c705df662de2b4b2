package propagation_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// forwarder passes bytes between an operator and the API server, and can make the connections that exist go silent.
type forwarder struct {
	listener net.Listener
	target   string

	mu    sync.Mutex // guards lines
	lines map[*line]bool
}

// line is one connection of the operator.
type line struct {
	operator, server net.Conn
	silent           atomic.Bool
}

func newForwarder(w *devcluster.World) *forwarder {
	GinkgoHelper()
	target, err := url.Parse(w.Config(controlplane.Operator).Host)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	f := &forwarder{listener: listener, target: target.Host, lines: map[*line]bool{}}
	go f.accept()
	DeferCleanup(func() {
		_ = listener.Close()
		for _, l := range f.all() {
			l.close()
		}
	})
	return f
}

func (f *forwarder) accept() {
	for {
		operator, err := f.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", f.target)
		if err != nil {
			_ = operator.Close()
			continue
		}
		l := &line{operator: operator, server: server}
		f.mu.Lock()
		f.lines[l] = true
		f.mu.Unlock()
		go l.forward(server, operator)
		go l.forward(operator, server)
	}
}

// forward passes bytes on, or swallows them, until one side ends. A silent line does not pass on that end, either.
func (l *line) forward(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if l.silent.Load() && err == nil {
			continue
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			if !l.silent.Load() {
				l.close()
			}
			return
		}
	}
}

func (l *line) close() {
	_ = l.operator.Close()
	_ = l.server.Close()
}

func (f *forwarder) all() []*line {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*line
	for l := range f.lines {
		all = append(all, l)
	}
	return all
}

// swallow makes the existing lines silent: what arrives is acknowledged, but not passed on.
func (f *forwarder) swallow() {
	for _, l := range f.all() {
		l.silent.Store(true)
	}
}

// drop acts like a firewall that has forgotten its connections: the operator's packets on the existing lines are not even acknowledged.
func (f *forwarder) drop() {
	GinkgoHelper()
	f.swallow()
	nothing := unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	for _, l := range f.all() {
		raw, err := l.operator.(*net.TCPConn).SyscallConn()
		Expect(err).NotTo(HaveOccurred())
		_ = raw.Control(func(fd uintptr) { // a connection that has ended needs no filter
			Expect(unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &nothing)).To(Succeed())
		})
	}
}

// startOperator starts the operator of w behind the forwarder.
func (f *forwarder) startOperator(ctx context.Context, w *devcluster.World) {
	GinkgoHelper()
	access, err := clientcmd.LoadFromFile(w.Kubeconfig(controlplane.Operator))
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range access.Clusters {
		cluster.Server = "https://" + f.listener.Addr().String()
	}
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*access, path)).To(Succeed())
	w.Operator, err = devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: path, Dir: filepath.Join(w.Dir, "operator"), Config: setup{}.config(),
	})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("an operator whose connections go silent", func() {
	var f *family
	var line *forwarder
	BeforeEach(func(ctx SpecContext) {
		w := start(ctx, setup{WithoutOperator: true})
		line = newForwarder(w)
		line.startOperator(ctx, w)
		f = grow(ctx, w)
	})

	revoke := func(ctx context.Context, silence func()) {
		GinkgoHelper()
		b := build.Source(binding(f.acme, "s", "view", "eve"), v1alpha1.ModeUpdate)
		f.create(ctx, b)
		f.copied(ctx, b, f.tree()...)
		silence()
		f.remove(ctx, b)
		f.absent(ctx, b, f.tree()...)
	}

	It("FLT-F50 if packets on the operator's existing connections are dropped silently, the copies of a RoleBinding that is deleted then "+
		"are deleted all the same", func(ctx SpecContext) {
		revoke(ctx, line.drop)
	})
})
