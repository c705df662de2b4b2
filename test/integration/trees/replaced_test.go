package trees_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/warren-tenancy/warren/test"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// namespaceReplaced holds the operator's request to delete a namespace on its way to the API server until another
// namespace has the name. The World's own operator must be stopped.
func namespaceReplaced(ctx SpecContext, c cluster) {
	GinkgoHelper()
	door := &door{path: "/api/v1/namespaces/d14-web", arrived: make(chan struct{}), open: make(chan struct{})}
	operator, err := devcluster.StartOperator(ctx, devcluster.OperatorOptions{
		Manager: built.Manager, Config: fixture,
		Dir: filepath.Join(c.Dir, "operator-behind-door"), Kubeconfig: door.kubeconfig(c),
	})
	Expect(err).NotTo(HaveOccurred())
	defer func() { _, _ = operator.Stop() }()
	c.Create(ctx, build.Root("d14-payments"))
	c.grow(ctx, "d14-payments/d14-web")
	sub := subNamespace("d14-payments/d14-web")
	c.Delete(ctx, sub)
	Eventually(door.arrived).WithContext(ctx).Should(BeClosed())
	c.Delete(ctx, build.Namespace("d14-web"))
	c.Gone(ctx, build.Namespace("d14-web"))
	replacement := build.Namespace("d14-web")
	c.Create(ctx, replacement)
	close(door.open)
	c.Gone(ctx, sub)
	Expect(door.answer()).To(Equal(http.StatusConflict))
	Consistently(c.ns("d14-web")).WithContext(ctx).WithTimeout(test.Quiet(10 * time.Second)).
		Should(And(active(), HaveField("ObjectMeta.UID", replacement.UID)))
}

// door passes requests to the API server, but holds the first DELETE of one path until it is opened.
type door struct {
	path          string
	arrived, open chan struct{}

	mu   sync.Mutex
	code int
}

func (d *door) answer() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.code
}

// kubeconfig writes a kubeconfig by which the operator reaches the API server through the door.
func (d *door) kubeconfig(c cluster) string {
	GinkgoHelper()
	config := c.Config(controlplane.Operator)
	server, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.Transport, proxy.FlushInterval = transport, -1 // watches are answered event by event
	var first sync.Once
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodDelete && r.Request.URL.Path == d.path {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.code == 0 {
				d.code = r.StatusCode
			}
		}
		return nil
	}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && r.URL.Path == d.path {
			first.Do(func() {
				close(d.arrived)
				<-d.open
			})
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(listener.CloseClientConnections)
	through := clientcmdapi.NewConfig()
	through.Clusters["door"] = &clientcmdapi.Cluster{Server: listener.URL}
	through.Contexts["door"] = &clientcmdapi.Context{Cluster: "door"}
	through.CurrentContext = "door"
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*through, path)).To(Succeed())
	return path
}
