package distribute

import (
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"a Secret":      {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"regcred","creationTimestamp":null,"ownerReferences":[]}}`, ""},
		"not an object": {`[]`, "not an object"},
		"no kind":       {`{"apiVersion":"v1","metadata":{"name":"a"}}`, "kind are required"},
		"no name":       {`{"apiVersion":"v1","kind":"Secret","metadata":{}}`, "metadata.name is required"},
		"a bad name":    {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"Not_Ok"}}`, "DNS subdomain"},
		"a namespace": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}}`,
			"name, labels and annotations only"},
		"generateName": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","generateName":"b"}}`,
			"name, labels and annotations only"},
		"finalizers": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","finalizers":["b/c"]}}`,
			"name, labels and annotations only"},
		"two at once": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","uid":"u","namespace":"b","generateName":"c","selfLink":"d"}}`,
			`take out "generateName"`},
		"our keys": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"x.tenancy.warren.dev/y":"z"}}}`,
			"belong to the operator"},
		"labels that are no text": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"y":1}}}`, "map of strings"},
		"a token": {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"type":"kubernetes.io/service-account-token"}`,
			"can't be distributed"},
		"a list":      {`{"apiVersion":"v1","kind":"SecretList","metadata":{"name":"a"},"items":[]}`, "holds one"},
		"the root CA": {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt"}}`, "can't be distributed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadTemplate([]byte(c.raw))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestContent: templates that mean the same have the same hash, whatever defaults the API server would add (DIST-D17, DIST-D18).
func TestContent(t *testing.T) {
	hash := func(raw string) string {
		t.Helper()
		template, err := ReadTemplate([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return template.Content
	}
	const head = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}`
	plain := hash(head + `,"type":"Opaque","data":{"k":"dg=="}}`)
	for _, same := range []string{`,"data":{"k":"dg=="}}`, `,"stringData":{"k":"v"}}`, `,"data":{"k":"eA=="},"stringData":{"k":"v"}}`} {
		if got := hash(head + same); got != plain {
			t.Errorf("%s has another hash", same)
		}
	}
	if hash(head+`,"data":{}}`) != hash(head+`}`) {
		t.Error("empty data has another hash than none")
	}
	if hash(head+`,"data":{"k":"eA=="}}`) == plain {
		t.Error("other data has the same hash")
	}
	if hash(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"dg=="}}`) == plain {
		t.Error("another label has the same hash")
	}
}

func TestHoldsWhatTheAPIServerStores(t *testing.T) {
	template,
		err := ReadTemplate([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"dmFs\ndWU=\n","none":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	stored := func(k, none string) map[string]any {
		return map[string]any{"type": "Opaque", "data": map[string]any{"k": k, "none": none}}
	}
	more := stored("dmFsdWU=", "")
	more["data"].(map[string]any)["extra"] = "eA=="
	for name, c := range map[string]struct {
		object map[string]any
		want   bool
	}{
		"DIST-D98 line ends in the template's base64 do not count as a difference": {stored("dmFsdWU=", ""), true},
		"DIST-D98 another value counts as a difference":                            {stored("b3RoZXI=", ""), false},
		"DIST-D98 an additional key counts as a difference":                        {more, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := template.Holds(c.object, false); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
