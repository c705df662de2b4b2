package trees_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// What HNC's webhooks change and refuse.

func (h *hncProcess) mutateNamespace(_ context.Context, r admission.Request) admission.Response {
	n := decoded(r.Object.Raw)
	if _, has := n.GetLabels()[hncIncluded]; has || !h.manages(n.GetName()) {
		return admission.Allowed("")
	}
	n.SetLabels(with(n.GetLabels(), hncIncluded, "true"))
	raw, err := json.Marshal(n)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(r.Object.Raw, raw)
}

func (h *hncProcess) judgeNamespace(ctx context.Context, verb admissionv1.Operation, old, n *unstructured.Unstructured) string {
	if verb == admissionv1.Delete {
		anchor := &unstructured.Unstructured{}
		anchor.SetGroupVersionKind(anchorKind)
		parent := old.GetAnnotations()[hncSubOf]
		if parent != "" && h.api.Get(ctx, client.ObjectKey{Namespace: parent, Name: old.GetName()}, anchor) == nil {
			return "is a subnamespace. Please delete the anchor from the parent namespace " + parent + " to delete the subnamespace"
		}
		return ""
	}
	was := map[string]string{}
	if old != nil {
		was = old.GetLabels()
	}
	treeLabels := func(all map[string]string) map[string]string {
		found := maps.Clone(all)
		maps.DeleteFunc(found, func(key, _ string) bool { return !strings.HasSuffix(key, hncDepth) })
		return found
	}
	if h.manages(n.GetName()) && n.GetLabels()[hncIncluded] != "true" {
		return "you cannot change the value of the " + hncIncluded + " label"
	}
	if before, now := treeLabels(was), treeLabels(n.GetLabels()); len(before)+len(now) > 0 && !maps.Equal(before, now) {
		return "cannot set or modify tree labels; these can only be managed by HNC"
	}
	return ""
}

func (h *hncProcess) judgeObject(ctx context.Context, verb admissionv1.Operation, old, now *unstructured.Unstructured) string {
	from := func(u *unstructured.Unstructured) string {
		if u == nil {
			return ""
		}
		return u.GetLabels()[hncFrom]
	}
	switch {
	case from(old) == "" && from(now) == "":
		return ""
	case verb == admissionv1.Create:
		return "cannot create objects with the label " + hncFrom
	case verb == admissionv1.Delete:
		if n := h.read(ctx, old.GetNamespace()); n == nil || n.GetDeletionTimestamp() != nil {
			return ""
		}
		return "cannot delete object propagated from namespace " + from(old)
	case from(old) != from(now), !reflect.DeepEqual(canonical(old), canonical(now)), !maps.Equal(old.GetLabels(), now.GetLabels()),
		!maps.Equal(old.GetAnnotations(), now.GetAnnotations()):
		return "cannot modify object propagated from namespace " + from(old)
	}
	return ""
}

func (h *hncProcess) judgeHierarchy(ctx context.Context, _ admissionv1.Operation, _, hc *unstructured.Unstructured) string {
	parent, _, _ := unstructured.NestedString(hc.Object, "spec", "parent")
	n := h.read(ctx, hc.GetNamespace())
	switch owner := n.GetAnnotations()[hncSubOf]; {
	case owner != "" && parent != owner:
		return "illegal parent: Cannot set the parent because it's a subnamespace of " + owner
	case parent != "" && h.read(ctx, parent) == nil:
		return "requested parent " + parent + " does not exist"
	}
	return ""
}
