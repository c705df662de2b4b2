package change

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
)

// WriteHierarchy writes fields of the spec of the HierarchyConfiguration in namespace name, which it creates if there
// is none. It returns the object, with its kind set, and what was done. With --dry-run=client it writes nothing.
func WriteHierarchy(ctx context.Context, api client.Client, name string, fields map[string]any, c Options) (
	hc *v1alpha1.HierarchyConfiguration, operation string, err error,
) {
	spec, err := json.Marshal(map[string]any{"spec": fields})
	if err != nil {
		return nil, "", err
	}
	if hc, err = gather.ReadHierarchy(ctx, api, name); err != nil {
		return nil, "", err
	}
	absent := hc == nil
	if absent {
		hc = &v1alpha1.HierarchyConfiguration{}
		hc.Namespace, hc.Name = name, v1alpha1.HierarchyConfigurationName
	}
	before := hc.Spec.DeepCopy()
	if err := json.Unmarshal(spec, hc); err != nil {
		return nil, "", err
	}
	switch {
	case absent:
		operation = "created"
		if !c.IsRehearsed() {
			err = c.ClientFor(api).Create(ctx, hc)
		}
	case equality.Semantic.DeepEqual(*before, hc.Spec):
		operation = "unchanged"
	default:
		operation = "configured"
		if !c.IsRehearsed() {
			err = c.ClientFor(api).Patch(ctx, hc, client.RawPatch(types.MergePatchType, spec))
		}
	}
	hc.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HierarchyConfiguration"))
	return hc, operation, err
}
