package certificate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"sync/atomic"
)

// Serving is the certificate that the webhooks of this replica serve now. It can be exchanged while they serve.
type Serving struct {
	current atomic.Pointer[tls.Certificate]
}

// GetCertificate implements the field GetCertificate of tls.Config.
func (s *Serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.current.Load(); c != nil {
		return c, nil
	}
	return nil, errors.New("the webhooks have no certificate yet")
}

// exchangeCertificate serves c from the next handshake on, and reports whether c differs from the earlier certificate.
func (s *Serving) exchangeCertificate(c *tls.Certificate) bool {
	before := s.current.Swap(c)
	return before == nil || !bytes.Equal(before.Leaf.Raw, c.Leaf.Raw)
}
