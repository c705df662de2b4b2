package webhooks_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

func TestNamesThatLookLikeOthers(t *testing.T) {
	user := func(name string) v1alpha1.Subject { return v1alpha1.Subject{Kind: v1alpha1.SubjectUser, Name: name} }
	warned := func(name, plain string) string {
		return fmt.Sprintf("the name of User %+q looks like %q", name, plain)
	}
	for name, c := range map[string]struct{ listed, want string }{
		"ACC-R42 a listed name with a Cyrillic letter that looks Latin gets a Warning":    {"\u0430lice", "alice"},
		"ACC-R42 a listed name of Cyrillic letters alone that looks Latin gets a Warning": {"\u0441\u043e\u0440\u0443", "copy"},
		"ACC-R42 a listed name of full-width letters gets a Warning":                      {"\uff41lice@example.com", "alice@example.com"},
		"ACC-R42 a listed name with a dash that is no hyphen gets a Warning":              {"mary\u2010ann", "mary-ann"},
		"ACC-R42 a listed name in Cyrillic that looks like no Latin one gets no Warning":  {"мария", ""},
		"ACC-R42 a listed name with accents, or in another script, gets no Warning":       {"Zoë Müller 東京", ""},
		"ACC-R42 a listed name of ASCII gets no Warning":                                  {"https://acc/1#2%3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := allowed()
			if c.want != "" {
				want = allowed(warned(c.listed, c.want))
			}
			want.check(t, "", grown().as(t, alice, webhooks.PathLNamespaces, nil, sudoed("payments", user(c.listed))))
			old := build.Tenant("t").Managers("mia").SudoerSubjects(user(c.listed)).Object()
			now := build.Tenant("t").Managers("mia", "bob").SudoerSubjects(user(c.listed)).Object()
			allowed().check(t, "listed before", holding().as(t, alice, webhooks.PathLNamespaces, old, now))
		})
	}
}

// Each read takes milliseconds, the webhook has five seconds, and a list takes hundreds of accounts.
func TestManyAccountsOfMissingNamespaces(t *testing.T) {
	var missing, same []v1alpha1.Subject
	for i := range 512 {
		missing = append(missing, build.ServiceAccount(fmt.Sprint("gone-", i), "robot"))
		same = append(same, build.ServiceAccount("gone", fmt.Sprint("robot-", i)))
	}
	for name, c := range map[string]struct {
		old, now []v1alpha1.Subject
		want     answered
		most     int32
	}{
		"ACC-R41 an LNamespace with 512 accounts of missing namespaces is refused after a few reads": {
			nil, missing, refused(403, "namespace gone-3 does not exist"), 20},
		"ACC-R41 the missing namespace of 512 listed accounts is read once": {
			nil, same, refused(403, "namespace gone does not exist"), 3},
		"ACC-R41 the missing namespaces of accounts that were listed before are not read": {missing, missing, allowed(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			x, old := grown(), client.Object(nil)
			if c.old != nil {
				x, old = holding(), build.Tenant("t").Managers("mia", "bob").UserSubjects(c.old...).Object()
			}
			answer := x.as(t, alice, webhooks.PathLNamespaces, old, build.Tenant("t").Managers("mia").UserSubjects(c.now...).Object())
			c.want.check(t, "", answer)
			if x.reads.Load() > c.most {
				t.Errorf("%d reads, at most %d are enough", x.reads.Load(), c.most)
			}
		})
	}
}
