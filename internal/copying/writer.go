// Package copying is what the runners of internal/copies and internal/distribute have in common: guarded requests
// (writer.go), the scrub, which reads all copies whole (scrub.go), and how they run and what becomes of their Events
// and log lines (outputs.go).
//
// A copy is an object that the operator wrote from another one, its source; a slot is the place (kind, namespace, name)
// of one copy.
//
// A copy is created by POST, replaced by PUT with UID and resourceVersion, and deleted with both as preconditions.
// There is no server-side apply and no deletecollection. The following was observed on kube-apiserver 1.36, and is the
// reason:
//   - A PUT needs no more of the old object than its metadata, and removes fields that it leaves out. It keeps status, and clusterIP and
//     nodePort of a Service. It removes finalizers that it leaves out.
//   - A PUT without UID makes a deleted Role, RoleBinding, LimitRange or Service anew (201), so that a revoked binding would return. With
//     the UID the answer is 409. Secrets, ConfigMaps, ServiceAccounts, NetworkPolicies, ResourceQuotas and custom resources answer 404.
//   - A PUT with an old resourceVersion, or with another object's UID, is refused with 409. Without resourceVersion it is unguarded, and
//     for custom resources refused with 422.
//   - A PUT that changes nothing keeps the resourceVersion, and sends no event.
//   - A key that the same manager wrote by POST and leaves out in an apply stays for ever. An apply to another user's object merges into
//     it. An apply never removes what others added.
//   - A request takes this CPU time of the API server: POST 0.49 ms, PUT 0.59, apply 0.74, JSON patch with two tests 0.76, DELETE 0.38.
//   - A POST or PUT of a Role needs the rights that it grants, or escalate, even if only a label changes.
//   - The garbage collector deletes an object whose ownerReference names an object of another namespace within half a second.
//   - With a limit of 200 requests a second in the client, 3,000 writes take 13 s instead of 2. So API Priority and Fairness is the limit.
package copying

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/apianswer"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/pause"
)

// asMetadata is an Accept header for answers that hold metadata alone, because nobody needs the content of a copy that
// was just written.
const asMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
	"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// API has the methods that carry out the requests of a State. A Writer implements them with the API server, and
// test/simulation with a model of one.
type API interface {
	Create(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot, body []byte) (*metav1.PartialObjectMetadata, error)
	Update(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot, body []byte) (*metav1.PartialObjectMetadata, error)
	UpdateStatus(ctx context.Context, r schema.GroupVersionResource, name string, body []byte) (*metav1.PartialObjectMetadata, error)
	Delete(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot, uid, resourceVersion string) error
	Metadata(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (*metav1.PartialObjectMetadata, error)
	Object(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot) (map[string]any, error)
}

// Writer sends guarded writes of copies, and reads of single objects and of pages.
type Writer struct {
	client  rest.Interface
	refused func(namespace, message string)
}

// OverHTTP1 returns cfg for a client that speaks HTTP/1.1. A fan-out is thousands of small requests, and as many
// events. As frames of one HTTP/2 connection these requests would take more time of the API server and of the operator,
// and would all go to the one API server at the other end.
func OverHTTP1(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.NextProtos = []string{"http/1.1"}
	return cfg
}

// NewWriter returns a Writer with its own connections, and no rate limit but that of cfg. refused is called when the API server forbids a
// new copy; it may be nil.
func NewWriter(cfg *rest.Config, refused func(namespace, message string)) (*Writer, error) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	cfg = OverHTTP1(cfg)
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.APIPath = "/"
	client, err := rest.RESTClientFor(cfg)
	return &Writer{client, refused}, err
}

func buildPath(resource schema.GroupVersionResource, namespace, name string) []string {
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

// Create makes a copy.
func (w *Writer) Create(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot,
	body []byte) (*metav1.PartialObjectMetadata, error) {
	made, err := sendWrite(w.client.Post().AbsPath(buildPath(r, slot.Namespace, "")...).Body(body), ctx)
	if w.refused != nil && apierrors.IsForbidden(err) {
		w.refused(slot.Namespace, err.Error())
	}
	return made, err
}

// Update replaces a copy; body holds its UID and resourceVersion.
func (w *Writer) Update(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot,
	body []byte) (*metav1.PartialObjectMetadata, error) {
	return sendWrite(w.client.Put().AbsPath(buildPath(r, slot.Namespace, slot.Name)...).Body(body), ctx)
}

// UpdateStatus replaces the status of a cluster-scoped object; body holds its UID and resourceVersion.
func (w *Writer) UpdateStatus(ctx context.Context, r schema.GroupVersionResource, name string,
	body []byte) (*metav1.PartialObjectMetadata, error) {
	return sendWrite(w.client.Put().AbsPath(append(buildPath(r, "", name), "status")...).Body(body), ctx)
}

func sendWrite(request *rest.Request,
	ctx context.Context) (*metav1.PartialObjectMetadata, error) { //nolint:revive // ctx last: the request is the subject
	meta := &metav1.PartialObjectMetadata{}
	err := request.Param("fieldManager", v1alpha1.OperatorName).SetHeader("Accept", asMetadata).Do(ctx).Into(meta)
	return meta, pauseIfBusy(ctx, err)
}

// longestPause bounds how long a worker pauses after a write for which the API server was too busy.
const longestPause = time.Second

// pauseIfBusy returns err. If the API server asks to wait, pauseIfBusy pauses first. So a worker sends at most one such
// write a second, however many keys wait.
func pauseIfBusy(ctx context.Context, err error) error {
	if asked := apianswer.AskedDelay(err); asked > 0 {
		_ = pause.For(ctx, min(asked, longestPause))
	}
	return err
}

// Delete removes a copy if it still has this UID and resourceVersion.
func (w *Writer) Delete(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot, uid, resourceVersion string) error {
	id := types.UID(uid)
	return pauseIfBusy(ctx, w.client.Delete().AbsPath(buildPath(r, slot.Namespace, slot.Name)...).
		Body(&metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &id, ResourceVersion: &resourceVersion},
		}).Do(ctx).Error())
}

// Metadata reads the metadata of one object.
func (w *Writer) Metadata(ctx context.Context, r schema.GroupVersionResource, namespace,
	name string) (*metav1.PartialObjectMetadata, error) {
	meta := &metav1.PartialObjectMetadata{}
	err := w.client.Get().AbsPath(buildPath(r, namespace, name)...).SetHeader("Accept", asMetadata).Do(ctx).Into(meta)
	return meta, err
}

// ErrTooLarge reports that a page has more bytes than were allowed.
var ErrTooLarge = errors.New("the page is too large")

// Page lists whole objects, in a namespace or in all if it is "", as JSON. It returns ErrTooLarge for a page of more
// than most bytes; with most 0 there is no limit.
func (w *Writer) Page(ctx context.Context, r schema.GroupVersionResource, namespace string, o metav1.ListOptions,
	most int) ([]byte, error) {
	stream, err := w.client.Get().AbsPath(buildPath(r, namespace, "")...).VersionedParams(&o, metav1.ParameterCodec).
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
		return nil, ErrTooLarge
	}
	return data, err
}

// Object reads one object whole.
func (w *Writer) Object(ctx context.Context, r schema.GroupVersionResource, slot copies.Slot) (map[string]any, error) {
	data, err := w.client.Get().AbsPath(buildPath(r, slot.Namespace, slot.Name)...).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", slot, err)
	}
	return object, nil
}
