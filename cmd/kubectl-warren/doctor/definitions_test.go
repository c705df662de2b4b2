package doctor

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// serving is a client of an API server that serves these kinds of ours.
type serving struct {
	client.Client
	kinds []string
}

// RESTMapper implements client.Client.
func (s serving) RESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for _, kind := range s.kinds {
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
		"all":  {[]string{"LNamespace", "SubNamespace", "HierarchyConfiguration"}, OK, "the API server serves LNamespace, SubNamespace and HierarchyConfiguration"},
		"one":  {[]string{"LNamespace", "SubNamespace"}, Error, "the API server doesn't serve HierarchyConfiguration of tenancy.warren.dev/v1alpha1: the operator runs as if no such object existed"},
		"none": {nil, Error, "the API server doesn't serve LNamespace, SubNamespace, HierarchyConfiguration of tenancy.warren.dev/v1alpha1: the operator runs as if no such object existed"},
	} {
		c := Patient{API: serving{kinds: tc.kinds}}.checkDefinitions()
		if c.Name != "crds" || c.Status != tc.status || c.Message != tc.says {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
