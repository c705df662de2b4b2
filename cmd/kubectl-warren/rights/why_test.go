package rights

import (
	"strings"
	"testing"
)

func TestSentence(t *testing.T) {
	for name, c := range map[string]struct {
		plain, raised Answer
		want          string
	}{
		"without sudo":    {Yes, No, "bob may, without sudo."},
		"with sudo alone": {No, Yes, "bob may, but only with sudo of payments."},
		"without sudo is not known": {Unknown, Yes, "bob may, with sudo of payments. " +
			"Without sudo, the answer is not known: you may not read all that decides it."},
		"neither":          {No, No, "bob may not, neither without sudo nor with it."},
		"nothing is known": {Unknown, Unknown, "Not known: you may not read all that decides it."},
	} {
		why := &Why{Identity: Identity{User: "bob"}, Cases: []Case{{Allowed: c.plain}, {Allowed: c.raised, Tenant: "payments"}}}
		if got := why.Describe(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestKeepOwnTenant(t *testing.T) {
	for name, c := range map[string]struct{ own, want string }{
		"ACC-E26 of a root, why knows the tenant by the name, also where a sudoer may not read it: no other sudo matters": {"payments",
			"payments"},
		"a namespace of no known tenant": {"default", "orders payments typo"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(keepOwnTenant([]string{"orders", "payments", "typo"}, c.own), " "); got != c.want {
				t.Errorf("it depends on sudo of %s, want %s", got, c.want)
			}
		})
	}
}
