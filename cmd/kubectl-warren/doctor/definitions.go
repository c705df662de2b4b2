package doctor

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// checkDefinitions checks that the API server serves Warren's required kinds.
func (p Patient) checkDefinitions() Check {
	const name = "crds"
	var missing []string
	for _, kind := range []string{"LNamespace", "SubNamespace", "HierarchyConfiguration"} {
		_, err := p.Served.RESTMapping(schema.GroupKind{Group: v1alpha1.Domain, Kind: kind}, v1alpha1.GroupVersion.Version)
		switch {
		case meta.IsNoMatchError(err):
			missing = append(missing, kind)
		case err != nil:
			return warnOf(name, "it is not known whether the API server serves "+kind+": "+err.Error(),
				"check --server and --context")
		}
	}
	if len(missing) > 0 {
		return failOf(name, "the API server doesn't serve "+strings.Join(missing, ", ")+" of "+v1alpha1.GroupVersion.String()+
			": the operator runs as if no such object existed", applyAgain)
	}
	return passOf(name, "the API server serves LNamespace, SubNamespace and HierarchyConfiguration")
}
