package invocation

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/warren-tenancy/warren/internal/configfile"
)

// UnservedError names a resource that the API server doesn't have.
type UnservedError struct {
	name string
	schema.GroupResource
}

func (e UnservedError) Error() string {
	return fmt.Sprintf("the API server has no resource %q: kubectl api-resources lists all resources", e.name)
}

// FindMapping returns the mapping of the resource called name.
func (inv *Invocation) FindMapping(name string) (*meta.RESTMapping, error) {
	mapper, err := inv.Flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	full, short := schema.ParseResourceArg(strings.ToLower(name))
	candidates := []schema.GroupVersionResource{short.WithVersion("")}
	if full != nil {
		candidates = append([]schema.GroupVersionResource{*full}, candidates...)
	}
	for _, candidate := range candidates {
		var kind schema.GroupVersionKind
		if kind, err = mapper.KindFor(candidate); err != nil {
			continue
		}
		var found *meta.RESTMapping
		if found, err = mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			return found, nil
		}
	}
	if meta.IsNoMatchError(err) {
		return nil, UnservedError{name, short}
	}
	return nil, err
}

// NamespacedResources are the resources that the API server has, and whether they are namespaced. Those of an API
// service that doesn't answer are missing.
func (inv *Invocation) NamespacedResources() (map[schema.GroupResource]bool, error) {
	api, err := inv.Flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	_, lists, err := api.ServerGroupsAndResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return nil, err
	}
	found := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			found[schema.GroupResource{Group: version.Group, Resource: resource.Name}] = resource.Namespaced
		}
	}
	return found, nil
}

// PropagableKinds returns the kinds that the API server serves and that can have copies.
func (inv *Invocation) PropagableKinds() ([]schema.GroupVersionKind, error) {
	api, err := inv.Flags.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	lists, err := api.ServerPreferredResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create", "update"}},
		lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			kind := version.WithKind(resource.Kind)
			if resource.Namespaced && configfile.CanBePropagated(kind.GroupKind()) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}
