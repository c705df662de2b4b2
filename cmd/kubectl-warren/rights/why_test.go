package rights

import "testing"

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

func TestLikelyTenant(t *testing.T) {
	mine := []string{"orders", "payments"}
	for name, c := range map[string]struct{ place, namespace, want string }{
		"ACC-E26 of a root that a sudoer may not read, why knows the tenant by the name: no other sudo matters": {"", "payments", "payments"},
		"a sub-namespace has a name of its own":             {"", "pay-web", ""},
		"the tenant of a namespace that one may read holds": {"orders", "payments", "orders"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := likelyTenant(c.place, Question{Namespace: c.namespace}, mine); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
