package webhooks

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/warren-tenancy/warren/internal/forest"
)

// The possible results of checkReviewGenuine.
const (
	judged = iota
	tryAgain
	malformed
)

func review(k kind, operation admissionv1.Operation, old, now string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Kind: metav1.GroupVersionKind{Group: k.group, Kind: k.name},
		Resource:  metav1.GroupVersionResource{Group: k.group, Resource: k.resource},
		OldObject: runtime.RawExtension{Raw: []byte(`{"metadata":` + old + `}`)},
		Object:    runtime.RawExtension{Raw: []byte(`{"metadata":` + now + `}`)},
	}}
}

func answerOf(t *testing.T, err error) int {
	t.Helper()
	switch {
	case err == nil:
		return judged
	case apierrors.IsServiceUnavailable(err):
		return tryAgain
	case apierrors.IsBadRequest(err):
		return malformed
	}
	t.Fatalf("%v is no answer of checkReview", err)
	return 0
}

// SEC-W30: the sender of a review about an existing object must know its UID. Otherwise any sender could learn the names of other tenants'
// namespaces from the answer.
func TestIdentity(t *testing.T) {
	s := forest.New(forest.Rules{}).
		WithNamespace(&forest.Namespace{Name: "victim", UID: "1"}).
		WithTenant(&forest.Tenant{Name: "victim", UID: "2"}).
		WithSub(&forest.Sub{Parent: "victim", Name: "web", UID: "3"}).
		WithHierarchy(&forest.Hierarchy{Namespace: "victim", UID: "4"})
	const hierarchy = `{"namespace":"victim","name":"hierarchy"`
	tests := map[string]struct {
		kind      kind
		operation admissionv1.Operation
		old, now  string
		want      int
	}{
		"the Namespace": {kindNamespace, admissionv1.Delete, `{"name":"victim","uid":"1"}`, `{}`, judged},
		"SEC-W30 a review of a DELETE with the UID of another object is refused with 503": {
			kindNamespace, admissionv1.Delete, `{"name":"victim","uid":"9"}`, `{}`, tryAgain},
		"SEC-W30 a review of an UPDATE without UID is refused with 503": {
			kindNamespace, admissionv1.Update, `{"name":"victim"}`, `{"name":"victim"}`, tryAgain},
		"one that nobody knows": {kindNamespace, admissionv1.Update, `{"name":"other","uid":"1"}`, `{"name":"other"}`, tryAgain},
		"neither name nor UID":  {kindNamespace, admissionv1.Update, `{}`, `{}`, tryAgain},
		"SEC-W30 a review whose old and new object differ in name is refused with 400": {
			kindNamespace, admissionv1.Update, `{"name":"victim","uid":"1"}`, `{"name":"else"}`, malformed},
		"the LNamespace":       {kindLNamespace, admissionv1.Delete, `{"name":"victim","uid":"2"}`, `{}`, judged},
		"a made-up LNamespace": {kindLNamespace, admissionv1.Delete, `{"name":"victim","uid":"1"}`, `{}`, tryAgain},
		"the SubNamespace": {kindSubNamespace, admissionv1.Delete, `{"namespace":"victim","name":"web","uid":"3"}`, `{}`,
			judged},
		"a made-up SubNamespace": {kindSubNamespace, admissionv1.Delete, `{"namespace":"victim","name":"web","uid":"x"}`, `{}`,
			tryAgain},
		"a new Namespace":                  {kindNamespace, admissionv1.Create, `{}`, `{"name":"victim"}`, judged},
		"the HierarchyConfiguration":       {kindHierarchy, admissionv1.Update, hierarchy + `,"uid":"4"}`, hierarchy + `}`, judged},
		"a made-up HierarchyConfiguration": {kindHierarchy, admissionv1.Update, hierarchy + `}`, hierarchy + `}`, tryAgain},
		"SEC-W30 a review whose old and new object differ in namespace is refused with 400": {
			kindHierarchy, admissionv1.Update, hierarchy + `,"uid":"4"}`,
			`{"namespace":"x","name":"hierarchy"}`, malformed},
		"an old object that is none":  {kindNamespace, admissionv1.Update, `"`, `{}`, malformed},
		"a new object that is none":   {kindNamespace, admissionv1.Update, `{"name":"victim","uid":"1"}`, `"`, malformed},
		"no operation that is judged": {kindNamespace, admissionv1.Connect, `{"name":"victim","uid":"1"}`, `{}`, malformed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkReviewGenuine(s, tt.kind, review(tt.kind, tt.operation, tt.old, tt.now))
			if got := answerOf(t, err); got != tt.want {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// SEC-W30: the kind that a review is about follows from the path of the request. A review about another kind is refused.
func TestKindOfThePath(t *testing.T) {
	s := forest.New(forest.Rules{}).WithNamespace(&forest.Namespace{Name: "victim", UID: "1"})
	changes := map[string]func(*admission.Request){
		"SEC-W30 a review of another kind than the path's is refused with 400": func(r *admission.Request) { r.Kind.Kind = "X" },
		"SEC-W30 a review without kind is refused with 400":                    func(r *admission.Request) { r.Kind.Kind = "" },
		"SEC-W30 a review of another group is refused with 400":                func(r *admission.Request) { r.Kind.Group = "x" },
		"SEC-W30 a review of another resource is refused with 400":             func(r *admission.Request) { r.Resource.Resource = "secrets" },
		"SEC-W30 a review of a subresource is refused with 400":                func(r *admission.Request) { r.SubResource = "status" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			req := review(kindNamespace, admissionv1.Delete, `{"name":"victim","uid":"1"}`, `{}`)
			change(&req)
			if err := checkReviewGenuine(s, kindNamespace, req); answerOf(t, err) != malformed {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestSpecOfAReview(t *testing.T) {
	s := forest.New(forest.Rules{})
	many := func(entry string, n int) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	account := `{"kind":"ServiceAccount","namespace":"n","name":"x"}`
	for name, c := range map[string]struct {
		kind kind
		spec string
		want int
	}{
		"all that the schema allows": {kindLNamespace,
			`{"users":[` + many(account, 512) + `],"managers":[` + many(account, 64) + `],"sudoers":[` + many(account, 64) + `]}`, judged},
		"more users":                     {kindLNamespace, `{"users":[` + many(account, 1200) + `]}`, malformed},
		"lists that stand several times": {kindLNamespace, `{` + many(`"users":[`+many(account, 400)+`]`, 3) + `}`, malformed},
		"many labels":                    {kindSubNamespace, `{"labels":{` + many(`"k":"v"`, 5000) + `}}`, malformed},
		"a spec that stands twice": {kindSubNamespace,
			`{"labels":{` + many(`"k":"v"`, 3000) + `}},"spec":{"labels":{` + many(`"k":"v"`, 3000) + `}}`, malformed},
		"many children":    {kindHierarchy, `{"requiredChildren":[` + many(`"c"`, 9000) + `]}`, malformed},
		"a large resource": {kindDistribution, `{"resource":{"data":{` + many(`"k":"v"`, 20_000) + `}}}`, judged},
		"many targets":     {kindDistribution, `{"targets":{"includedNamespaces":[` + many(`{"name":"n"}`, 20_000) + `]}}`, malformed},
		"long texts":       {kindSubNamespace, `{"annotations":{"k":"` + strings.Repeat(`[1,2],{}`, 8000) + `"}}`, judged},
		"all decisions of a request": {kindSudoRequest,
			`{"user":"u","decisions":[` + many(`{"user":"u","group":"g","verdict":"End","comment":"c"}`, 16) + `]}`, judged},
		"more decisions": {kindSudoRequest, `{"decisions":[` + many(`{"user":"u"}`, 400) + `]}`, malformed},
		"no spec":        {kindNamespace, `null`, judged},
		"no JSON":        {kindLNamespace, `"`, judged},
	} {
		t.Run("SEC-W36 a spec with more names, values and brackets of JSON than allowed is refused with 400, before the authorizer is "+
			"asked: "+name, func(t *testing.T) {
			req := review(c.kind, admissionv1.Create, `{}`, `{}`)
			req.Object.Raw = []byte(`{"metadata":{"name":"x"},"spec":` + c.spec + `}`)
			if err := checkReviewGenuine(s, c.kind, req); answerOf(t, err) != c.want {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestReviewsWithLongExponents(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   int
	}{
		"QUOTA-112 a review of an LNamespace with an amount of 1e-1000000000 is refused before it is decoded": {
			`{"spec":{"limits":{"hard":{"pods":"5","memory":"1e-1000000000"}}}}`, malformed},
		"a number":         {`{"spec":{"limits":{"hard":{"memory": 1e1000000000}}}}`, malformed},
		"in the status":    {`{"status":{"budget":{"used":{"memory":"1e-1000000000"}}}}`, malformed},
		"written twice":    {`{"spec":7,"spec":{"limits":{"hard":{"memory":" 1e-1000","memory":"1"},"hard":{}}}}`, malformed},
		"a name like one":  {`{"metadata":{"name":"1e1000"},"spec":{"limits":{"hard":{"count/e1000.example.com":"5"}}}}`, judged},
		"a short exponent": {`{"spec":{"limits":{"hard":{"memory":"5e9","pods":3}}}}`, judged},
	} {
		t.Run(name, func(t *testing.T) {
			req := review(kindLNamespace, admissionv1.Create, "{}", "{}")
			req.Object.Raw = []byte(tc.object)
			if got := answerOf(t, checkReviewGenuine(forest.New(forest.Rules{}), kindLNamespace, req)); got != tc.want {
				t.Errorf("answer %d, want %d", got, tc.want)
			}
		})
	}
}
