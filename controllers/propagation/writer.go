package propagation

import (
	"context"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// asMetadata asks for answers that hold metadata alone: a copy's content is of no interest.
const asMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// writer sends the requests of the engine: guarded writes of copies, and reads of single objects.
type writer struct{ client rest.Interface }

// overHTTP1 is cfg for a client that speaks HTTP/1.1. A fan-out is thousands of small requests, and as many events: as
// frames of one HTTP/2 connection they take more of the API server's time and of ours, and all go to the API server that
// has this connection.
func overHTTP1(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.NextProtos = []string{"http/1.1"}
	return cfg
}

func newWriter(cfg *rest.Config) (*writer, error) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	cfg = overHTTP1(cfg)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.APIPath = "/"
	client, err := rest.RESTClientFor(cfg)
	return &writer{client}, err
}

func path(resource schema.GroupVersionResource, namespace, name string) []string {
	segments := []string{"apis", resource.Group, resource.Version}
	if resource.Group == "" {
		segments = []string{"api", resource.Version}
	}
	if namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	segments = append(segments, resource.Resource)
	if name != "" {
		segments = append(segments, name)
	}
	return segments
}

// create makes a copy.
func (w *writer) create(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, body []byte) (*metav1.PartialObjectMetadata, error) {
	return into(w.client.Post().AbsPath(path(r, slot.Namespace, "")...).Body(body), ctx)
}

// update replaces a copy; body holds its UID and resourceVersion.
func (w *writer) update(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, body []byte) (*metav1.PartialObjectMetadata, error) {
	return into(w.client.Put().AbsPath(path(r, slot.Namespace, slot.Name)...).Body(body), ctx)
}

func into(request *rest.Request, ctx context.Context) (*metav1.PartialObjectMetadata, error) { //nolint:revive // ctx last: the request is the subject
	meta := &metav1.PartialObjectMetadata{}
	err := request.Param("fieldManager", v1alpha1.OperatorName).SetHeader("Accept", asMetadata).Do(ctx).Into(meta)
	return meta, err
}

// delete removes a copy if it is still the one that was seen.
func (w *writer) delete(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, c *propagate.Copy) error {
	uid := types.UID(c.UID)
	return w.client.Delete().AbsPath(path(r, slot.Namespace, slot.Name)...).
		Body(&metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &c.ResourceVersion},
		}).Do(ctx).Error()
}

// metadata reads the metadata of one object.
func (w *writer) metadata(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	meta := &metav1.PartialObjectMetadata{}
	err := w.client.Get().AbsPath(path(r, namespace, name)...).SetHeader("Accept", asMetadata).Do(ctx).Into(meta)
	return meta, err
}

// errTooLarge says that a page has more bytes than were allowed.
var errTooLarge = errors.New("the page is too large")

// page lists objects whole, in all namespaces, as JSON: at most so many bytes, unless most is 0.
func (w *writer) page(ctx context.Context, r schema.GroupVersionResource, o metav1.ListOptions, most int) ([]byte, error) {
	stream, err := w.client.Get().AbsPath(path(r, "", "")...).VersionedParams(&o, metav1.ParameterCodec).
		SetHeader("Accept", runtime.ContentTypeJSON).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	if most == 0 {
		return io.ReadAll(stream)
	}
	data, err := io.ReadAll(io.LimitReader(stream, int64(most)+1))
	if err == nil && len(data) > most {
		return nil, errTooLarge
	}
	return data, err
}

// object reads one object whole.
func (w *writer) object(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot) (map[string]any, error) {
	data, err := w.client.Get().AbsPath(path(r, slot.Namespace, slot.Name)...).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", slot, err)
	}
	return object, nil
}
