package operator

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// resettableMapper maps kinds to resources by controller-runtime's mapper, which keeps for ever what it has once read. Reset replaces that
// mapper by an empty one. It implements meta.ResettableRESTMapper: code that learns from a 404 that a version is no longer served calls
// meta.MaybeResetRESTMapper. The next question then goes to the API server. Our own kinds are mapped without a request, so that caches of
// these kinds can be made before their CRDs are installed.
type resettableMapper struct {
	own       meta.RESTMapper
	newMapper func() (meta.RESTMapper, error)
	current   atomic.Pointer[meta.RESTMapper]
}

var _ meta.ResettableRESTMapper = &resettableMapper{}

// newResettableMapper is a manager's MapperProvider.
func newResettableMapper(cfg *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	m := &resettableMapper{own: mapOwnKinds(),
		newMapper: func() (meta.RESTMapper, error) { return apiutil.NewDynamicRESTMapper(cfg, httpClient) }}
	first, err := m.newMapper()
	if err != nil {
		return nil, fmt.Errorf("making the mapper of kinds to resources: %w", err)
	}
	m.current.Store(&first)
	return m, nil
}

func mapOwnKinds() meta.RESTMapper {
	own := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, k := range ownKinds {
		resource := v1alpha1.GroupVersion.WithResource(k.resource)
		own.AddSpecific(v1alpha1.GroupVersion.WithKind(kind), resource, resource, k.scope)
	}
	return own
}

// Reset implements meta.ResettableRESTMapper. It sends no request.
func (m *resettableMapper) Reset() {
	if next, err := m.newMapper(); err == nil { // an error would come from the configuration, which was good before
		m.current.Store(&next)
	}
}

func (m *resettableMapper) mapper() meta.RESTMapper { return *m.current.Load() }

// KindFor implements meta.RESTMapper, as all methods below do.
func (m *resettableMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.mapper().KindFor(r)
}

func (m *resettableMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.mapper().KindsFor(r)
}

func (m *resettableMapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.mapper().ResourceFor(r)
}

func (m *resettableMapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.mapper().ResourcesFor(r)
}

func (m *resettableMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if mapping, err := m.own.RESTMapping(gk, versions...); err == nil {
		return mapping, nil
	}
	return m.mapper().RESTMapping(gk, versions...)
}

func (m *resettableMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.mapper().RESTMappings(gk, versions...)
}

func (m *resettableMapper) ResourceSingularizer(resource string) (string, error) {
	return m.mapper().ResourceSingularizer(resource)
}
