package watchset

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clients make all requests of a Set.
type clients struct {
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	discovery *discovery.DiscoveryClient
	reviews   authorizationclient.SelfSubjectAccessReviewInterface
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
	c := &clients{}
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
	c.reviews = authorization.SelfSubjectAccessReviews()
	return c, nil
}

// client is the one that lists and watches in a form.
func (c *clients) client(form Form) any {
	if form == Full {
		return c.dynamic
	}
	return c.metadata
}

// fetch lists what the part shows.
func (p *part) fetch(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o = p.selecting(o)
	if c := p.set.clients; p.key.form == Full {
		return c.dynamic.Resource(p.key.resource).Namespace(p.key.namespace).List(ctx, o)
	}
	return p.set.clients.metadata.Resource(p.key.resource).Namespace(p.key.namespace).List(ctx, o)
}

// stream watches what the part shows.
func (p *part) stream(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o = p.selecting(o)
	if c := p.set.clients; p.key.form == Full {
		return c.dynamic.Resource(p.key.resource).Namespace(p.key.namespace).Watch(ctx, o)
	}
	return p.set.clients.metadata.Resource(p.key.resource).Namespace(p.key.namespace).Watch(ctx, o)
}

// typed gives an object the Go type that its form promises.
func typed(obj runtime.Object, form Form, scheme *runtime.Scheme) (client.Object, error) {
	object, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("the server sent a %T, which is no object", obj)
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok || form != Full || scheme == nil || !scheme.Recognizes(u.GroupVersionKind()) {
		return object, nil
	}
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	result, ok := made.(client.Object)
	if !ok {
		return object, nil
	}
	return result, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, result)
}
