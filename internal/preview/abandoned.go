package preview

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/paging"
	"github.com/warren-tenancy/warren/internal/text"
)

// findAbandoned names the kinds whose copies a change from configuration old to now would leave behind, because now doesn't name the kind.
// With each kind is the number of its copies, unless the caller may not list them. The operator would no longer change or delete these
// copies, and policies may forbid all other users to do so. Copies in mode create don't count: they belong to their namespace.
func findAbandoned(ctx context.Context, api client.Client, old, now *config.OperatorConfiguration) (kinds []string, err error) {
	for i := range old.Propagation.Kinds {
		kind := old.Propagation.Kinds[i].GroupKind()
		if now.Propagated(kind) != nil {
			continue
		}
		mapping, err := api.RESTMapper().RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding kind %s: %w", kind, err)
		}
		number := 0
		err = paging.Each(ctx, api, metadataOf(mapping.GroupVersionKind), pageSize, func(copied client.Object) error {
			if copies.ParseHash(copied.GetAnnotations()[v1alpha1.AnnotationSourceHash]).Mode != v1alpha1.ModeCreate {
				number++
			}
			return nil
		}, client.HasLabels{v1alpha1.LabelInheritedFrom})
		switch {
		case apierrors.IsForbidden(err):
			kinds = append(kinds, kind.Kind+" (an unknown number of copies, because the right to list them in all namespaces is missing)")
		case err != nil:
			return nil, fmt.Errorf("listing the copies of kind %s: %w", kind, err)
		case number > 0:
			kinds = append(kinds, fmt.Sprintf("%s (%s)", kind.Kind, text.Count(number, "copy", "copies")))
		}
	}
	return kinds, nil
}
