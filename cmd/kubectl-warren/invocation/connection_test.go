package invocation

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestKnownResources(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	known := knownResources()
	for gvk := range scheme.AllKnownTypes() {
		kind, isList := strings.CutSuffix(gvk.Kind, "List")
		if gvk.GroupVersion() != v1alpha1.GroupVersion || !isList {
			continue
		}
		// No command reads it but those that ask what the API server serves.
		if kind == "ResourceDistribution" {
			continue
		}
		gvk.Kind = kind
		if _, err := known.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			t.Errorf("%s is not known, so that it would be taken for not installed: %v", kind, err)
		}
	}
}
