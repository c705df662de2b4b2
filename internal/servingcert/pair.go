// Package servingcert makes and judges the serving certificate of the webhooks, and decides how it is rotated. It is pure: it reads
// no clock and writes nowhere.
//
// The certificate is self-signed and its own trust anchor. So no key of a CA is stored, and a stolen key is good for the names of
// the webhooks only. API servers accept such a certificate as an anchor, and two of them in one bundle.
//
// Library open-policy-agent/cert-controller was considered. It trusts one CA at a time: while it rotates, requests fail at each replica
// that still serves the old certificate. Here two certificates are trusted meanwhile, and no request is refused (SEC-X3).
package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

const (
	// Lifetime is how long a new certificate is valid from the moment it is made.
	Lifetime = 90 * 24 * time.Hour
	// RenewBefore is how long before its end a certificate is replaced by the next one.
	RenewBefore = 30 * 24 * time.Hour
	// Skew is how far the clocks of two machines may be apart.
	Skew = time.Hour
)

// Names returns the DNS names under which the API server calls the webhooks of an operator in that namespace.
func Names(service, namespace string) []string {
	host := service + "." + namespace + ".svc"
	return []string{host, host + ".cluster.local"}
}

// Pair is a certificate and its private key, both in PEM.
type Pair struct{ Certificate, Key []byte }

// Empty reports whether there is neither a certificate nor a key.
func (p Pair) Empty() bool { return len(p.Certificate) == 0 && len(p.Key) == 0 }

// New makes a pair for names, valid from an hour before now, because the API server's clock may be slow.
func New(names []string, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a private key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("making a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: names[0]},
		DNSNames:              names,
		NotBefore:             now.Add(-Skew),
		NotAfter:              now.Add(Lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, // CA:FALSE
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the private key: %w", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// Judge returns the pair as a TLS server needs it, or an error whose text is a clause that explains why it can't be served under names at
// the time now. A pair that expires soon can be served.
func Judge(p Pair, names []string, now time.Time) (*tls.Certificate, error) {
	if len(p.Certificate) == 0 || len(p.Key) == 0 {
		return nil, ErrMissing
	}
	pair, err := tls.X509KeyPair(p.Certificate, p.Key)
	if err != nil {
		return nil, fmt.Errorf("it can't be read: %w", err)
	}
	leaf := pair.Leaf
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil {
			return nil, fmt.Errorf("it is for %q, not for %s", leaf.DNSNames, name)
		}
	}
	switch {
	case !now.Before(leaf.NotAfter):
		return nil, fmt.Errorf("it expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case leaf.NotBefore.After(now.Add(Skew)):
		return nil, fmt.Errorf("it isn't valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return &pair, nil
}
