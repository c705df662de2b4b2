// Package apiserver is the exporter's small client of the API server: lists and watches of four kinds, one condition, Events and a Lease. The
// client and the manager of controller-runtime do the same, but register the Go types of every API of Kubernetes, which would be most of
// the exporter's memory.
package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// List is a list of objects of one kind.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Reader lists and watches. The Go type of list says which kind: PartialObjectMetadataList stands for the metadata of Namespaces.
type Reader interface {
	List(ctx context.Context, list List, options metav1.ListOptions) error
	Watch(ctx context.Context, list List, options metav1.ListOptions) (watch.Interface, error)
}

// Client makes the exporter's requests. It is safe for concurrent use.
type Client struct {
	core, tenancy, coordination rest.Interface
	namespaces                  metadata.ResourceInterface
	scheme                      *runtime.Scheme
	parameters                  runtime.ParameterCodec
}

// NewClient returns a client, and doesn't connect yet. It fails for a configuration that no client can have, such as a certificate that
// isn't there.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := newScheme()
	c := &Client{scheme: scheme, parameters: runtime.NewParameterCodec(scheme)}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server at %s: %w", config.Host, err)
	}
	for version, into := range map[schema.GroupVersion]*rest.Interface{
		corev1.SchemeGroupVersion: &c.core, v1alpha1.GroupVersion: &c.tenancy, coordinationv1.SchemeGroupVersion: &c.coordination,
	} {
		if *into, err = newGroupClient(config, http, scheme, version); err != nil {
			return nil, fmt.Errorf("making a client of %s at %s: %w", version, config.Host, err)
		}
	}
	objects, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), http)
	if err != nil {
		return nil, fmt.Errorf("making a client of metadata at %s: %w", config.Host, err)
	}
	c.namespaces = objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	return c, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the types are fixed at build time
		}
	}
	return scheme
}

// newGroupClient returns a client of one version of one group. Types of Kubernetes come as protobuf, which costs less memory to read.
func newGroupClient(config *rest.Config, http *http.Client, scheme *runtime.Scheme, version schema.GroupVersion) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &version, "/apis"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType = runtime.ContentTypeJSON
	if version != v1alpha1.GroupVersion {
		own.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if version.Group == "" {
		own.APIPath = "/api"
	}
	return rest.RESTClientForConfigAndClient(own, http)
}

// List implements Reader.
func (c *Client) List(ctx context.Context, list List, options metav1.ListOptions) error {
	if all, ok := list.(*metav1.PartialObjectMetadataList); ok {
		answer, err := c.namespaces.List(ctx, options)
		if err == nil {
			*all = *answer
		}
		return err
	}
	request, err := c.request(list)
	if err != nil {
		return err
	}
	return request.VersionedParams(&options, c.parameters).Do(ctx).Into(list)
}

// Watch implements Reader.
func (c *Client) Watch(ctx context.Context, list List, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
		return c.namespaces.Watch(ctx, options)
	}
	request, err := c.request(list)
	if err != nil {
		return nil, err
	}
	return request.VersionedParams(&options, c.parameters).Watch(ctx)
}

// request returns a request for all objects of the list's kind.
func (c *Client) request(list List) (*rest.Request, error) {
	switch list.(type) {
	case *v1alpha1.LNamespaceList:
		return c.tenancy.Get().Resource("lnamespaces"), nil
	}
	return nil, fmt.Errorf("the exporter reads no %T", list)
}

// ApplyTenantStatus applies the status of an LNamespace as the field owner, which takes what others own of it. The UID, unless it is
// empty, keeps the write from a newer LNamespace of that name: the API server answers 409 then.
func (c *Client) ApplyTenantStatus(ctx context.Context, owner, name string, uid types.UID, status map[string]any) error {
	metadata := map[string]any{"name": name}
	if uid != "" {
		metadata["uid"] = string(uid)
	}
	body, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "LNamespace", "metadata": metadata, "status": status})
	if err != nil {
		return fmt.Errorf("writing the status of LNamespace %s as JSON: %w", name, err)
	}
	force := true
	return c.tenancy.Patch(types.ApplyPatchType).Resource("lnamespaces").Name(name).SubResource("status").
		VersionedParams(&metav1.PatchOptions{FieldManager: owner, Force: &force}, c.parameters).Body(body).Do(ctx).Error()
}
