package watchset

import (
	"context"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// clients make all requests of a Set.
type clients struct {
	config    *rest.Config
	http      *http.Client
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient

	accessReviews authorizationclient.SelfSubjectAccessReviewInterface
	rulesReviews  authorizationclient.SelfSubjectRulesReviewInterface
	identities    authenticationclient.SelfSubjectReviewInterface

	mu        sync.Mutex // guards resources
	resources map[resourceForm]resourceClient
}

func newClients(cfg *rest.Config, h *http.Client) (*clients, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.QPS == 0 && cfg.RateLimiter == nil {
		cfg.QPS = -1
	}
	if h == nil {
		var err error
		if h, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, err
		}
	}
	c := &clients{config: cfg, http: h, resources: map[resourceForm]resourceClient{}}
	var err error
	if c.metadata, err = metadata.NewForConfigAndClient(cfg, h); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, h); err != nil {
		return nil, err
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(cfg, h); err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	c.accessReviews, c.rulesReviews = authorization.SelfSubjectAccessReviews(), authorization.SelfSubjectRulesReviews()
	authentication, err := authenticationclient.NewForConfigAndClient(cfg, h)
	if err != nil {
		return nil, err
	}
	c.identities = authentication.SelfSubjectReviews()
	return c, nil
}

// listServedResources asks discovery for the resources of a group version.
func (c *clients) listServedResources(ctx context.Context, gv schema.GroupVersion) ([]metav1.APIResource, error) {
	list, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if err != nil {
		return nil, err
	}
	return list.APIResources, nil
}

// listGroupVersions asks discovery for the versions of a group, and returns the preferred one first.
func (c *clients) listGroupVersions(ctx context.Context, group string) ([]string, error) {
	requests := c.discovery.RESTClient()
	if group == "" {
		core := &metav1.APIVersions{}
		err := requests.Get().AbsPath("/api").Do(ctx).Into(core)
		return core.Versions, err
	}
	served := &metav1.APIGroup{}
	if err := requests.Get().AbsPath("/apis", group).Do(ctx).Into(served); err != nil {
		return nil, err
	}
	versions := []string{served.PreferredVersion.Version}
	for _, each := range served.Versions {
		if each.Version != served.PreferredVersion.Version {
			versions = append(versions, each.Version)
		}
	}
	return versions, nil
}

// resourceClient lists and watches one resource, in all namespaces or in one.
type resourceClient interface {
	List(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error)
}

// resourceClientFor returns the client of a resource in a form. Where the Scheme knows the kind, objects in Full are
// decoded into its Go type at once.
func (c *clients) resourceClientFor(resource schema.GroupVersionResource, form Form, scheme *runtime.Scheme) resourceClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := resourceForm{resource, form}
	if c.resources[key] == nil {
		c.resources[key] = c.newResourceClient(resource, form, scheme)
	}
	return c.resources[key]
}

type resourceForm struct {
	schema.GroupVersionResource
	Form
}

func (c *clients) newResourceClient(resource schema.GroupVersionResource, form Form, scheme *runtime.Scheme) resourceClient {
	if form != Full {
		return metadataClient{c.metadata.Resource(resource)}
	}
	if typed := c.typedClientFor(resource, scheme); typed != nil {
		return typed
	}
	return dynamicClient{c.dynamic.Resource(resource)}
}

type metadataClient struct{ metadata.Getter }

func (c metadataClient) List(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	return c.Namespace(namespace).List(ctx, o)
}

func (c metadataClient) Watch(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	return c.Namespace(namespace).Watch(ctx, o)
}

type dynamicClient struct {
	dynamic.NamespaceableResourceInterface
}

func (c dynamicClient) List(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	return c.Namespace(namespace).List(ctx, o)
}

func (c dynamicClient) Watch(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	return c.Namespace(namespace).Watch(ctx, o)
}

// typedClient is a resourceClient that decodes objects into the Go types of a Scheme.
type typedClient struct {
	requests rest.Interface
	resource string
	kind     schema.GroupVersionKind
	scheme   *runtime.Scheme
}

// typedClientFor returns a client that decodes into the scheme's Go types. It returns nil if the scheme is nil or
// doesn't know a kind whose usual plural is the resource's name.
func (c *clients) typedClientFor(resource schema.GroupVersionResource, scheme *runtime.Scheme) *typedClient {
	if scheme == nil {
		return nil
	}
	for name := range scheme.KnownTypes(resource.GroupVersion()) {
		kind := resource.GroupVersion().WithKind(name)
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		if plural != resource || !scheme.Recognizes(resource.GroupVersion().WithKind(name+"List")) {
			continue
		}
		requests, err := apiutil.RESTClientForGVK(kind, false, false, c.config, serializer.NewCodecFactory(scheme), c.http)
		if err != nil {
			return nil
		}
		return &typedClient{requests, resource.Resource, kind, scheme}
	}
	return nil
}

func (c *typedClient) newGetRequest(namespace string, o metav1.ListOptions) *rest.Request {
	return c.requests.Get().NamespaceIfScoped(namespace, namespace != "").Resource(c.resource).
		SpecificallyVersionedParams(&o, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

func (c *typedClient) List(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	list, err := c.scheme.New(c.kind.GroupVersion().WithKind(c.kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list, c.newGetRequest(namespace, o).Do(ctx).Into(list)
}

func (c *typedClient) Watch(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.newGetRequest(namespace, o).Watch(ctx)
}
