package v1alpha1_test

import (
	"testing"

	"github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestRecordsUID(t *testing.T) {
	const uid, another = "uid-ci", "uid-n"
	digest := v1alpha1.DigestUID(uid)
	if want := "sha256:effd9df7bd7f190c65dd932262ed20e771ef7ac117e24a4a48e95583135f6154"; digest != want {
		t.Errorf("the digest is %s, want %s: what earlier versions recorded would be another namespace's", digest, want)
	}
	if again := v1alpha1.DigestUID(digest); again != digest {
		t.Errorf("the digest of a digest is %s, want %s", again, digest)
	}
	for name, c := range map[string]struct {
		recorded, uid string
		want          bool
	}{
		"its digest":                     {digest, uid, true},
		"the UID of an earlier version":  {uid, uid, true},
		"another's digest":               {digest, another, false},
		"another's UID":                  {uid, another, false},
		"nothing of nothing":             {"", "", true},
		"nothing of a namespace":         {"", uid, false},
		"the digest as if it were a UID": {uid, digest, false},
	} {
		if got := v1alpha1.RecordsUID(c.recorded, c.uid); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
