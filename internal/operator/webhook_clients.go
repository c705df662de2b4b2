package operator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"
)

// clientCA refuses clients of the webhooks that show no certificate signed by the CA in a file. The file is read again when it changes.
type clientCA struct {
	file string
	// names are the common names of the clients that may call; empty means every client whose certificate the CA has signed.
	names []string

	// mu guards all below.
	mu       sync.Mutex
	modified time.Time
	pool     *x509.CertPool
}

// newClientCA reads the file once, so that a wrong file is an error at the start.
func newClientCA(file string, names []string) (*clientCA, error) {
	c := &clientCA{file: file, names: names}
	_, err := c.current()
	return c, err
}

// current returns the CAs in the file; if the file can't be read now, those of its last good version.
func (c *clientCA) current() (*x509.CertPool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.file)
	if err == nil && info.ModTime().Equal(c.modified) {
		return c.pool, nil
	}
	var pool *x509.CertPool
	if err == nil {
		pool, err = cert.NewPool(c.file)
	}
	switch {
	case err == nil:
		c.pool, c.modified = pool, info.ModTime()
	case c.pool == nil:
		return nil, fmt.Errorf("no certificate of a CA could be read from the file of --webhook-client-ca, %q: %w", c.file, err)
	}
	return c.pool, nil
}

// requireCertificates makes a server ask every client for a certificate.
func (c *clientCA) requireCertificates(config *tls.Config) {
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = c.verifyClient
}

// verifyClient checks the certificate of a client.
func (c *clientCA) verifyClient(connection tls.ConnectionState) error {
	if len(connection.PeerCertificates) == 0 {
		return errors.New("the webhooks ask for a client certificate")
	}
	pool, err := c.current()
	if err != nil {
		return err
	}
	leaf, intermediates := connection.PeerCertificates[0], x509.NewCertPool()
	for _, between := range connection.PeerCertificates[1:] {
		intermediates.AddCert(between)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return fmt.Errorf("--webhook-client-ca doesn't accept the client certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	if len(c.names) > 0 && !slices.Contains(c.names, leaf.Subject.CommonName) {
		return fmt.Errorf("--webhook-client-names doesn't list %q", leaf.Subject.CommonName)
	}
	return nil
}
