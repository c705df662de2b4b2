package webhooks_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// service passes connections on to the replicas that are ready, as kube-proxy does. A connection that is open stays with its replica.
type service struct {
	listener net.Listener

	mu    sync.Mutex
	ports []int // of the replicas that are ready
	next  int
}

func newService(port int) *service {
	GinkgoHelper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	Expect(err).NotTo(HaveOccurred())
	s := &service{listener: listener}
	DeferCleanup(listener.Close)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go s.pass(from)
		}
	}()
	return s
}

func (s *service) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.pick()))
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
}

func (s *service) pick() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ports) == 0 {
		return 0
	}
	s.next++
	return s.ports[s.next%len(s.ports)]
}

func (s *service) route(ports ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = ports
}

var _ = Describe("A roll-out of two replicas", func() {
	It("SUB-F14 while two replicas are replaced, one after the other, by processes with another file, no SubNamespace that is created by "+
		"dry run is refused; that file is in force", func(ctx SpecContext) {
		w := start(ctx, devcluster.Options{WithoutOperator: true})
		front := newService(w.WebhookPort)
		begin := func(name, file string) (*devcluster.Operator, int) {
			GinkgoHelper()
			port, err := process.FreePort()
			Expect(err).NotTo(HaveOccurred())
			o, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
				Kubeconfig: w.Kubeconfig(controlplane.Operator), Dir: filepath.Join(w.Dir, name), WebhookPort: port, Config: file,
				Args: []string{"--leader-elect"},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(o.Process().Kill)
			return o, port
		}
		end := func(o *devcluster.Operator) {
			GinkgoHelper()
			time.Sleep(time.Second) // a part of the preStop sleep: the replica gets no new connections any more
			code, err := o.Stop()
			Expect(err).NotTo(HaveOccurred())
			Expect(code).To(BeZero())
			Expect(o.Sound()).To(Succeed())
		}
		one, onePort := begin("one", w.OperatorConfig)
		other, otherPort := begin("other", w.OperatorConfig)
		front.route(onePort, otherPort)

		Expect(w.Admin().Create(ctx, build.Root("f14-root"))).To(Succeed())
		ask := func(ctx context.Context) error {
			return w.Admin().Create(ctx, build.SubNamespace("f14-root", "f14-web"), client.DryRunAll)
		}
		Eventually(ask).WithContext(ctx).WithTimeout(within).Should(Succeed())
		stop := throughout(ctx, ask)

		changed := strings.TrimRight(w.OperatorConfig, "\n") + "\nsubNamespaces: {labels: [f14]}\n"
		third, thirdPort := begin("third", changed)
		front.route(onePort, otherPort, thirdPort)
		front.route(otherPort, thirdPort)
		end(one)
		_, fourthPort := begin("fourth", changed)
		front.route(thirdPort, fourthPort)
		end(other)
		asked, failed := stop()
		Expect(failed).To(BeEmpty())
		Expect(asked).To(BeNumerically(">", 10))
		Expect(third.Process().Running()).To(BeTrue())
		Expect(w.Admin().Create(ctx, build.SubNamespace("f14-root", "f14-new", "f14", "x"))).To(Succeed())
	})
})

// throughout asks every 100 ms until stop is called, which returns how often, and what failed.
func throughout(ctx context.Context, ask func(context.Context) error) (stop func() (asked int, failed []error)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var number int
	var all []error
	running.Go(func() {
		for ctx.Err() == nil {
			if err := ask(context.WithoutCancel(ctx)); err != nil {
				all = append(all, err)
			}
			number++
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func() (int, []error) { cancel(); running.Wait(); return number, all }
}
