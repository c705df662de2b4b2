package watchset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCache returns a function for manager.Options.NewCache. The cache that it makes is read-only, its informers follow
// the identity's rights, and no missing right keeps the manager from starting. At the first read in a namespace, the
// cache leases that namespace for as long as the manager runs. For a read without a namespace it leases the cluster. It
// runs a Set of its own with the options o; a Scheme, Mapper or HTTPClient that o lacks is the manager's.
//
// Event handlers (and so For, Owns and Watches of a controller) and indexes fail with an ErrInvalid whose message
// describes what to use instead.
func NewCache(o Options) cache.NewCacheFunc {
	return func(cfg *rest.Config, managers cache.Options) (cache.Cache, error) {
		if o.Scheme == nil {
			o.Scheme = managers.Scheme
		}
		if o.Mapper == nil {
			o.Mapper = managers.Mapper
		}
		if o.HTTPClient == nil {
			o.HTTPClient = managers.HTTPClient
		}
		set, err := New(cfg, o)
		if err != nil {
			return nil, err
		}
		return &readOnlyCache{Reader: set.Session(Static("cache")).Reader(GetByNamespace()), set: set}, nil
	}
}

type readOnlyCache struct {
	client.Reader
	set *Set
}

// Start implements cache.Cache, and so do the methods below.
func (c *readOnlyCache) Start(ctx context.Context) error { return c.set.Start(ctx) }

func (c *readOnlyCache) WaitForCacheSync(context.Context) bool { return true }

func (c *readOnlyCache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, unsupportedError(fmt.Sprintf("an informer of %T", object), "watch it with WatchesRawSource and a Source of a watchset.Set")
}

func (c *readOnlyCache) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind,
	_ ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, unsupportedError("an informer of "+gvk.String(), "watch it with WatchesRawSource and a Source of a watchset.Set")
}

func (c *readOnlyCache) RemoveInformer(context.Context, client.Object) error {
	return unsupportedError("the removal of one informer", "it ends with the manager; use a watchset.Session for an informer that ends before")
}

func (c *readOnlyCache) IndexField(_ context.Context, object client.Object, field string, _ client.IndexerFunc) error {
	return unsupportedError(fmt.Sprintf("an index of %T by %s", object, field), "list with a label selector")
}

func unsupportedError(what, instead string) error {
	return fmt.Errorf("%w: a read-only watchset cache does not offer %s: %s", ErrInvalid, what, instead)
}
