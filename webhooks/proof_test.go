package webhooks

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Whoever asks about something that exists must know its UID, so that nobody is told of strangers' namespaces.
func TestProven(t *testing.T) {
	s := forest.New(forest.Rules{}).
		WithNamespace(&forest.Namespace{Name: "victim", UID: "1"}).
		WithTenant(&forest.Tenant{Name: "victim", UID: "2"}).
		WithSub(&forest.Sub{Parent: "victim", Name: "web", UID: "3"})
	tests := map[string]struct {
		operation admissionv1.Operation
		kind, old string
		want      bool
	}{
		"the Namespace":             {admissionv1.Delete, "Namespace", `{"name":"victim","uid":"1"}`, true},
		"another of its name":       {admissionv1.Delete, "Namespace", `{"name":"victim","uid":"9"}`, false},
		"without a UID":             {admissionv1.Update, "Namespace", `{"name":"victim"}`, false},
		"one that nobody knows":     {admissionv1.Update, "Namespace", `{"name":"other","uid":"1"}`, false},
		"neither name nor UID":      {admissionv1.Update, "Namespace", `{}`, false},
		"the LNamespace":            {admissionv1.Delete, "LNamespace", `{"name":"victim","uid":"2"}`, true},
		"a made-up LNamespace":      {admissionv1.Delete, "LNamespace", `{"name":"victim","uid":"1"}`, false},
		"the SubNamespace":          {admissionv1.Delete, "SubNamespace", `{"namespace":"victim","name":"web","uid":"3"}`, true},
		"a made-up SubNamespace":    {admissionv1.Delete, "SubNamespace", `{"namespace":"victim","name":"web","uid":"x"}`, false},
		"a new Namespace":           {admissionv1.Create, "Namespace", `{"name":"victim"}`, true},
		"a HierarchyConfiguration":  {admissionv1.Update, "HierarchyConfiguration", `{"namespace":"victim","name":"hierarchy"}`, true},
		"what the decoder will say": {admissionv1.Update, "Namespace", `"`, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: tt.operation, Kind: metav1.GroupVersionKind{Kind: tt.kind},
				OldObject: runtime.RawExtension{Raw: []byte(`{"metadata":` + tt.old + `}`)},
			}}
			err := proven(s, req)
			if (err == nil) != tt.want {
				t.Fatalf("got %v", err)
			}
			if err != nil && !apierrors.IsServiceUnavailable(err) {
				t.Errorf("%v doesn't ask to come again", err)
			}
		})
	}
}
