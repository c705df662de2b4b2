package webhooks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/test/build"
	"github.com/warren-tenancy/warren/webhooks"
)

const (
	aliceManages = `{"op":"add","path":"/spec/managers","value":[{"kind":"User","name":"alice"}]}`
	aliceSudoes  = `{"op":"add","path":"/spec/sudoers","value":[{"kind":"User","name":"alice"}]}`
)

// The patch of a new LNamespace sets the defaults and the annotation with its creator, and nothing else.
func TestDefaults(t *testing.T) {
	three := []config.BillingDefault{
		{Group: "g1", Billing: v1alpha1.Billing{CostCenter: "1", Owner: "one", Labels: map[string]string{"l": "1"}}},
		{Group: "g2", Billing: v1alpha1.Billing{CostCenter: "2"}}, {Billing: v1alpha1.Billing{CostCenter: "9"}},
	}
	cases := map[string]struct {
		reason   string
		user     string
		groups   []string
		object   string
		defaults []config.BillingDefault
		count    int
		patches  []string
		warns    string
	}{
		"EmptySpec": {"", "alice", nil, `{"spec":{}}`, nil, 0, []string{aliceManages, aliceSudoes}, ""},
		"NoSpec":    {"", "alice", nil, `{}`, nil, 0, []string{`{"op":"add","path":"/spec","value":{}}`, aliceManages, aliceSudoes}, ""},
		"Named":     {"", "alice", nil, `{"spec":{"managers":[{"kind":"User","namespace":"","name":"mia"}]}}`, nil, 0, []string{aliceSudoes}, ""},
		"AllNamed": {
			"the server has filled in its own defaults, which are none of ours", "alice", nil,
			`{"spec":{"allowCascadingDeletion":false,"managers":[{"kind":"User","namespace":"","name":"m"}],"sudoers":[{"kind":"Group",` +
				`"namespace":"","name":"g"}]}}`, nil, 0, nil, "",
		},
		"ServiceAccount": {"", "system:serviceaccount:ci:deployer", nil, `{"spec":{}}`, nil, 0, []string{
			`{"op":"add","path":"/spec/managers","value":[{"kind":"ServiceAccount","namespace":"ci","name":"deployer"}]}`,
			`{"op":"add","path":"/spec/sudoers","value":[{"kind":"ServiceAccount","namespace":"ci","name":"deployer"}]}`,
		}, ""},
		"ServiceAccountOfItsOwn": {"its users could become it", "system:serviceaccount:t:x", nil, `{"spec":{}}`, nil, 0, nil,
			"system:serviceaccount:t:x can't be listed"},
		"ServiceAccountOfTheSystem":   {"", "system:serviceaccount:kube-system:x", nil, `{"spec":{}}`, nil, 0, nil, "can't be listed"},
		"ServiceAccountOfTheOperator": {"", "system:serviceaccount:warren-system:x", nil, `{"spec":{}}`, nil, 0, nil, "can't be listed"},
		"SystemUser": {"", "system:admin", nil, `{"spec":{}}`, nil, 0, nil,
			"kubernetes user system:admin can't be listed; name managers and sudoers"},
		"SudoUser": {"", "warren:sudo:payments", nil, `{"spec":{}}`, nil, 0, nil, "can't be listed"},
		"OddUser":  {"the schema refuses it", " alice", nil, `{"spec":{}}`, nil, 0, nil, "can't be listed"},
		"UnlistableNamesOthers": {
			"nothing to warn of", "system:admin", nil,
			`{"spec":{"managers":[{"kind":"User","name":"m"}],"sudoers":[{"kind":"User","name":"m"}]}}`, nil, 0, nil, "",
		},
		"FirstDefault": {"", "alice", []string{"g2", "g1"}, named(``), three, 0, []string{
			`{"op":"add","path":"/spec/billing","value":{"costCenter":"1","owner":"one","labels":{"l":"1"}}}`,
		}, ""},
		"AnybodysDefault": {"", "alice", []string{"g7"}, named(``), three, 0,
			[]string{`{"op":"add","path":"/spec/billing","value":{"costCenter":"9"}}`}, ""},
		"AnotherDefault": {"", "alice", []string{"g1", "g2"}, named(`{"costCenter":"2"}`), three, 0, nil, ""},
		"Filled": {"", "alice", []string{"g1"}, named(`{"costCenter":"1"}`), three, 0, []string{
			`{"op":"add","path":"/spec/billing/owner","value":"one"}`, `{"op":"add","path":"/spec/billing/labels","value":{"l":"1"}}`,
		}, ""},
		"NotMixed": {"two accounts are not mixed", "alice", []string{"g1"}, named(`{"costCenter":"7"}`), three, 0, nil, ""},
		"Counted":  {"", "alice", nil, named(``), nil, 5, nil, ""},
		"Forged": {"nobody makes one in another's name", "alice", nil,
			`{"metadata":{"annotations":{"tenancy.warren.dev/creator":"bob"}},` + named(``)[1:], nil, 0, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := grown(build.Namespace("ci")).configured(func(c *config.OperatorConfiguration) {
				c.Billing.Defaults, c.Tenants.MaxPerCreator = tc.defaults, tc.count
			})
			creator := append([]string{`{"op":"add","path":"/metadata/annotations","value":{}}`},
				`{"op":"add","path":"/metadata/annotations/tenancy.warren.dev~1creator","value":"`+tc.user+`"}`)
			if strings.Contains(tc.object, "annotations") {
				creator = creator[1:]
			}
			r := c.defaults(t, authenticationv1.UserInfo{Username: tc.user, Groups: tc.groups}, tc.object)
			if !r.Allowed {
				t.Fatalf("refused: %v", r.Result)
			}
			var got []string
			for _, p := range r.Patches {
				data, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(data))
			}
			if diff := cmp.Diff(append(tc.patches, creator...), got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if all := strings.Join(r.Warnings, "; "); !strings.Contains(all, tc.warns) || tc.warns == "" && all != "" {
				t.Errorf("%s\nwarned %q, want %q", tc.reason, all, tc.warns)
			}
		})
	}
}

// What a cluster admin states as the creator remains, whatever the limit of LNamespaces is.
func TestCreatorOfAnAdmin(t *testing.T) {
	for _, most := range []int{0, 5} {
		c := grown().allowing("update lnamespaces").configured(func(c *config.OperatorConfiguration) { c.Tenants.MaxPerCreator = most })
		for _, object := range []string{named(``), `{"metadata":{"annotations":{"tenancy.warren.dev/creator":"bob"}},` + named(``)[1:]} {
			if r := c.defaults(t, authenticationv1.UserInfo{Username: "alice"}, object); !r.Allowed || len(r.Patches) > 0 {
				t.Errorf("ACC-N16 with %d of each creator, %s: %+v", most, object, r)
			}
		}
	}
}

// named returns an LNamespace with a manager and a sudoer, and with this billing if it is not "".
func named(billing string) string {
	if billing != "" {
		billing = `,"billing":` + billing
	}
	return `{"spec":{"managers":[{"kind":"User","name":"m"}],"sudoers":[{"kind":"User","name":"s"}]` + billing + `}}`
}

// defaults sends a request as the API server does: it has the object as the user wrote it, with a name added.
func (c *cluster) defaults(t *testing.T, user authenticationv1.UserInfo, object string) admission.Response {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal([]byte(object), &whole); err != nil {
		t.Fatal(err)
	}
	metadata, _ := whole["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = "t"
	whole["metadata"], whole["apiVersion"], whole["kind"] = metadata, v1alpha1.GroupVersion.String(), "LNamespace"
	data, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:     metav1.GroupVersionKind{Group: v1alpha1.Domain, Version: "v1alpha1", Kind: "LNamespace"},
		Resource: metav1.GroupVersionResource{Group: v1alpha1.Domain, Version: "v1alpha1", Resource: "lnamespaces"},
		UserInfo: user, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: data},
	}}
	return webhooks.Handlers(scheme(), webhooks.Options{
		View: c, Config: c.config, Namespace: "warren-system", Live: c, Authorizer: c,
	})[webhooks.PathLNamespaceDefaults].Handle(t.Context(), req)
}
