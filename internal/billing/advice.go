package billing

import (
	"crypto/x509"
	"errors"
	"fmt"
)

// Explain returns the error with advice for an administrator, where the engine's own message gives none; nil for nil.
func (s *Store) Explain(err error) error {
	if err == nil {
		return nil
	}
	advice := certificateAdvice(err)
	if s.dialect.advice != nil && advice == "" {
		advice = s.dialect.advice(err)
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// certificateAdvice returns what to do about a server certificate that doesn't verify; "" for other errors.
func certificateAdvice(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the certificate of the warehouse's server, or correct the clock of this node"
	case errors.As(err, &unknown):
		return "mount the CA certificate that signed the server's certificate, and name its file: for driver postgres in the data source name, " +
			"such as by sslrootcert; for bigquery in the environment variable SSL_CERT_FILE"
	case errors.As(err, &hostname):
		return "use the host name that the server's certificate has"
	case errors.As(err, &invalid):
		return "give the warehouse's server a valid certificate"
	}
	return ""
}

// sqliteAdvice returns what to do about an error, by its result code; "" where the error's own message suffices.
func sqliteAdvice(err error) string {
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		return ""
	}
	switch coded.Code() & 0xff {
	case 5, 6: // BUSY, LOCKED
		return "another process has locked the file: end it, because only one exporter may write this file"
	case 8: // READONLY
		return "mount the volume of billing.sqlite.path so that the exporter may write there"
	case 11, 26: // CORRUPT, NOTADB
		return "the file is damaged: restore a copy of it; or move it away, then the exporter begins a new file with the present state"
	case 13: // FULL
		return "free space on the volume of billing.sqlite.path, or enlarge its PersistentVolumeClaim"
	}
	return ""
}
