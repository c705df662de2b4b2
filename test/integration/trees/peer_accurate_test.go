package trees_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// accurateProcess does the work of Accurate's controller that a migration can meet: namespaces of SubNamespaces, finalizers, labels,
// copies from one namespace to the next. It serves its webhooks, with the one that converts between versions.
type accurateProcess struct {
	*peerProcess
}

// accurateTrees are all Namespaces by name.
type accurateTrees map[string]*unstructured.Unstructured

const (
	accurateParent    = "accurate.cybozu.com/parent"
	accurateTemplate  = "accurate.cybozu.com/template"
	accurateType      = "accurate.cybozu.com/type"
	accurateFrom      = "accurate.cybozu.com/from"
	accuratePropagate = "accurate.cybozu.com/propagate"
	accurateFinalizer = "accurate.cybozu.com/finalizer"
	createdByApps     = "app.kubernetes.io/created-by"
)

var accurateSubKind = schema.GroupVersionKind{Group: "accurate.cybozu.com", Version: "v2", Kind: "SubNamespace"}

func (c cluster) newAccurate() *accurateProcess {
	a := &accurateProcess{peerProcess: c.newPeerProcess("accurate", "accurate-controller-manager", "accurate", "accurate-webhook-service")}
	a.reconcile = a.work
	mux := http.NewServeMux()
	mux.Handle("/validate-v1-namespace", a.review(a.judgeNamespace))
	mux.Handle("/validate-accurate-cybozu-com-v2-subnamespace", a.review(a.judgeSub))
	mux.Handle("/mutate-accurate-cybozu-com-v2-subnamespace", &admission.Webhook{Handler: admission.HandlerFunc(mutateSub)})
	mux.HandleFunc("/convert", convert)
	a.serve = mux
	return a
}

// mutateSub sets the finalizer, at creation alone.
func mutateSub(_ context.Context, r admission.Request) admission.Response {
	if r.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	sub := decoded(r.Object.Raw)
	sub.SetFinalizers([]string{accurateFinalizer})
	raw, err := json.Marshal(sub)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(r.Object.Raw, raw)
}

// convert answers the API server's question for objects in another version.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Request    map[string]any `json:"request,omitempty"`
		Response   map[string]any `json:"response,omitempty"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	objects, _ := review.Request["objects"].([]any)
	for _, object := range objects {
		object.(map[string]any)["apiVersion"] = review.Request["desiredAPIVersion"]
	}
	review.Response = map[string]any{"uid": review.Request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review) // the client may be gone
}

func (a *accurateProcess) judgeNamespace(ctx context.Context, verb admissionv1.Operation, old, n *unstructured.Unstructured) string {
	trees, err := a.readTrees(ctx)
	if err != nil {
		return err.Error()
	}
	if verb == admissionv1.Delete {
		if trees.hasChildren(old.GetName()) {
			return "child namespaces exist"
		}
		return ""
	}
	now := n.GetLabels()
	for at := cmp.Or(now[accurateParent], now[accurateTemplate]); at != ""; {
		above := trees[at]
		if at == n.GetName() {
			return "circular reference is not permitted"
		}
		if above == nil {
			return "parent namespace does not exist: " + at
		}
		at = cmp.Or(above.GetLabels()[accurateParent], above.GetLabels()[accurateTemplate])
	}
	if now[accurateParent] != "" && (now[accurateType] != "" || now[accurateTemplate] != "") {
		return "a sub-namespace cannot be a root or a template"
	}
	if old != nil && old.GetLabels()[accurateType] != now[accurateType] && trees.hasChildren(n.GetName()) {
		return "there are sub-namespaces under " + n.GetName()
	}
	return ""
}

// hasChildren reports whether a namespace is parent or template of another.
func (t accurateTrees) hasChildren(name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(t)), func(n *unstructured.Unstructured) bool {
		return n.GetLabels()[accurateParent] == name || n.GetLabels()[accurateTemplate] == name
	})
}

func (a *accurateProcess) judgeSub(ctx context.Context, verb admissionv1.Operation, old, sub *unstructured.Unstructured) string {
	trees, err := a.readTrees(ctx)
	if err != nil {
		return err.Error()
	}
	if verb == admissionv1.Delete {
		n := trees[old.GetName()]
		if n != nil && n.GetLabels()[accurateParent] == old.GetNamespace() && trees.hasChildren(old.GetName()) {
			return "child namespaces exist"
		}
		return ""
	}
	if parent := trees[sub.GetNamespace()]; parent.GetLabels()[accurateType] != "root" && parent.GetLabels()[accurateParent] == "" {
		return "namespace " + sub.GetNamespace() + " is neither a root nor a sub namespace"
	}
	return ""
}

func (a *accurateProcess) readTrees(ctx context.Context) (accurateTrees, error) {
	all, err := a.list(ctx, "", "v1", "Namespace")
	trees := accurateTrees{}
	for _, n := range all {
		trees[n.GetName()] = &n
	}
	return trees, err
}

// work is one round of all of Accurate's controllers.
func (a *accurateProcess) work(ctx context.Context, _ bool) error {
	trees, err := a.readTrees(ctx)
	if err != nil {
		return err
	}
	subs, err := a.list(ctx, "accurate.cybozu.com", "v2", "SubNamespace")
	if err != nil {
		return err
	}
	for _, sub := range subs {
		if err := a.workOnSub(ctx, trees, &sub); err != nil {
			return err
		}
	}
	all, err := a.list(ctx, "", "v1", "Secret")
	if err != nil {
		return err
	}
	secrets := map[string]map[string]*unstructured.Unstructured{}
	for _, secret := range all {
		if secrets[secret.GetNamespace()] == nil {
			secrets[secret.GetNamespace()] = map[string]*unstructured.Unstructured{}
		}
		secrets[secret.GetNamespace()][secret.GetName()] = &secret
	}
	for _, n := range trees {
		if n.GetDeletionTimestamp() == nil {
			if err := a.workOnCopies(ctx, n, secrets); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *accurateProcess) workOnSub(ctx context.Context, trees accurateTrees, sub *unstructured.Unstructured) error {
	n := trees[sub.GetName()]
	if sub.GetDeletionTimestamp() != nil {
		if n != nil && n.GetDeletionTimestamp() == nil && n.GetLabels()[accurateParent] == sub.GetNamespace() {
			if err := a.api.Delete(ctx, n); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		if controllerutil.RemoveFinalizer(sub, accurateFinalizer) {
			return client.IgnoreNotFound(a.api.Update(ctx, sub))
		}
		return nil
	}
	wanted := map[string]string{accurateParent: sub.GetNamespace(), createdByApps: "accurate"}
	own, _, _ := unstructured.NestedStringMap(sub.Object, "spec", "labels")
	if team, has := own["team"]; has { // subNamespaceLabelKeys of the fixture
		wanted["team"] = team
	}
	switch {
	case n == nil:
		n = &unstructured.Unstructured{}
		n.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		n.SetName(sub.GetName())
		n.SetLabels(wanted)
		return a.api.Create(ctx, n)
	case n.GetLabels()[accurateParent] != sub.GetNamespace(), n.GetDeletionTimestamp() != nil:
		return nil
	}
	before := n.DeepCopy()
	for key, value := range wanted {
		n.SetLabels(with(n.GetLabels(), key, value))
	}
	return a.change(ctx, before, n)
}

// workOnCopies writes the copies of the namespace above into a namespace, and deletes those in mode update that have no source any more.
// secrets are the Secrets by namespace and name.
func (a *accurateProcess) workOnCopies(ctx context.Context, n *unstructured.Unstructured,
	secrets map[string]map[string]*unstructured.Unstructured) error {
	above := cmp.Or(n.GetLabels()[accurateParent], n.GetLabels()[accurateTemplate])
	sources, present := secrets[above], secrets[n.GetName()]
	for name, source := range sources {
		mode := source.GetAnnotations()[accuratePropagate]
		now := present[name]
		if mode != "create" && mode != "update" || mode == "create" && now != nil {
			continue
		}
		if err := a.writeCopy(ctx, n.GetName(), source, now); err != nil {
			return err
		}
	}
	for name, object := range present {
		source, notes := sources[name], object.GetAnnotations()
		isStale := source == nil || source.GetAnnotations()[accuratePropagate] != "update" || notes[accurateFrom] != above
		if notes[accuratePropagate] == "update" && notes[accurateFrom] != "" && isStale {
			if err := a.api.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

func (a *accurateProcess) writeCopy(ctx context.Context, namespace string, source, now *unstructured.Unstructured) error {
	wanted := source.DeepCopy()
	delete(wanted.Object, "metadata")
	wanted.SetNamespace(namespace)
	wanted.SetName(source.GetName())
	wanted.SetLabels(with(source.GetLabels(), createdByApps, "accurate"))
	wanted.SetAnnotations(with(source.GetAnnotations(), accurateFrom, source.GetNamespace()))
	if now == nil {
		return client.IgnoreAlreadyExists(a.api.Create(ctx, wanted))
	}
	before := now.DeepCopy()
	now.Object["data"] = wanted.Object["data"]
	for key, value := range wanted.GetLabels() {
		now.SetLabels(with(now.GetLabels(), key, value))
	}
	for key, value := range wanted.GetAnnotations() {
		now.SetAnnotations(with(now.GetAnnotations(), key, value))
	}
	return a.change(ctx, before, now)
}

// change patches what differs, if anything does.
func (p *peerProcess) change(ctx context.Context, before, now *unstructured.Unstructured) error {
	if reflect.DeepEqual(before.Object, now.Object) {
		return nil
	}
	return p.api.Patch(ctx, now, client.MergeFrom(before))
}
