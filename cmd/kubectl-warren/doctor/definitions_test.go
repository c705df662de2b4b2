package doctor

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// serving returns the mapper of an API server that serves these of Warren's kinds.
func serving(kinds []string) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for _, kind := range kinds {
		m.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return m
}

func TestCheckDefinitions(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds  []string
		status Status
		says   string
	}{
		"all": {[]string{"LNamespace", "SubNamespace", "HierarchyConfiguration"}, OK,
			"the API server serves LNamespace, SubNamespace and HierarchyConfiguration"},
		"one": {[]string{"LNamespace", "SubNamespace"}, Error, "the API server doesn't serve HierarchyConfiguration of " +
			"tenancy.warren.dev/v1alpha1: the operator runs as if no such object existed"},
		"none": {nil, Error, "the API server doesn't serve LNamespace, SubNamespace, HierarchyConfiguration of tenancy.warren.dev/v1alpha1: " +
			"the operator runs as if no such object existed"},
	} {
		c := Patient{Served: serving(tc.kinds)}.checkDefinitions()
		if c.Name != "crds" || c.Status != tc.status || c.Message != tc.says {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
