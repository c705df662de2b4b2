package propagation

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/warren-tenancy/warren/internal/propagate"
)

// Writer sends guarded writes of copies, and reads of single objects, for whoever else keeps copies.
type Writer struct{ writer *writer }

// NewWriter returns a Writer.
func NewWriter(cfg *rest.Config) (*Writer, error) {
	w, err := newWriter(cfg)
	return &Writer{w}, err
}

// OverHTTP1 is cfg for a client of many small requests.
func OverHTTP1(cfg *rest.Config) *rest.Config { return overHTTP1(cfg) }

// Create makes a copy.
func (w *Writer) Create(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, body []byte) (*metav1.PartialObjectMetadata, error) {
	return w.writer.create(ctx, r, slot, body)
}

// Update replaces an object; body holds its UID and resourceVersion.
func (w *Writer) Update(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, body []byte) (*metav1.PartialObjectMetadata, error) {
	return w.writer.update(ctx, r, slot, body)
}

// UpdateStatus replaces the status of a cluster-scoped object; body holds its UID and resourceVersion.
func (w *Writer) UpdateStatus(ctx context.Context, r schema.GroupVersionResource, name string, body []byte) (*metav1.PartialObjectMetadata, error) {
	return into(w.writer.client.Put().AbsPath(append(path(r, "", name), "status")...).Body(body), ctx)
}

// Delete removes an object if it is still the one that was seen.
func (w *Writer) Delete(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot, uid, resourceVersion string) error {
	return w.writer.delete(ctx, r, slot, &propagate.Copy{UID: uid, ResourceVersion: resourceVersion})
}

// Metadata reads the metadata of one object.
func (w *Writer) Metadata(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot) (*metav1.PartialObjectMetadata, error) {
	return w.writer.metadata(ctx, r, slot.Namespace, slot.Name)
}

// Object reads one object whole.
func (w *Writer) Object(ctx context.Context, r schema.GroupVersionResource, slot propagate.Slot) (map[string]any, error) {
	return w.writer.object(ctx, r, slot)
}

// NamespaceGone says whether a write failed because the namespace is going or gone: nothing to report, nothing to retry.
func NamespaceGone(slot propagate.Slot, err error) bool { return isNamespaceGone(slot, err) }

// Refused says whether the API server said no, rather than not answering.
func Refused(err error) bool { return isRefused(err) }

// Backoff is the pause before another try.
func Backoff(lowest, highest time.Duration, tries int) time.Duration {
	return backoff(lowest, highest, tries)
}
