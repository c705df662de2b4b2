package webhooks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/servingcert"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

const day = 24 * time.Hour

// names are those under which the API server calls the webhooks.
var names = servingcert.Names("warren-webhook", "warren-system")

// madeAt is a pair as an operator would have made it at that time.
func madeAt(at time.Time, names ...string) servingcert.Pair {
	GinkgoHelper()
	pair, err := servingcert.New(names, at)
	Expect(err).NotTo(HaveOccurred())
	return pair
}

func secretObject() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "warren-system", Name: "warren-webhook-cert"}}
}

// stored returns what the Secret holds.
func stored(ctx context.Context, w *devcluster.World) (servingcert.Contents, error) {
	secret := secretObject()
	err := w.Admin().Get(ctx, client.ObjectKeyFromObject(secret), secret)
	return servingcert.Read(secret.Data), err
}

// plant writes the Secret, as the cluster admin.
func plant(ctx context.Context, w *devcluster.World, contents servingcert.Contents) {
	GinkgoHelper()
	secret := secretObject()
	Expect(w.Admin().Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
	secret.Data = contents.Data()
	Expect(w.Admin().Update(ctx, secret)).To(Succeed())
}

// served returns the certificate that an operator serves at that port of this machine.
func served(ctx context.Context, port int) (*x509.Certificate, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // any certificate will do
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// bundles returns the caBundle of every webhook.
func bundles(ctx context.Context, w *devcluster.World) ([][]byte, error) {
	v, m := &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}
	var all [][]byte
	if err := w.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, v); err != nil {
		return nil, err
	}
	for _, hook := range v.Webhooks {
		all = append(all, hook.ClientConfig.CABundle)
	}
	err := w.Admin().Get(ctx, client.ObjectKey{Name: "warren"}, m)
	for _, hook := range m.Webhooks {
		all = append(all, hook.ClientConfig.CABundle)
	}
	return all, err
}

// inForce checks that one certificate is in the Secret, at every port and, alone, in every bundle, and that the API server
// reaches the webhooks with it.
func inForce(ctx context.Context, g Gomega, w *devcluster.World, ports ...int) servingcert.Contents {
	contents, err := stored(ctx, w)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := servingcert.Judge(contents.Current, names, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(contents).To(Equal(servingcert.Contents{Current: contents.Current}), "something else is in the Secret")
	for _, port := range ports {
		leaf, err := served(ctx, port)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(leaf.Equal(pair.Leaf)).To(BeTrue(), "port %d serves another certificate", port)
	}
	all, err := bundles(ctx, w)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(HaveLen(7), "one for each webhook")
	anchor := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Leaf.Raw})
	for _, bundle := range all {
		g.Expect(bytes.Equal(bundle, anchor)).To(BeTrue(), "a bundle holds something else: %s", bundle)
	}
	g.Expect(asked(ctx, w)).To(Succeed())
	return contents
}

// asked makes a request that is sent to the webhooks and changes nothing.
func asked(ctx context.Context, w *devcluster.World) error {
	return w.As(controlplane.Admin).Create(ctx, build.Tenant("is-asked-about").Object(), client.DryRunAll)
}
