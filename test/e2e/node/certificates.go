//go:build linux

package node

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certificates are what a node needs beyond a control plane on loopback: the API server's identity towards pods, and
// towards the kubelet.
type certificates struct{ dir string }

func (c certificates) path(name string) string { return filepath.Join(c.dir, name) }

func (c certificates) write() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "node"}, key)
	if err != nil {
		return fmt.Errorf("making the node's certificate authority: %w", err)
	}
	if err := writeFile(c.path("ca.crt"), encodeCertificate(ca.Raw)); err != nil {
		return err
	}
	if err := c.sign("serving", ca, key, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		IPAddresses: []net.IP{net.ParseIP(address), net.ParseIP(apiService)},
		DNSNames:    []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		return err
	}
	return c.sign("kubelet-client", ca, key, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign writes NAME.crt and NAME.key.
func (c certificates) sign(name string, ca *x509.Certificate, caKey crypto.Signer, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = ca.NotBefore, time.Now().Add(24*time.Hour)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("making certificate %s: %w", name, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("making certificate %s: %w", name, err)
	}
	if err := writeFile(c.path(name+".key"), string(keyPEM)); err != nil {
		return err
	}
	return writeFile(c.path(name+".crt"), encodeCertificate(raw))
}

func encodeCertificate(raw []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw}))
}
