package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// selecting are the kinds whose selectors decide which traffic reaches namespaces, or which policies and webhooks apply
// in them.
var selecting = []schema.GroupKind{
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
}

// readPeerSelectors adds a gap for each object that selects by labels of the peer's. After the migration, new
// namespaces don't get these labels, and moved namespaces keep their old ones.
func (r *reader) readPeerSelectors(ctx context.Context, e *Estate) error {
	for _, kind := range selecting {
		objects, _, err := r.listPeerObjects(ctx, kind.Group, kind.Kind)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if !strings.HasPrefix(object.GetName(), r.peer.prefix) && !r.peer.isPeerCopy(object) &&
				namesKeyOfGroup(object, r.peer.group) {
				e.addEstateGap(objectFromMetadata(partialMetadataOf(object)).String(),
					fmt.Sprintf("it selects by labels of %s. After --apply, new namespaces don't get these labels, and moved namespaces keep their "+
						"old ones: change the selector right after --apply%s",
						r.peer.title, r.peer.labelAdvice))
			}
		}
	}
	return nil
}

// isPeerCopy reports whether the peer copied an object from a source. Then the gap names the source instead of the
// copy.
func (p peer) isPeerCopy(object unstructured.Unstructured) bool {
	return object.GetLabels()[hncInheritedFrom] != "" || object.GetAnnotations()[accurateFrom] != ""
}

// namesKeyOfGroup reports whether anything but the metadata of an object names a key of an API group.
func namesKeyOfGroup(object unstructured.Unstructured, group string) bool {
	fields := maps.Clone(object.Object)
	delete(fields, "metadata")
	data, err := json.Marshal(fields)
	return err == nil && strings.Contains(string(data), group+"/")
}
