package simulation

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/benbjohnson/immutable"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/internal/forest"
)

// The kinds of the model.
var (
	secrets       = corev1.SchemeGroupVersion.WithKind("Secret")
	configMaps    = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	limitRanges   = corev1.SchemeGroupVersion.WithKind("LimitRange")
	roles         = rbacv1.SchemeGroupVersion.WithKind("Role")
	roleBindings  = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	copiedKinds   = []schema.GroupVersionKind{secrets, configMaps, limitRanges, roles, roleBindings}
	namespaces    = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
	distributions = v1alpha1.GroupVersion.WithKind(distribute.Kind).GroupKind()
)

// object is an object of any kind. It is replaced, never changed.
type object struct {
	meta *metav1.PartialObjectMetadata
	// rest is everything beside metadata; only objects of copiedKinds have it.
	rest map[string]any
	// written is the version that the operator's last write gave the object; 0 for an object that it has not written.
	written int
	// from is the namespace of the source, or the name of the ResourceDistribution, of which the operator has made the object a copy. It is ""
	// for an object that the operator has not written, or has handed back. Users may take the marks off a copy, or forge them.
	from string
	// edited is true if a user has changed the content of a copy since the operator wrote it.
	edited bool
	// distribution is the whole object, if it is a ResourceDistribution.
	distribution *v1alpha1.ResourceDistribution
}

// world is what etcd holds at one moment. It is never changed, so every moment of a history can be looked at again.
type world struct {
	objects *immutable.SortedMap[copies.Slot, *object]
	forest  *forest.Snapshot
}

// entry is one change of the world. gone is what a watch shows of an object that was deleted.
type entry struct {
	slot                copies.Slot
	before, after, gone *object
	world               world // after the change
}

// server is a model of the API server and of etcd.
type server struct {
	world
	start   world // before the first entry
	log     []entry
	version int
	now     time.Time
	denied  map[copies.Slot]bool // slots, by kind and namespace, in which admission refuses writes of the operator
	outages map[schema.GroupKind]outage
}

// slotOrder compares slots.
type slotOrder struct{}

func (slotOrder) Compare(a, b copies.Slot) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Name, b.Name))
}

func newServer(f *forest.Snapshot) *server {
	empty := world{objects: immutable.NewSortedMap[copies.Slot, *object](slotOrder{}), forest: f}
	return &server{world: empty, start: empty, version: 100, now: time.Unix(1_000_000, 0), denied: map[copies.Slot]bool{},
		outages: map[schema.GroupKind]outage{}}
}

// at returns the object at slot, or nil.
func (w world) at(slot copies.Slot) *object {
	o, _ := w.objects.Get(slot)
	return o
}

// list returns the objects that match, ordered by slot.
func (w world) list(match func(copies.Slot, *object) bool) (all []*object) {
	for it := w.objects.Iterator(); !it.Done(); {
		if slot, o, _ := it.Next(); match(slot, o) {
			all = append(all, o)
		}
	}
	return all
}

// worldAt returns the world after the first n changes.
func (s *server) worldAt(n int) world {
	if n == 0 {
		return s.start
	}
	return s.log[n-1].world
}

// put stores an object that is new or has changed, and gives it a resourceVersion.
func (s *server) put(slot copies.Slot, o *object) *object {
	s.version++
	before := s.at(slot)
	o.meta.ResourceVersion = strconv.Itoa(s.version)
	if o.distribution != nil {
		o.distribution.ObjectMeta = o.meta.ObjectMeta
	}
	s.objects = s.objects.Set(slot, o)
	if slot.Kind == namespaces {
		s.forest = s.forest.WithNamespace(forest.NamespaceOf(o.meta))
	}
	s.log = append(s.log, entry{slot: slot, before: before, after: o, world: s.world})
	return o
}

// remove deletes the object at slot. An object with finalizers is there until they are taken off; a Namespace until it is empty.
func (s *server) remove(slot copies.Slot) {
	o := s.at(slot)
	switch {
	case o == nil || o.meta.DeletionTimestamp != nil:
	case len(o.meta.Finalizers) > 0 || slot.Kind == namespaces:
		o = o.clone()
		o.meta.DeletionTimestamp = &metav1.Time{Time: s.now}
		s.put(slot, o)
	default:
		s.vanish(slot)
	}
}

// vanish removes the object at slot at once.
func (s *server) vanish(slot copies.Slot) {
	before := s.at(slot)
	gone := before.clone()
	s.version++
	gone.meta.ResourceVersion = strconv.Itoa(s.version)
	s.objects = s.objects.Delete(slot)
	if slot.Kind == namespaces {
		s.forest = s.forest.WithoutNamespace(slot.Name)
	}
	s.log = append(s.log, entry{slot: slot, before: before, gone: gone, world: s.world})
}

// control does one thing that the controllers of Kubernetes do: it empties a terminating namespace, or collects a copy whose owner is gone.
// It reports whether there was anything to do.
func (s *server) control() bool {
	owners := map[types.UID]bool{}
	for it := s.objects.Iterator(); !it.Done(); {
		if slot, o, _ := it.Next(); slot.Kind == distributions {
			owners[o.meta.UID] = true
		}
	}
	for it := s.objects.Iterator(); !it.Done(); {
		slot, o, _ := it.Next()
		refs := o.meta.OwnerReferences // the owners of generated objects are not in the model, and stay
		orphaned := len(refs) > 0 && refs[0].Kind == distribute.Kind && !owners[refs[0].UID]
		if o.meta.DeletionTimestamp == nil && (orphaned || slot.Namespace != "" && s.isTerminating(slot.Namespace)) {
			s.remove(slot)
			return true
		}
		if slot.Kind == namespaces && o.meta.DeletionTimestamp != nil && s.isEmpty(slot.Name) {
			s.vanish(slot)
			return true
		}
	}
	return false
}

func (w world) isTerminating(namespace string) bool {
	n := w.forest.Namespace(namespace)
	return n == nil || n.Terminating
}

func (w world) isEmpty(namespace string) bool {
	return len(w.list(func(slot copies.Slot, _ *object) bool { return slot.Namespace == namespace })) == 0
}

// restore brings back the world after the first n changes, as from a snapshot of etcd.
func (s *server) restore(n int) {
	s.world = s.worldAt(n)
	s.log = s.log[:n]
}

func (s *server) newMeta(slot copies.Slot, manager string) *metav1.PartialObjectMetadata {
	s.version++
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: slot.Namespace, Name: slot.Name, UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.version)),
		CreationTimestamp: metav1.NewTime(s.now), Labels: map[string]string{}, Annotations: map[string]string{},
		ManagedFields: []metav1.ManagedFieldsEntry{s.fieldsOf(manager, nil)},
	}}
}

// fieldsOf returns an entry of managedFields for a write by manager. Of the metadata, only what the operator writes is listed. The times of
// any two entries differ, as if the clock of the API server had ticked between them.
func (s *server) fieldsOf(manager string, meta *metav1.ObjectMeta) metav1.ManagedFieldsEntry {
	raw := []byte(`{"f:data":{}}`)
	if manager == v1alpha1.OperatorName && meta != nil {
		raw = append([]byte(`{"f:data":{},"f:metadata":{"f:labels":{`), fieldSet(meta.Labels)...)
		raw = append(append(raw, `},"f:annotations":{`...), fieldSet(meta.Annotations)...)
		raw = append(raw, `}}}`...)
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(raw)
	at := metav1.NewTime(time.Unix(int64(s.version), 0))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsV1: fields}
}

func fieldSet(keys map[string]string) (set []byte) {
	for _, key := range sortedKeys(keys) {
		if len(set) > 0 {
			set = append(set, ',')
		}
		set = append(append(append(set, `"f:`...), key...), `":{}`...)
	}
	return set
}

// clone returns a copy of an object for a change of its metadata.
func (o *object) clone() *object {
	c := *o
	c.meta = o.meta.DeepCopy()
	if c.distribution != nil {
		c.distribution = o.distribution.DeepCopy()
	}
	return &c
}

// whole returns an object with its metadata, in the form of the API server's JSON.
func (o *object) whole() map[string]any {
	all := runtime.DeepCopyJSON(o.rest)
	meta, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.meta.ObjectMeta)
	if err != nil {
		panic(err) // metadata are always JSON
	}
	all["metadata"] = meta
	return all
}

func slotOf(gvk schema.GroupVersionKind, namespace, name string) copies.Slot {
	return copies.Slot{Kind: gvk.GroupKind(), Namespace: namespace, Name: name}
}

func namespaceSlot(name string) copies.Slot { return copies.Slot{Kind: namespaces, Name: name} }

func distributionSlot(name string) copies.Slot { return copies.Slot{Kind: distributions, Name: name} }
