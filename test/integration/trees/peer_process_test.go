package trees_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/warren-tenancy/warren/internal/servingcert"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// peerProcess imitates the process of another operator: it serves its webhooks and works on its objects as long as its Deployment has a
// Pod. There is no kubelet, so it plays that of these Pods, too: a Pod that is deleted lives on until the process has ended, a moment
// later.
type peerProcess struct {
	cluster
	// api has the rights of the service account, which group names.
	api                 client.Client
	namespace, group    string
	app                 string
	service             string
	port                int
	certificate         servingcert.Pair
	serve               http.Handler
	reconcile           func(ctx context.Context, starts bool) error
	server              *http.Server
	roundsSinceDeletion map[types.UID]int
}

// lingers is for how many rounds a process works on after its Pod was deleted.
const lingers = 5

// newPeerProcess describes a process of the service account, behind a Service, for the Pods that have label app.
func (c cluster) newPeerProcess(namespace, account, app, service string) *peerProcess {
	GinkgoHelper()
	group := "system:serviceaccounts:" + namespace
	p := &peerProcess{cluster: c, namespace: namespace, group: group, app: app, service: service, roundsSinceDeletion: map[types.UID]int{},
		api: c.Impersonate(controlplane.Admin, rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account,
			Groups: []string{group, "system:serviceaccounts", "system:authenticated"}})}
	var err error
	p.certificate, err = servingcert.New(servingcert.Names(service, namespace), time.Now())
	Expect(err).NotTo(HaveOccurred())
	p.port, err = process.FreePort()
	Expect(err).NotTo(HaveOccurred())
	return p
}

// start makes the Service, and runs the process until the container of the cases ends.
func (p *peerProcess) start(ctx context.Context) {
	GinkgoHelper()
	p.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.service},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}})
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer p.close()
		for rounds := time.NewTicker(50 * time.Millisecond); life.Err() == nil; {
			p.live(life)
			<-rounds.C
		}
	}()
	DeferCleanup(func() { end(); <-ended })
}

// live is one round of the process, if it has a Pod.
func (p *peerProcess) live(ctx context.Context) {
	pods := &corev1.PodList{}
	if p.Admin().List(ctx, pods, client.InNamespace(p.namespace), client.MatchingLabels{"app": p.app}) != nil {
		return
	}
	runs := false
	for _, pod := range pods.Items {
		runs = p.keep(ctx, &pod) || runs
	}
	if !runs {
		p.close()
		return
	}
	starts := p.server == nil
	if starts && !p.listen() || p.reconcile == nil {
		return
	}
	if err := p.reconcile(ctx, starts); err != nil && ctx.Err() == nil {
		GinkgoWriter.Printf("%s: %v\n", p.group, err) // it is tried again in the next round
	}
}

// keep does what the scheduler and the kubelet do with a Pod, and reports whether its program runs.
func (p *peerProcess) keep(ctx context.Context, pod *corev1.Pod) bool {
	switch {
	case pod.DeletionTimestamp == nil && pod.Spec.NodeName == "":
		// if this fails, the next round tries again
		_ = p.Admin().SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "peer"}})
	case pod.DeletionTimestamp != nil:
		if p.roundsSinceDeletion[pod.UID]++; p.roundsSinceDeletion[pod.UID] > lingers {
			p.close()
			_ = p.Admin().Delete(ctx, pod, client.GracePeriodSeconds(0)) // if this fails, the next round tries again
			return false
		}
	}
	return true
}

func (p *peerProcess) listen() bool {
	pair, err := tls.X509KeyPair(p.certificate.Certificate, p.certificate.Key)
	if err != nil {
		return false
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)))
	if err != nil {
		return false
	}
	p.server = &http.Server{Handler: p.serve, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair},
		MinVersion: tls.VersionTLS12}}
	go func(s *http.Server) { _ = s.ServeTLS(listener, "", "") }(p.server) // ends when it is closed
	return true
}

// close ends the process: from now on nobody answers.
func (p *peerProcess) close() {
	if p.server != nil {
		_ = p.server.Close()
		p.server = nil
	}
}

// answers reports whether somebody listens.
func (p *peerProcess) answers() bool {
	connection, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)), time.Second)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

// judge decides about a request of somebody else: "" allows it. old and object are nil where the request has none.
type judge func(ctx context.Context, verb admissionv1.Operation, old, object *unstructured.Unstructured) string

// review is the webhook at a path. The process's own requests pass.
func (p *peerProcess) review(decide judge) http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, r admission.Request) admission.Response {
		if slices.Contains(r.UserInfo.Groups, p.group) {
			return admission.Allowed("")
		}
		if why := decide(ctx, r.Operation, decoded(r.OldObject.Raw), decoded(r.Object.Raw)); why != "" {
			return admission.Denied(why)
		}
		return admission.Allowed("")
	})}
}

func decoded(raw []byte) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if len(raw) == 0 || u.UnmarshalJSON(raw) != nil {
		return nil
	}
	return u
}

// list reads all objects of a kind, with the rights of the process.
func (p *peerProcess) list(ctx context.Context, group, version, kind string, in ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(group + "/" + version)
	if group == "" {
		list.SetAPIVersion(version)
	}
	list.SetKind(kind + "List")
	err := p.api.List(ctx, list, in...)
	return list.Items, err
}

// with returns a copy of the map with one more value.
func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// apiService leads to the process that serves an API, as HNC's manifests have it.
func (p *peerProcess) apiService() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1alpha2.resources.hnc.x-k8s.io"},
		"spec": map[string]any{"group": "resources.hnc.x-k8s.io", "version": "v1alpha2", "groupPriorityMinimum": int64(10),
			"versionPriority": int64(10),
			"caBundle":        base64.StdEncoding.EncodeToString(p.certificate.Certificate),
			"service":         map[string]any{"namespace": p.namespace, "name": p.service, "port": int64(p.port)}}}}
}
