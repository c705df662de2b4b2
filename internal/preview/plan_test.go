package preview_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/warren-tenancy/warren/internal/preview"
)

func TestPrint(t *testing.T) {
	some := &preview.Plan{
		Writes: []preview.Write{
			{Verb: preview.Update, Kind: "Namespace", Name: "pay-web", Tenant: "payments", Reason: "annotation memo=a\nb"},
			{Verb: preview.Create, Kind: "Secret", Namespace: "pay-web", Name: "key", Tenant: "payments", Source: "payments",
				Reason: "it is not there yet"},
			{Verb: preview.Delete, Kind: "Secret", Namespace: "shop", Name: "key", Tenant: "shop", Source: "payments",
				Reason: "namespace payments is no longer above this one"},
			{Verb: preview.Conflict, Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "solo", Name: "r", Source: "base",
				Reason: "an object of that name exists, but is no copy of this source"},
		},
		Notes: []string{"Nosuch.example.com: the API server doesn't serve this kind"},
	}
	cases := map[string]struct {
		plan  *preview.Plan
		print func(*preview.Plan, *bytes.Buffer) error
		want  string
	}{
		"table": {some, func(p *preview.Plan, out *bytes.Buffer) error { return p.WriteTable(out) },
			`VERB       KIND        NAMESPACE   NAME      SOURCE     REASON
update     Namespace   <none>      pay-web   <none>     annotation memo=a\nb
create     Secret      pay-web     key       payments   it is not there yet
delete     Secret      shop        key       payments   namespace payments is no longer above this one
conflict   Role        solo        r         base       an object of that name exists, but is no copy of this source
1 to create, 1 to update, 1 to delete; 1 can't be written, because an unrelated object has the name.
Not in this plan: Nosuch.example.com: the API server doesn't serve this kind.
`},
		"counts": {some, func(p *preview.Plan, out *bytes.Buffer) error { return p.WriteCounts(out) },
			`KIND                             TENANT     CREATE   UPDATE   DELETE   CONFLICT   HELD
Namespace                        payments   0        1        0        0          0
Role.rbac.authorization.k8s.io   <none>     0        0        0        1          0
Secret                           payments   1        0        0        0          0
Secret                           shop       0        0        1        0          0
1 to create, 1 to update, 1 to delete; 1 can't be written, because an unrelated object has the name.
Not in this plan: Nosuch.example.com: the API server doesn't serve this kind.
`},
		"held": {
			&preview.Plan{Writes: []preview.Write{{Verb: preview.Held, Kind: "Secret", Namespace: "shop", Name: "key", Source: "shop",
				Reason: "the limits of the tree leave no room for it"}}},
			func(p *preview.Plan, out *bytes.Buffer) error { return p.WriteTable(out) },
			"VERB   KIND     NAMESPACE   NAME   SOURCE   REASON\nheld   Secret   shop        key    shop     the limits of the tree leave no room " +
				"for it\n" +
				"0 to create, 0 to update, 0 to delete; 1 held back.\n",
		},
		"conflicts only": {
			&preview.Plan{Writes: []preview.Write{{Verb: preview.Conflict, Kind: "Secret", Namespace: "shop", Name: "key", Source: "base",
				Reason: "an object of that name exists"}}},
			func(p *preview.Plan, out *bytes.Buffer) error { return p.WriteTable(out) },
			"VERB       KIND     NAMESPACE   NAME   SOURCE   REASON\n" +
				"conflict   Secret   shop        key    base     an object of that name exists\n" +
				"0 to create, 0 to update, 0 to delete; 1 can't be written, because an unrelated object has the name.\n",
		},
		"nothing": {&preview.Plan{}, func(p *preview.Plan, out *bytes.Buffer) error { return p.WriteTable(out) },
			"Nothing is to be written.\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.print(tc.plan, &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
