package servingcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrMissing reports that a certificate or its key is missing.
var ErrMissing = errors.New("there is none")

// The keys in the Secret's data.
const (
	KeyCertificate     = "tls.crt"
	KeyPrivate         = "tls.key"
	KeyNextCertificate = "next.crt"
	KeyNextPrivate     = "next.key"
	KeyOldCertificate  = "old.crt"
)

// Contents are what the Secret holds. They are the whole state of a rotation, so that another leader can go on with it.
type Contents struct {
	// Current is the pair that the webhooks serve.
	Current Pair
	// Next is the pair that the webhooks will serve once every API server trusts it.
	Next Pair
	// Old is the certificate that the webhooks served before. It stays as long as a replica may still serve it.
	Old []byte
}

// Read returns the contents of the Secret's data.
func Read(data map[string][]byte) Contents {
	return Contents{
		Current: Pair{Certificate: data[KeyCertificate], Key: data[KeyPrivate]},
		Next:    Pair{Certificate: data[KeyNextCertificate], Key: data[KeyNextPrivate]},
		Old:     data[KeyOldCertificate],
	}
}

// Data returns the contents as the Secret's data, without keys for empty fields.
func (c Contents) Data() map[string][]byte {
	data := map[string][]byte{
		KeyCertificate: c.Current.Certificate, KeyPrivate: c.Current.Key,
		KeyNextCertificate: c.Next.Certificate, KeyNextPrivate: c.Next.Key,
		KeyOldCertificate: c.Old,
	}
	for key, value := range data {
		if len(value) == 0 {
			delete(data, key)
		}
	}
	return data
}

// Equal reports whether c and other have the same data.
func (c Contents) Equal(other Contents) bool {
	return maps.EqualFunc(c.Data(), other.Data(), bytes.Equal)
}

// Bundle returns what the caBundle of every webhook must be: the current certificate and, during a rotation, the next or the old
// one. The certificates are sorted, so that a Switch changes no bundle. A field that can't be parsed is left out.
func (c Contents) Bundle() []byte {
	var anchors []string
	for _, text := range [][]byte{c.Current.Certificate, c.Next.Certificate, c.Old} {
		if leaf := firstCertificate(text); leaf != nil {
			anchors = append(anchors, string(leaf))
		}
	}
	slices.Sort(anchors)
	return []byte(strings.Join(slices.Compact(anchors), ""))
}

// Action is a step of a rotation.
type Action string

// The steps, in the order of a rotation.
const (
	// Keep changes nothing.
	Keep Action = "Keep"
	// Replace puts a new pair in the place of a current one that is missing or can't be served.
	Replace Action = "Replace"
	// Prepare puts a new pair beside the current one, so that API servers trust it before it is served.
	Prepare Action = "Prepare"
	// Switch makes the next pair the current one.
	Switch Action = "Switch"
	// Forget removes the old certificate.
	Forget Action = "Forget"
)

// Step is the next step of a rotation.
type Step struct {
	Action Action
	// Reason explains why the step is taken, as a clause.
	Reason string
	// Again is how long to wait before Decide is called again if nothing changes; zero: until the next change.
	Again time.Duration
}

// Decide returns the next step. settled is how long both webhook configurations have had the Bundle of c; it is negative while they don't.
// settle is how long that must last, so that every API server and every replica has seen the Bundle.
func Decide(c Contents, names []string, now time.Time, settled, settle time.Duration) Step {
	current, err := Judge(c.Current, names, now)
	_, nextErr := Judge(c.Next, names, now)
	waiting := Step{Action: Keep, Again: settle - settled}
	if settled < 0 {
		waiting.Again = 0
	}
	switch {
	case err != nil && nextErr == nil:
		return Step{Action: Switch, Reason: fmt.Sprintf("the certificate can't be served: %v; the next one can", err)}
	case errors.Is(err, ErrMissing):
		return Step{Action: Replace, Reason: "there was none"}
	case err != nil:
		return Step{Action: Replace, Reason: fmt.Sprintf("the certificate can't be served: %v", err)}
	case !c.Next.Empty() && nextErr != nil:
		return Step{Action: Prepare, Reason: fmt.Sprintf("the next certificate can't be served: %v", nextErr)}
	case !c.Next.Empty() && settled >= settle:
		return Step{Action: Switch, Reason: "the next certificate is trusted"}
	case !c.Next.Empty():
		return waiting
	case len(c.Old) > 0 && settled >= settle:
		return Step{Action: Forget, Reason: "no replica serves the old certificate any more"}
	case len(c.Old) > 0:
		return waiting
	}
	if left := current.Leaf.NotAfter.Sub(now); left > RenewBefore {
		return Step{Action: Keep, Again: left - RenewBefore}
	}
	return Step{Action: Prepare, Reason: "the certificate ends at " + current.Leaf.NotAfter.UTC().Format(time.RFC3339)}
}

// After returns the contents after a step. fresh is a newly made pair; only Replace and Prepare use it.
func (c Contents) After(action Action, fresh Pair) Contents {
	switch action {
	case Replace:
		return Contents{Current: fresh}
	case Prepare:
		return Contents{Current: c.Current, Next: fresh, Old: c.Old}
	case Switch:
		return Contents{Current: c.Next, Old: firstCertificate(c.Current.Certificate)}
	case Forget:
		return Contents{Current: c.Current}
	}
	return c
}

// firstCertificate returns the first certificate of a PEM text, or nil if there is none. It encodes the certificate anew, so that equal
// certificates give equal bytes.
func firstCertificate(text []byte) []byte {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil
		}
		if _, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})
		}
		text = rest
	}
}
