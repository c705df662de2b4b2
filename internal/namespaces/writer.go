// Package namespaces is the one writer of Namespace objects. It creates, patches and deletes them for every controller, and counts each
// request. It passes the API server's answers to the shared view before the watch brings them.
//
// A change is one merge patch, guarded by resourceVersion, so that a namespace never lacks a label between two writes. It is no
// server-side apply. A POST by one manager and a later apply by the same one yield two entries in managedFields, and a key that the apply
// drops then stays for ever.
package namespaces

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// requests counts the requests of the Writer to the API server.
var requests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "warren_namespace_writes_total", Help: "Requests that create, patch or delete a Namespace; result is success or error.",
}, []string{"verb", "result"})

func init() { metrics.Registry.MustRegister(requests) }

// View takes Namespaces from the answers of the API server.
type View interface{ Observe(metav1.Object) }

// Writer writes Namespaces.
type Writer struct {
	Client client.Client
	// Live reads from the API server, without a cache.
	Live client.Reader
	View View
}

// Create creates n with all its labels and annotations. n never gets an ownerReference: the garbage collector would delete the
// namespace when the CRD of its owner is removed.
func (w *Writer) Create(ctx context.Context, n *forest.Namespace) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}}
	err := w.Client.Create(ctx, namespace, client.FieldOwner(v1alpha1.OperatorName))
	countRequest("create", err)
	if err == nil {
		w.View.Observe(namespace)
	}
	return err
}

// Patch applies change to the labels and annotations of n in one request. The API server refuses it with 409 unless the
// Namespace still has the UID and the resourceVersion of n. Patch returns the new resourceVersion.
func (w *Writer) Patch(ctx context.Context, n *forest.Namespace, change forest.Change) (resourceVersion string, err error) {
	meta := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion}
	if len(change.Labels) > 0 {
		meta["labels"] = change.Labels
	}
	if len(change.Annotations) > 0 {
		meta["annotations"] = change.Annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return "", fmt.Errorf("writing a patch of Namespace %s: %w", n.Name, err)
	}
	written := metadataOf(n.Name)
	err = w.Client.Patch(ctx, written, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.OperatorName))
	countRequest("patch", err)
	if err != nil {
		return "", err
	}
	// Observe calls all subscribers of the view at once, unless the watch is ahead. When the watch brings this version of the Namespace, the
	// view calls them once more.
	w.View.Observe(written)
	return written.ResourceVersion, nil
}

// Delete requests the deletion of a namespace. The API server refuses it with 409 unless the namespace still has that UID and, where
// resourceVersion isn't empty, that version. After a 409 the view has the version that the API server has: so the caller, who tries again
// soon, decides by that version, even if the watch has not brought it yet.
func (w *Writer) Delete(ctx context.Context, name, uid, resourceVersion string) error {
	id := types.UID(uid)
	preconditions := client.Preconditions{UID: &id}
	if resourceVersion != "" {
		preconditions.ResourceVersion = &resourceVersion
	}
	err := w.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, preconditions)
	countRequest("delete", err)
	if apierrors.IsConflict(err) {
		if unread := w.Reread(ctx, name); client.IgnoreNotFound(unread) != nil {
			return fmt.Errorf("%w; reading it: %w", err, unread)
		}
	}
	return err
}

// Reread reads a Namespace from the API server into the view. It is meant for a name that could not be taken. Its namespace may be one
// that this operator created before a restart, and that the watch has not brought yet.
func (w *Writer) Reread(ctx context.Context, name string) error {
	n := metadataOf(name)
	if err := w.Live.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return err
	}
	w.View.Observe(n)
	return nil
}

func metadataOf(name string) *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	n.Name = name
	return n
}

func countRequest(verb string, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	requests.WithLabelValues(verb, result).Inc()
}
