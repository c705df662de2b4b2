package trees_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// hncProcess does the work of HNC's manager that a migration can meet: trees, labels, finalizers, copies, and its webhooks. It rewrites
// their rules with an old client that knows no matchConditions. At its start it deletes all copies and makes them anew.
type hncProcess struct {
	*peerProcess
	namespaces, hierarchies map[string]*unstructured.Unstructured
	anchors                 map[string][]unstructured.Unstructured
	rounds                  int
}

const (
	hncIncluded   = "hnc.x-k8s.io/included-namespace"
	hncFrom       = "hnc.x-k8s.io/inherited-from"
	hncSubOf      = "hnc.x-k8s.io/subnamespace-of"
	hncHasSub     = "hnc.x-k8s.io/hasSubnamespace"
	hncDepth      = ".tree.hnc.x-k8s.io/depth"
	hncObjects    = "objects.hnc.x-k8s.io"
	managedByApps = "app.kubernetes.io/managed-by"
)

// hncModes are the kinds in HNC's configuration of the fixture. The value is whether HNC copies objects without an annotation.
var hncModes = map[schema.GroupVersionKind]bool{rbacKind("Role"): true, rbacKind("RoleBinding"): true,
	configMapKind: true, secretKind: false}

// newHNC describes HNC's two processes: the manager, and the one that serves an API.
func (c cluster) newHNC() (*hncProcess, *peerProcess) {
	h := &hncProcess{peerProcess: c.newPeerProcess("hnc-system", "default", "hnc", "hnc-webhook-service")}
	h.reconcile = h.work
	mux := http.NewServeMux()
	mux.Handle("/mutate-namespace", &admission.Webhook{Handler: admission.HandlerFunc(h.mutateNamespace)})
	mux.Handle("/validate-v1-namespace", h.review(h.judgeNamespace))
	mux.Handle("/validate-objects", h.review(h.judgeObject))
	mux.Handle("/validate-hnc-x-k8s-io-v1alpha2-hierarchyconfigurations", h.review(h.judgeHierarchy))
	mux.Handle("/", h.review(func(context.Context, admissionv1.Operation, *unstructured.Unstructured, *unstructured.Unstructured) string {
		return ""
	}))
	h.serve = mux
	list := c.newPeerProcess("hnc-system", "default", "resourcelist-apiextension", "hnc-resourcelist")
	list.serve = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// the client may be gone
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"resources.hnc.x-k8s.io/v1alpha2","resources":[]}`))
	})
	return h, list
}

func (h *hncProcess) manages(namespace string) bool {
	return !slices.Contains([]string{"kube-system", "kube-public", "hnc-system", "kube-node-lease"}, namespace)
}

// read returns a Namespace, nil if there is none.
func (h *hncProcess) read(ctx context.Context, name string) *unstructured.Unstructured {
	n := &unstructured.Unstructured{}
	n.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if h.api.Get(ctx, client.ObjectKey{Name: name}, n) != nil {
		return nil
	}
	return n
}

// work is one round of all of HNC's controllers.
func (h *hncProcess) work(ctx context.Context, starts bool) error {
	if err := h.readTrees(ctx); err != nil {
		return err
	}
	if h.rounds++; h.rounds%20 == 0 {
		if err := h.rewriteRules(ctx); err != nil {
			return err
		}
	}
	for _, anchors := range h.anchors {
		for _, anchor := range anchors {
			if err := h.workOnAnchor(ctx, &anchor); err != nil {
				return err
			}
		}
	}
	for name, n := range h.namespaces {
		if h.manages(name) && n.GetDeletionTimestamp() == nil {
			if err := h.workOnNamespace(ctx, n); err != nil {
				return err
			}
		}
	}
	for kind, all := range hncModes {
		if err := h.workOnObjects(ctx, kind, all, starts); err != nil {
			return err
		}
	}
	return nil
}

func (h *hncProcess) readTrees(ctx context.Context) error {
	namespaces, err1 := h.list(ctx, "", "v1", "Namespace")
	hierarchies, err2 := h.list(ctx, "hnc.x-k8s.io", "v1alpha2", "HierarchyConfiguration")
	anchors, err3 := h.list(ctx, "hnc.x-k8s.io", "v1alpha2", "SubnamespaceAnchor")
	h.namespaces, h.hierarchies, h.anchors = map[string]*unstructured.Unstructured{}, map[string]*unstructured.Unstructured{},
		map[string][]unstructured.Unstructured{}
	for _, n := range namespaces {
		h.namespaces[n.GetName()] = &n
	}
	for _, hc := range hierarchies {
		h.hierarchies[hc.GetNamespace()] = &hc
	}
	for _, anchor := range anchors {
		h.anchors[anchor.GetNamespace()] = append(h.anchors[anchor.GetNamespace()], anchor)
	}
	return errors.Join(err1, err2, err3)
}

// rewriteRules writes the rules of the webhook on objects as HNC does: the whole list of webhooks, as an old client reads it.
func (h *hncProcess) rewriteRules(ctx context.Context) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := h.api.Get(ctx, client.ObjectKey{Name: "hnc-validating-webhook-configuration"}, configuration); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := configuration.DeepCopy()
	for i := range configuration.Webhooks {
		before.Webhooks[i].MatchConditions, configuration.Webhooks[i].MatchConditions = nil, nil
		if w := &configuration.Webhooks[i]; w.Name == hncObjects {
			slices.Reverse(w.Rules)
		}
	}
	return h.api.Patch(ctx, configuration, client.MergeFrom(before))
}

func (h *hncProcess) workOnAnchor(ctx context.Context, anchor *unstructured.Unstructured) error {
	n := h.namespaces[anchor.GetName()]
	isOurs := n != nil && n.GetAnnotations()[hncSubOf] == anchor.GetNamespace()
	switch {
	case anchor.GetDeletionTimestamp() != nil && isOurs && n.GetDeletionTimestamp() == nil && controllerutil.ContainsFinalizer(anchor,
		"hnc.x-k8s.io"):
		return client.IgnoreNotFound(h.api.Delete(ctx, n))
	case anchor.GetDeletionTimestamp() != nil && isOurs:
		return nil
	case anchor.GetDeletionTimestamp() != nil:
		if controllerutil.RemoveFinalizer(anchor, "hnc.x-k8s.io") {
			return client.IgnoreNotFound(h.api.Update(ctx, anchor))
		}
		return nil
	case n == nil:
		n = &unstructured.Unstructured{}
		n.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		n.SetName(anchor.GetName())
		n.SetAnnotations(map[string]string{hncSubOf: anchor.GetNamespace()})
		if err := h.api.Create(ctx, n); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	if controllerutil.AddFinalizer(anchor, "hnc.x-k8s.io") {
		return h.api.Update(ctx, anchor)
	}
	return nil
}

// parentOf returns the parent of a namespace; a subnamespace that is being deleted has none.
func (h *hncProcess) parentOf(name string) string {
	n := h.namespaces[name]
	if n == nil {
		return ""
	}
	if owner := n.GetAnnotations()[hncSubOf]; owner != "" && n.GetDeletionTimestamp() == nil {
		return owner
	}
	if hc := h.hierarchies[name]; hc != nil {
		parent, _, _ := unstructured.NestedString(hc.Object, "spec", "parent")
		return parent
	}
	return ""
}

// ancestors returns a namespace and those above it, the nearest first.
func (h *hncProcess) ancestors(name string) (all []string) {
	for at := name; at != "" && h.namespaces[at] != nil && !slices.Contains(all, at); at = h.parentOf(at) {
		all = append(all, at)
	}
	return all
}

func (h *hncProcess) workOnNamespace(ctx context.Context, n *unstructured.Unstructured) error {
	name := n.GetName()
	if err := h.workOnHierarchy(ctx, name); err != nil {
		return err
	}
	wanted := maps.Clone(n.GetLabels())
	maps.DeleteFunc(wanted, func(key, _ string) bool { return strings.HasSuffix(key, hncDepth) })
	wanted = with(wanted, hncIncluded, "true")
	for depth, above := range h.ancestors(name) {
		wanted[above+hncDepth] = strconv.Itoa(depth)
	}
	if maps.Equal(wanted, n.GetLabels()) {
		return nil
	}
	n.SetLabels(wanted)
	return h.api.Update(ctx, n)
}

func (h *hncProcess) workOnHierarchy(ctx context.Context, name string) error {
	hc, exists := h.hierarchies[name]
	owner := h.namespaces[name].GetAnnotations()[hncSubOf]
	if !exists {
		if owner == "" && len(h.anchors[name]) == 0 {
			return nil
		}
		hc = &unstructured.Unstructured{Object: map[string]any{}}
		hc.SetGroupVersionKind(hncHierarchyKind)
		hc.SetNamespace(name)
		hc.SetName("hierarchy")
	}
	before := hc.DeepCopy()
	if owner != "" {
		_ = unstructured.SetNestedField(hc.Object, owner, "spec", "parent") // no error: spec is a map
	}
	if len(h.anchors[name]) > 0 && hc.GetDeletionTimestamp() == nil {
		controllerutil.AddFinalizer(hc, hncHasSub)
	} else {
		controllerutil.RemoveFinalizer(hc, hncHasSub)
	}
	switch {
	case !exists:
		return h.api.Create(ctx, hc)
	case reflect.DeepEqual(before, hc):
		return nil
	}
	return client.IgnoreNotFound(h.api.Update(ctx, hc))
}

// workOnObjects writes the copies of a kind, and deletes those without a source.
func (h *hncProcess) workOnObjects(ctx context.Context, kind schema.GroupVersionKind, all, starts bool) error {
	objects, err := h.list(ctx, kind.Group, kind.Version, kind.Kind)
	if err != nil {
		return err
	}
	existing, names := map[string]*unstructured.Unstructured{}, map[string]bool{}
	for _, object := range objects {
		if starts && object.GetLabels()[hncFrom] != "" {
			if err := h.api.Delete(ctx, &object); client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		existing[object.GetNamespace()+"/"+object.GetName()], names[object.GetName()] = &object, true
	}
	for namespace, n := range h.namespaces {
		if !h.manages(namespace) || n.GetDeletionTimestamp() != nil {
			continue
		}
		for name := range names {
			if err := h.writeCopy(ctx, n, existing[namespace+"/"+name], h.sourceOf(existing, namespace, name, all)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sourceOf returns the source nearest the root that is to be copied into a namespace, nil for none.
func (h *hncProcess) sourceOf(existing map[string]*unstructured.Unstructured, namespace, name string, all bool) *unstructured.Unstructured {
	for _, above := range slices.Backward(h.ancestors(namespace)[1:]) {
		source := existing[above+"/"+name]
		if source != nil && source.GetLabels()[hncFrom] == "" && isCopiedByHNC(source, h.namespaces[namespace].GetLabels(), all) {
			return source
		}
	}
	return nil
}

func isCopiedByHNC(source *unstructured.Unstructured, namespace map[string]string, all bool) bool {
	notes := source.GetAnnotations()
	for _, selector := range []string{notes["propagate.hnc.x-k8s.io/select"],
		strings.ReplaceAll(notes["propagate.hnc.x-k8s.io/treeSelect"]+hncDepth, ",", hncDepth+",")} {
		parsed, err := labels.Parse(selector)
		if selector == "" || selector == hncDepth {
			continue
		}
		if all = true; err != nil || !parsed.Matches(labels.Set(namespace)) {
			return false
		}
	}
	switch {
	case notes["propagate.hnc.x-k8s.io/none"] == "true", source.GetLabels()["cattle.io/creator"] == "norman", len(source.GetFinalizers()) > 0,
		source.GetName() == "kube-root-ca.crt":
		return false
	}
	return all || notes["propagate.hnc.x-k8s.io/all"] == "true"
}

func (h *hncProcess) writeCopy(ctx context.Context, n, now, source *unstructured.Unstructured) error {
	if source == nil {
		if now != nil && now.GetLabels()[hncFrom] != "" {
			return client.IgnoreNotFound(h.api.Delete(ctx, now))
		}
		return nil
	}
	source = source.DeepCopy()
	source.SetLabels(with(source.GetLabels(), managedByApps, "hnc.x-k8s.io"))
	wanted := canonical(source)
	if now != nil && now.GetLabels()[hncFrom] == source.GetNamespace() && reflect.DeepEqual(canonical(now), wanted) {
		return nil
	}
	wanted.SetNamespace(n.GetName())
	wanted.SetLabels(with(wanted.GetLabels(), hncFrom, source.GetNamespace()))
	if now != nil {
		wanted.SetResourceVersion(now.GetResourceVersion())
		return h.api.Update(ctx, wanted)
	}
	err := h.api.Create(ctx, wanted)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err) {
		return nil // the namespace is being deleted, or an earlier round has made the copy
	}
	return err
}

func isHNCsCopy(labels, _ map[string]string) bool { return labels[hncFrom] != "" }

// canonical is what HNC compares and copies: no metadata but the name, and labels and annotations that are not its own.
func canonical(u *unstructured.Unstructured) *unstructured.Unstructured {
	c := u.DeepCopy()
	delete(c.Object, "status")
	delete(c.Object, "metadata")
	c.SetName(u.GetName())
	foreign := func(all map[string]string) map[string]string {
		kept := map[string]string{}
		for key, value := range all {
			if prefix, _, _ := strings.Cut(key, "/"); !strings.HasSuffix(prefix, "hnc.x-k8s.io") {
				kept[key] = value
			}
		}
		return kept
	}
	c.SetLabels(foreign(u.GetLabels()))
	c.SetAnnotations(foreign(u.GetAnnotations()))
	return c
}
