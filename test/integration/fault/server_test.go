package fault_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// The states of a road.
const (
	open    = "open"
	refused = "connections are refused"
	silent  = "connections are accepted, and nothing comes"
	garbled = "what comes is no TLS"
)

// road is a proxy between an operator and the API server.
type road struct {
	address, target string

	mu       sync.Mutex // guards what follows
	state    string
	listener net.Listener
	conns    []net.Conn
}

func newRoad(w *devcluster.World) *road {
	GinkgoHelper()
	target, err := url.Parse(w.Config(controlplane.Operator).Host)
	Expect(err).NotTo(HaveOccurred())
	r := &road{target: target.Host, address: "127.0.0.1:0"}
	r.turn(open)
	DeferCleanup(r.turn, refused)
	return r
}

// turn changes the state of the road. It closes the existing connections, except when they become silent.
func (r *road) turn(state string) {
	GinkgoHelper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
	if state != silent {
		for _, c := range r.conns {
			_ = c.Close()
		}
		r.conns = nil
	}
	if state == refused {
		Expect(r.listener.Close()).To(Succeed())
		r.listener = nil
		return
	}
	if r.listener == nil {
		listener, err := net.Listen("tcp", r.address)
		Expect(err).NotTo(HaveOccurred())
		r.listener, r.address = listener, listener.Addr().String()
		go r.accept(listener)
	}
}

func (r *road) accept(listener net.Listener) {
	for {
		operator, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = operator.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, operator, server)
		garbles := r.state == garbled
		r.mu.Unlock()
		if garbles {
			_, _ = io.WriteString(operator, "this is no TLS\n")
			_ = operator.Close()
			continue
		}
		go r.pass(operator, server)
		go r.pass(server, operator)
	}
}

// pass forwards the bytes that it reads, and drops them while the road is silent.
func (r *road) pass(from, to net.Conn) {
	defer func() { _ = to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		r.mu.Lock()
		state := r.state
		r.mu.Unlock()
		if state == silent {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// startBehind starts the operator of a World so that it reaches the API server by the road.
func (r *road) startBehind(ctx context.Context, w *devcluster.World) {
	GinkgoHelper()
	access, err := clientcmd.LoadFromFile(w.Kubeconfig(controlplane.Operator))
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range access.Clusters {
		cluster.Server = "https://" + r.address
	}
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*access, path)).To(Succeed())
	w.Operator, err = devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Kubeconfig: path, Dir: filepath.Join(w.Dir, "operator"), Config: configuration,
	})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("an operator whose API server is away", Ordered, ContinueOnFailure, func() {
	var st *stage
	var way *road

	BeforeAll(func(ctx SpecContext) {
		skipUnlessLong("outages of minutes")
		w, err := devcluster.Start(ctx, devcluster.Options{WithoutOperator: true, Operator: devcluster.OperatorOptions{Config: configuration},
			Components: []string{"config/components/distribution"}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		for _, kind := range []string{"Widget", "Gadget"} {
			Expect(w.Admin().Create(ctx, build.CustomResource("example.com", kind, strings.ToLower(kind)+"s"))).To(Succeed())
		}
		way = newRoad(w)
		way.startBehind(ctx, w)
		st = &stage{World: w, endings: map[string]ending{}}
	})

	It("FLT-F07 while connections are refused, silent or no TLS (`make test-long`), healthz is 200; the first write afterwards revokes a "+
		"removed sudoer's rights, and an added user gets theirs", func(ctx SpecContext) {
		for key, given := range map[string]struct {
			state string
			lasts time.Duration
		}{"f07a": {refused, 30 * time.Second}, "f07b": {silent, time.Minute}, "f07c": {garbled, 30 * time.Second}} {
			s := st.scene(key)
			s.withoutClaims = true
			tenant(ctx, s)
			mark, err := st.Mark(ctx)
			Expect(err).NotTo(HaveOccurred())
			way.turn(given.state)
			s.create(ctx, s.source("s", "1"))
			change(ctx, s, s.payments().Object(), func(l *v1alpha1.LNamespace) {
				l.Spec.Sudoers, l.Spec.Users = build.Users(s.own("sue")), append(l.Spec.Users, build.Users(s.own("ann"))...)
			})
			alive := func(ctx context.Context) error { return process.HTTPOK(nil, st.Operator.HealthURL+"/healthz")(ctx) }
			Consistently(ctx, alive).WithTimeout(given.lasts).WithPolling(time.Second).Should(Succeed(), given.state)
			way.turn(open)
			s.loses(ctx, s.own("bob"))
			Eventually(ctx, s.users).WithTimeout(3*time.Minute).Should(ContainElement(s.own("ann")), s.explain)
			s.ready(ctx)
			writes, err := st.Writes(ctx, mark)
			Expect(err).NotTo(HaveOccurred())
			Expect(s.firstWrite(writes)).To(Equal("clusterrolebindings warren:sudo:"+s.own("payments")), "revocations first: %+v", writes)
		}
		Expect(st.Operator.Process().Running()).To(BeTrue())
	}, SpecTimeout(15*time.Minute))

	It("FLT-F39 while etcd is out of space for a minute (`make test-long`), reads go on and healthz is 200; afterwards all is written, and "+
		"no copy is made anew", func(ctx SpecContext) {
		s := st.scene("f39")
		s.withoutClaims = true
		tenant(ctx, s)
		s.create(ctx, s.source("s", "1"), build.SubNamespace(s.own("payments"), s.own("web")))
		s.bound(ctx, "payments", "web")
		s.copied(ctx, "web", "s", "1")
		before := build.Secret(s.own("web"), "s", "")
		s.exist(ctx, before)
		change(ctx, s, s.source("s", ""), func(o *corev1.Secret) { o.Data["key"] = []byte("2") })
		Expect(st.ControlPlane.AlarmEtcd(ctx, true)).To(Succeed())
		Eventually(ctx, func() error { return st.Admin().Create(ctx, build.Namespace(s.own("probe"))) }).
			Should(MatchError(ContainSubstring("space exceeded")))
		Consistently(ctx, func(g Gomega) {
			g.Expect(process.HTTPOK(nil, st.Operator.HealthURL+"/healthz")(ctx)).To(Succeed())
			g.Expect(st.Admin().List(ctx, &corev1.NamespaceList{})).To(Succeed(), "reads go on")
		}).WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
		Expect(st.ControlPlane.AlarmEtcd(ctx, false)).To(Succeed())
		s.copied(ctx, "web", "s", "2")
		now := build.Secret(s.own("web"), "s", "")
		s.exist(ctx, now)
		Expect(now.UID).To(Equal(before.UID))
		s.create(ctx, build.SubNamespace(s.own("payments"), s.own("later")))
		s.bound(ctx, "payments", "later")
	}, SpecTimeout(10*time.Minute))

	It("FLT-F41 while the API server is killed every 10 s for two minutes (`make test-long`), story S6 comes to its end; then a "+
		"SubNamespace gets its Namespace", func(ctx SpecContext) {
		s := st.scene("f41")
		s.withoutClaims = true
		family(ctx, s)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer GinkgoRecover()
			sources(ctx, s)
		}()
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
			Expect(st.ControlPlane.APIServer.Kill()).To(Succeed())
			Expect(st.ControlPlane.APIServer.Start()).To(Succeed())
			Expect(st.ControlPlane.Ready(ctx)).To(Succeed())
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
		}
		Eventually(ctx, done).WithTimeout(3 * time.Minute).Should(BeClosed())
		s.create(ctx, build.SubNamespace(s.own("payments"), s.own("after")))
		s.bound(ctx, "payments", "after")
	}, SpecTimeout(12*time.Minute))
})
