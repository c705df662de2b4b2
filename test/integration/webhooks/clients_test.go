package webhooks_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
	"github.com/warren-tenancy/warren/test/suite"
)

var _ = Describe("Webhooks that ask for client certificates", func() {
	It("SEC-W31 with --webhook-client-ca, TLS refuses a client without certificate, of another CA, of another name, or with the CA's "+
		"own; the API server is answered; a new CA counts at once", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		ours, others := newAuthority("ours"), newAuthority("others")
		Expect(os.WriteFile(filepath.Join(dir, "ca.crt"), ours.pem(), 0o600)).To(Succeed())
		w := start(ctx, devcluster.Options{
			ControlPlane: controlplane.Options{APIServerArgs: []string{
				"--admission-control-config-file", ours.admissionConfiguration(dir, "kube-apiserver"),
			}},
			Operator: devcluster.OperatorOptions{Args: []string{
				"--webhook-client-ca=" + filepath.Join(dir, "ca.crt"), "--webhook-client-names=else,kube-apiserver",
			}},
		})
		By("letting the API server in")
		Eventually(asked).WithArguments(ctx, w).Should(Succeed(), "the caBundle comes a moment after the start")
		for what, certificates := range map[string][]tls.Certificate{
			"without a certificate":                       nil,
			"with one of another CA":                      {others.sign("kube-apiserver")},
			"with one of the CA that is somebody else's":  {ours.sign("alice")},
			"with the CA's own, which is for no client":   {ours.own()},
			"with one of another CA and ours added to it": {chained(others.sign("kube-apiserver"), ours)},
		} {
			Eventually(func() error { // the alert may be overtaken by the end of the connection
				err := call(ctx, w, certificates)
				Expect(err).To(HaveOccurred(), what)
				return err
			}).Should(MatchError(ContainSubstring("remote error: tls")), what)
		}
		Expect(call(ctx, w, []tls.Certificate{ours.sign("kube-apiserver")})).To(Succeed())

		By("following a CA that is replaced")
		Expect(os.WriteFile(filepath.Join(dir, "ca.crt"), others.pem(), 0o600)).To(Succeed())
		Expect(call(ctx, w, []tls.Certificate{ours.sign("kube-apiserver")})).NotTo(Succeed())
		Expect(call(ctx, w, []tls.Certificate{others.sign("kube-apiserver")})).To(Succeed())
	})
})

// call posts a review to the webhooks' port with client certificates.
func call(ctx context.Context, w *devcluster.World, certificates []tls.Certificate) error {
	client := &http.Client{Timeout: suite.Patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: certificates}, // any server certificate will do
	}}
	url := fmt.Sprintf("https://127.0.0.1:%d/validate--v1-namespace", w.WebhookPort)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// certificateAuthority signs certificates of clients.
type certificateAuthority struct {
	key         crypto.Signer
	certificate *x509.Certificate
}

func newAuthority(name string) *certificateAuthority {
	GinkgoHelper()
	key := newKey()
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	Expect(err).NotTo(HaveOccurred())
	return &certificateAuthority{key, certificate}
}

func newKey() crypto.Signer {
	GinkgoHelper()
	pem, err := keyutil.MakeEllipticPrivateKeyPEM()
	Expect(err).NotTo(HaveOccurred())
	key, err := keyutil.ParsePrivateKeyPEM(pem)
	Expect(err).NotTo(HaveOccurred())
	return key.(crypto.Signer)
}

func (a *certificateAuthority) pem() []byte {
	GinkgoHelper()
	text, err := cert.EncodeCertificates(a.certificate)
	Expect(err).NotTo(HaveOccurred())
	return text
}

func (a *certificateAuthority) own() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{a.certificate.Raw}, PrivateKey: a.key}
}

// sign makes a client certificate of that common name.
func (a *certificateAuthority) sign(name string) tls.Certificate {
	GinkgoHelper()
	key := newKey()
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// chained adds the certificate of a CA to a certificate that this CA has not signed.
func chained(c tls.Certificate, with *certificateAuthority) tls.Certificate {
	c.Certificate = append(c.Certificate, with.certificate.Raw)
	return c
}

// admissionConfiguration has an API server present a certificate of that name to the webhooks, as in docs/guides/certificates.md, and
// returns its file.
func (a *certificateAuthority) admissionConfiguration(dir, name string) string {
	GinkgoHelper()
	client := a.sign(name)
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(client.PrivateKey)
	Expect(err).NotTo(HaveOccurred())
	leaf, err := x509.ParseCertificate(client.Certificate[0])
	Expect(err).NotTo(HaveOccurred())
	certificatePEM, err := cert.EncodeCertificates(leaf)
	Expect(err).NotTo(HaveOccurred())
	configuration, kubeconfig := filepath.Join(dir, "admission.yaml"), filepath.Join(dir, "webhooks.kubeconfig")
	plugin := func(name string) string {
		return "- name: " + name + `
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: ` + kubeconfig + "\n"
	}
	for file, text := range map[string]string{
		filepath.Join(dir, "client.crt"): string(certificatePEM), filepath.Join(dir, "client.key"): string(keyPEM),
		configuration: "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" +
			plugin("ValidatingAdmissionWebhook") + plugin("MutatingAdmissionWebhook"),
		// The name is "*", because the webhooks have another port in each run, and a name with a port is for that port only.
		kubeconfig: `apiVersion: v1
kind: Config
users:
- name: "*"
  user:
    client-certificate: ` + filepath.Join(dir, "client.crt") + `
    client-key: ` + filepath.Join(dir, "client.key") + "\n",
	} {
		Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	}
	return configuration
}
