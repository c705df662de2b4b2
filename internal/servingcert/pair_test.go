package servingcert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/internal/servingcert"
)

var (
	names = servingcert.Names("warren-webhook", "warren-system")
	noon  = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

// made returns a pair that was made that long before noon.
func made(t *testing.T, before time.Duration, names ...string) servingcert.Pair {
	t.Helper()
	pair, err := servingcert.New(names, noon.Add(-before))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestNew(t *testing.T) {
	pair, err := servingcert.Judge(made(t, 0, names...), names, noon)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pair.Leaf
	if want := []string{"warren-webhook.warren-system.svc", "warren-webhook.warren-system.svc.cluster.local"}; !slices.Equal(leaf.DNSNames,
		want) {
		t.Errorf("names %q, want %q", leaf.DNSNames, want)
	}
	if leaf.IsCA || !leaf.BasicConstraintsValid || leaf.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Error("it can sign others")
	}
	if len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
		t.Errorf("it may be used for %v", leaf.ExtKeyUsage)
	}
	if key, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		t.Errorf("the key is a %T", leaf.PublicKey)
	}
	if !leaf.NotBefore.Equal(noon.Add(-time.Hour)) || !leaf.NotAfter.Equal(noon.Add(90*24*time.Hour)) {
		t.Errorf("valid from %s to %s", leaf.NotBefore, leaf.NotAfter)
	}
	anchors := x509.NewCertPool()
	anchors.AddCert(leaf)
	for name, valid := range map[string]bool{
		names[0]: true, names[1]: true, "warren-webhook": false, "kubernetes.default.svc": false,
	} {
		// The API server's clock may be half an hour behind the operator's.
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: anchors, CurrentTime: noon.Add(-30 * time.Minute)})
		if (err == nil) != valid {
			t.Errorf("as %s: %v", name, err)
		}
	}
}

func TestJudge(t *testing.T) {
	const day = 24 * time.Hour
	good, other := made(t, 0, names...), made(t, 0, names...)
	for name, c := range map[string]struct {
		pair servingcert.Pair
		want string // part of the reason; empty: usable
	}{
		"new":                                {good, ""},
		"29 days left":                       {made(t, 61*day, names...), ""},
		"made by a clock half an hour ahead": {made(t, -30*time.Minute, names...), ""},
		"more names than asked":              {made(t, 0, append([]string{"localhost"}, names...)...), ""},
		"made in the future":                 {made(t, -3*time.Hour, names...), "it isn't valid before 2026-06-01T14:00:00Z"},
		"nothing":                            {servingcert.Pair{}, "there is none"},
		"no key":                             {servingcert.Pair{Certificate: good.Certificate}, "there is none"},
		"no certificate":                     {servingcert.Pair{Key: good.Key}, "there is none"},
		"garbage":                            {servingcert.Pair{Certificate: []byte("garbage"), Key: good.Key}, "it can't be read"},
		"another's key":                      {servingcert.Pair{Certificate: good.Certificate, Key: other.Key}, "it can't be read"},
		"expired a moment ago":               {made(t, 90*day, names...), "it expired at 2026-06-01T12:00:00Z"},
		"of another namespace": {made(t, 0, servingcert.Names("warren-webhook", "other")...),
			"not for warren-webhook.warren-system.svc"},
		"without the name that clusters append": {made(t, 0, names[0]), "not for warren-webhook.warren-system.svc.cluster.local"},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := servingcert.Judge(c.pair, names, noon)
			switch {
			case c.want == "" && (err != nil || pair == nil):
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
