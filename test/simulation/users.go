package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

// user is the field manager of everybody who is not the operator.
const user = "somebody"

// names are the namespaces that may exist, and parents the values that their label parent may get.
var (
	names   = []string{"acme", "a", "a1", "zeta", "z", "tmpl"}
	parents = []string{"acme", "a", "zeta", "z", "", "missing"}
)

// makeFirstNamespaces makes the namespaces with which a history begins.
func (h *history) makeFirstNamespaces(of setup) {
	root, template := map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}, map[string]string{v1alpha1.LabelType: v1alpha1.TypeTemplate}
	below := func(parent string) map[string]string { return map[string]string{v1alpha1.LabelParent: parent} }
	all := map[string]map[string]string{"acme": root, "zeta": maps.Clone(root), "tmpl": template, "a": below("acme"), "a1": below("a"),
		"z": below("zeta")}
	if of.template {
		all["acme"][v1alpha1.LabelTemplate] = "tmpl"
	}
	for _, name := range names {
		h.putNamespace(name, all[name])
	}
}

func (h *history) putNamespace(name string, labels map[string]string) {
	slot := namespaceSlot(name)
	meta := h.server.newMeta(slot, user)
	if known := h.server.at(slot); known != nil {
		meta = known.meta.DeepCopy()
	}
	meta.Labels = labels
	h.server.put(slot, &object{meta: meta})
}

// act lets a user do something, and returns what, in words.
func (h *history) act(e event) string {
	switch slot := h.pickSlot(e.a); e.op {
	case putSource:
		return h.putSource(slot, e.b, e.c)
	case putStranger:
		return h.putStranger(slot, e.b)
	case deleteObject:
		return h.change(h.pickObject(e.a, any1), "deletes", func(slot copies.Slot, _ *object) { h.server.remove(slot) })
	case editCopy:
		return h.edit(e)
	case unlabelCopy:
		return h.rewrite(h.pickObject(e.a, isCopy), "takes the label off", func(o *object) { delete(o.meta.Labels, v1alpha1.LabelInheritedFrom) })
	case holdObject:
		return h.rewrite(h.pickObject(e.a, any1), "puts a finalizer on", func(o *object) { o.meta.Finalizers = []string{"example.com/keep"} })
	case releaseObject:
		return h.release(h.pickObject(e.a, isHeld))
	case generate:
		return h.generate(slot, e.b, e.c)
	case distribute1:
		return h.distributeObject(e)
	case undistribute:
		return h.change(h.pickObject(e.a, isDistribution), "deletes", func(slot copies.Slot, _ *object) { h.server.vanish(slot) })
	}
	return h.actOnNamespace(e)
}

func (h *history) actOnNamespace(e event) string {
	name := names[e.a%len(names)]
	known := h.server.at(namespaceSlot(name))
	if known == nil {
		if e.op == makeNamespace {
			h.putNamespace(name, map[string]string{v1alpha1.LabelParent: parents[e.b%4]})
			return "makes namespace " + name
		}
		return ""
	}
	labels := maps.Clone(known.meta.Labels)
	switch {
	case known.meta.DeletionTimestamp != nil || e.op == makeNamespace:
		return ""
	case e.op == labelNamespace:
		labels["tier"] = []string{"web", "db"}[e.b%2]
	case e.op == deleteNamespace:
		h.server.remove(namespaceSlot(name))
		return "deletes namespace " + name
	case labels[v1alpha1.LabelType] != "":
		return ""
	default:
		labels[v1alpha1.LabelParent] = parents[e.b%len(parents)]
	}
	h.putNamespace(name, labels)
	return fmt.Sprintf("labels namespace %s: %v", name, labels)
}

// pickSlot returns the slot that number n stands for: a kind, a namespace, which need not exist, and the object's name.
func (h *history) pickSlot(n int) copies.Slot {
	kind := copiedKinds[n%len(copiedKinds)]
	n /= len(copiedKinds)
	return slotOf(kind, names[n%len(names)], []string{"s", "s", "t"}[n/len(names)%3])
}

// pickObject returns the slot of an object that matches.
func (h *history) pickObject(n int, match selection) (slot copies.Slot) {
	all := h.server.list(match)
	if len(all) == 0 {
		return copies.Slot{}
	}
	i, chosen := 0, all[n%len(all)]
	for it := h.server.objects.Iterator(); !it.Done(); i++ {
		if at, o, _ := it.Next(); o == chosen {
			return at
		}
	}
	return copies.Slot{}
}

func any1(slot copies.Slot, _ *object) bool           { return slot.Namespace != "" }
func isHeld(_ copies.Slot, o *object) bool            { return len(o.meta.Finalizers) > 0 }
func isDistribution(slot copies.Slot, _ *object) bool { return slot.Kind == distributions }

// isCopy reports whether the object has the marks of a copy, which may be forged.
func isCopy(_ copies.Slot, o *object) bool {
	return o.meta.Annotations[v1alpha1.AnnotationSourceHash] != ""
}

// mode returns the mode in which the operator has written a copy.
func (o *object) mode() string {
	mode, _, _ := strings.Cut(o.meta.Annotations[v1alpha1.AnnotationSourceHash], ":")
	return mode
}

func (h *history) change(slot copies.Slot, verb string, do func(copies.Slot, *object)) string {
	o := h.server.at(slot)
	if o == nil {
		return ""
	}
	do(slot, o)
	return verb + " " + slot.String()
}

// rewrite changes an object in the name of a user.
func (h *history) rewrite(slot copies.Slot, verb string, do func(*object)) string {
	return h.change(slot, verb, func(slot copies.Slot, o *object) {
		if o.meta.DeletionTimestamp != nil {
			return
		}
		o = o.clone()
		do(o)
		h.server.version++
		o.meta.ManagedFields = append(slices.DeleteFunc(o.meta.ManagedFields,
			func(e metav1.ManagedFieldsEntry) bool { return e.Manager == user }), h.server.fieldsOf(user, nil))
		h.server.put(slot, o)
	})
}

func (h *history) edit(e event) string {
	slot := h.pickObject(e.a, isCopy)
	return h.rewrite(slot, "edits", func(o *object) {
		if e.b%2 == 0 {
			o.meta.Labels["drift"] = fmt.Sprint(e.c)
		} else {
			o.rest, o.edited = contentOf(slot.Kind, 100+e.c, o.rest["roleRef"]), true
		}
	})
}

func (h *history) release(slot copies.Slot) string {
	return h.change(slot, "takes the finalizer off", func(slot copies.Slot, o *object) {
		if o.meta.DeletionTimestamp != nil {
			h.server.vanish(slot)
			return
		}
		o = o.clone()
		o.meta.Finalizers = nil
		h.server.put(slot, o)
	})
}

// putSource makes or replaces an object with the label propagate, in any mode.
func (h *history) putSource(slot copies.Slot, b, c int) string {
	if h.server.isTerminating(slot.Namespace) || h.isForeign(slot, isCopy) {
		return ""
	}
	mode := []string{v1alpha1.ModeUpdate, v1alpha1.ModeUpdate, v1alpha1.ModeUpdate, v1alpha1.ModeUpdate, v1alpha1.ModeCreate,
		v1alpha1.ModeNone, "typo"}[b%7]
	h.putObject(slot, contentOf(slot.Kind, c%50, nil), func(meta *metav1.ObjectMeta) {
		meta.Labels[v1alpha1.LabelPropagate] = mode
		meta.Labels["team"], meta.Annotations["note"] = fmt.Sprint("t", c%2), fmt.Sprint("n", c%3)
		if b%5 == 0 {
			meta.Annotations[v1alpha1.AnnotationSelect] = "tier=web"
		}
	})
	return fmt.Sprintf("puts source %s in mode %s", slot, mode)
}

// generate lets another controller make or change an object. The operator's labeller then labels the object as the generator asks for.
func (h *history) generate(slot copies.Slot, b, c int) string {
	known := h.server.at(slot)
	if h.server.isTerminating(slot.Namespace) || known != nil && (known.meta.DeletionTimestamp != nil || !isGenerated(known)) {
		return ""
	}
	wanted := []string{v1alpha1.ModeUpdate, v1alpha1.ModeUpdate, v1alpha1.ModeCreate, ""}[b%4]
	made := &metav1.ObjectMeta{Name: slot.Name}
	if known != nil {
		made = known.meta.ObjectMeta.DeepCopy()
	}
	made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Generator", Name: "g", UID: "generator",
		Controller: new(true)}}
	isApplied := copies.GeneratedOf(made).PlanLabel(wanted)
	h.putObject(slot, contentOf(slot.Kind, c%50, nil), func(meta *metav1.ObjectMeta) {
		meta.OwnerReferences = made.OwnerReferences
		if made.Labels != nil {
			meta.Labels = maps.Clone(made.Labels)
		}
		switch {
		case !isApplied:
			meta.ManagedFields = append(meta.ManagedFields, labelling(made)...)
		case wanted == "":
			delete(meta.Labels, v1alpha1.LabelPropagate)
		default:
			meta.Labels[v1alpha1.LabelPropagate] = wanted
			meta.ManagedFields = append(meta.ManagedFields, appliedLabel)
		}
	})
	return fmt.Sprintf("a controller makes %s, to be propagated in mode %q", slot, wanted)
}

// isGenerated reports whether another controller has made the object.
func isGenerated(o *object) bool {
	return len(o.meta.OwnerReferences) > 0 && o.meta.OwnerReferences[0].Kind == "Generator"
}

// appliedLabel is the entry of managedFields for a label propagate that the operator's labeller has applied.
var appliedLabel = metav1.ManagedFieldsEntry{
	Manager: copies.GeneratedManager, Operation: metav1.ManagedFieldsOperationApply,
	FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + v1alpha1.LabelPropagate + `":{}}}}`),
}

// labelling returns the entries of managedFields that the operator's labeller has written.
func labelling(meta *metav1.ObjectMeta) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(meta.ManagedFields),
		func(e metav1.ManagedFieldsEntry) bool { return e.Manager != copies.GeneratedManager })
}

// putStranger makes an object that has nothing to do with the operator, or one with forged marks.
func (h *history) putStranger(slot copies.Slot, b int) string {
	if h.server.isTerminating(slot.Namespace) || h.server.at(slot) != nil {
		return ""
	}
	h.putObject(slot, contentOf(slot.Kind, 200, nil), func(meta *metav1.ObjectMeta) {
		meta.Labels[v1alpha1.LabelPropagate] = v1alpha1.ModeNone
		if b%3 == 0 { // the hash of a copy in another namespace
			meta.Labels[v1alpha1.LabelInheritedFrom] = "acme"
			hash := copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(slot.At("elsewhere"), "acme"), Content: copies.Unwritten}
			meta.Annotations[v1alpha1.AnnotationSourceHash] = hash.String()
		}
	})
	return "puts an unrelated " + slot.String()
}

// isForeign reports whether the object at slot matches, or is being deleted.
func (h *history) isForeign(slot copies.Slot, match selection) bool {
	o := h.server.at(slot)
	return o != nil && (match(slot, o) || o.meta.DeletionTimestamp != nil)
}

func (h *history) putObject(slot copies.Slot, rest map[string]any, change func(*metav1.ObjectMeta)) {
	o := &object{meta: h.server.newMeta(slot, user), rest: rest}
	if known := h.server.at(slot); known != nil {
		o.meta.UID, o.meta.CreationTimestamp, o.meta.Finalizers = known.meta.UID, known.meta.CreationTimestamp, known.meta.Finalizers
		if role := known.rest["roleRef"]; role != nil {
			o.rest["roleRef"] = role
		}
	}
	change(&o.meta.ObjectMeta)
	h.server.put(slot, o)
}

// contentOf returns an object of a kind without its metadata. A RoleBinding gets roleRef, unless that is nil.
func contentOf(kind schema.GroupKind, n int, roleRef any) map[string]any {
	o := map[string]any{"apiVersion": "v1", "kind": kind.Kind}
	if kind.Group != "" {
		o["apiVersion"] = kind.Group + "/v1"
	}
	text := fmt.Sprint("v", n)
	switch kind {
	case limitRanges.GroupKind():
		o["spec"] = map[string]any{"limits": []any{map[string]any{"type": "Pod", "max": map[string]any{"cpu": text}}}}
	case roles.GroupKind():
		o["rules"] = []any{map[string]any{"verbs": []any{"get"}, "resources": []any{text}}}
	case roleBindings.GroupKind():
		ref := map[string]any{"apiGroup": kind.Group, "kind": "ClusterRole", "name": "view"}
		if n%3 == 0 {
			ref["kind"], ref["name"] = "Role", "s"
		}
		if o["roleRef"] = roleRef; roleRef == nil {
			o["roleRef"] = ref
		}
		o["subjects"] = []any{map[string]any{"kind": "User", "name": text}}
	default:
		o["data"] = map[string]any{"k": text}
	}
	return o
}

// distributeObject makes or changes a ResourceDistribution of a ConfigMap.
func (h *history) distributeObject(e event) string {
	slot := distributionSlot([]string{"rd1", "rd2"}[e.a%2])
	o := &object{meta: h.server.newMeta(slot, user), distribution: &v1alpha1.ResourceDistribution{}}
	name := []string{"shared", "shared", "s", "own"}[e.b%4]
	if known := h.server.at(slot); known != nil {
		o = known.clone()
		name, _ = template(o.distribution) // the webhook lets nobody change it
	}
	o.meta.Generation++
	spec := v1alpha1.ResourceDistributionSpec{
		Resource: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":"d%d"}}`,
			name, e.c%5)},
		ConflictPolicy: []v1alpha1.ConflictPolicy{
			v1alpha1.ConflictFail, v1alpha1.ConflictSkip, v1alpha1.ConflictAdoptIdentical, v1alpha1.ConflictOverwrite,
		}[e.b/4%4],
		DriftPolicy:    []v1alpha1.DriftPolicy{v1alpha1.DriftRevert, v1alpha1.DriftRevert, v1alpha1.DriftIgnore}[e.b/16%3],
		DeletionPolicy: []v1alpha1.DeletionPolicy{v1alpha1.DeletionDelete, v1alpha1.DeletionDelete, v1alpha1.DeletionOrphan}[e.b/48%3],
		Suspend:        e.c%11 == 0,
	}
	if e.c%3 == 0 {
		spec.Targets.Trees = []v1alpha1.NamespaceName{"acme"}
	}
	o.distribution.Spec = spec
	h.server.put(slot, o)
	return fmt.Sprintf("distributes ConfigMap %s by %s: %s, %s, %s", name, slot.Name, spec.ConflictPolicy, spec.DriftPolicy,
		spec.DeletionPolicy)
}
