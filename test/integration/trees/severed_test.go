package trees_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// severed runs the plugin as the cluster admin and kills it as soon as the API server has carried out so many of its writes. The plugin
// never gets the answer to the last of these writes. Exit code 0 or 1 shows that the plugin ended by itself before it could be killed.
func (c cluster) severed(ctx context.Context, writes int32, args ...string) (code int) {
	GinkgoHelper()
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	var done atomic.Int32
	_, _, code = c.proxied(ctx, func(answer *http.Response) {
		asks := strings.HasSuffix(answer.Request.URL.Path, "/selfsubjectreviews") // which writes nothing
		if answer.Request.Method != http.MethodGet && !asks && done.Add(1) == writes {
			kill()
			<-answer.Request.Context().Done()
		}
	}, args...)
	return code
}

// proxied runs the plugin as the cluster admin through a proxy, which passes an answer on when before has returned.
func (c cluster) proxied(ctx context.Context, before func(answer *http.Response), args ...string) (out, problems string, code int) {
	GinkgoHelper()
	config := c.Config(controlplane.Admin)
	transport, err := rest.TransportFor(config)
	Expect(err).NotTo(HaveOccurred())
	target, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	proxy.ModifyResponse = func(answer *http.Response) error {
		before(answer)
		return nil
	}
	server := httptest.NewServer(proxy)
	defer server.Close()
	return c.warren(ctx, controlplane.Admin, append(args, "-s", server.URL)...)
}
