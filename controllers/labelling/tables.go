package labelling

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/mirror"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// tables hold generators with the annotation, and objects that have a controller or the operator's label. Nothing is kept of other
// objects. Methods return the slots of objects that are to be queued; a slot is the place (kind, namespace, name) of an object.
type tables struct {
	mu      sync.Mutex // guards all below; nothing else is called while it is held
	kinds   map[schema.GroupKind]*table
	applied map[copies.Slot]types.UID // the objects that were labelled by this process
}

// table has the objects of one kind, which may be both generators and generated, such as Secrets.
type table struct {
	*mirror.Table[seen, kept]
	kind                     schema.GroupKind
	isGenerator, isGenerated bool
	status                   watchset.Status // of the watch
}

// seen is an object as a watch or an answer has shown it, and what is kept of it.
type seen struct {
	metav1.Object
	kept
}

type kept struct {
	uid       types.UID
	asks      string            // the mode that a generator asks for; "" if it asks for none
	generated *copies.Generated // nil if the object has no controller, and no label that the operator applied
}

// newTables returns empty tables. Until generators of these kinds are known, no object that one of them may control
// loses its label.
func newTables(generated, generators []schema.GroupVersionKind) *tables {
	t := &tables{kinds: map[schema.GroupKind]*table{}, applied: map[copies.Slot]types.UID{}}
	for _, kind := range generated {
		t.addKind(kind.GroupKind()).isGenerated = true
	}
	for _, kind := range generators {
		t.addKind(kind.GroupKind()).isGenerator = true
	}
	return t
}

func (t *tables) addKind(kind schema.GroupKind) *table {
	if t.kinds[kind] == nil {
		t.kinds[kind] = &table{Table: mirror.New(func(s seen) kept { return s.kept }), kind: kind,
			status: watchset.Status{State: watchset.Pending}}
	}
	return t.kinds[kind]
}

// buildSeen returns an object with what is kept of it, and whether anything is.
func (of *table) buildSeen(object metav1.Object) (s seen, matters bool) {
	s = seen{object, kept{uid: object.GetUID()}}
	if of.isGenerator {
		s.asks = copies.GeneratedMode(object)
	}
	if of.isGenerated {
		s.generated = copies.GeneratedOf(object)
	}
	return s, s.asks != "" || s.generated != nil
}

// takeList takes in the complete list of a kind. It is one step under the lock: if a generator were forgotten for a moment, the objects
// that it controls would lose their label, and with the label their copies.
func (t *tables) takeList(kind schema.GroupKind, version string, all []client.Object) []copies.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, listed := t.kinds[kind], []seen{}
	for _, object := range all {
		if s, matters := of.buildSeen(object); matters {
			listed = append(listed, s)
		}
	}
	return t.recordChanges(of, of.List(mirror.Everywhere, version, listed)...)
}

// takeObject takes in an object that a watch has shown, or whose end it has shown.
func (t *tables) takeObject(kind schema.GroupKind, object metav1.Object, exists bool) []copies.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.kinds[kind]
	s, matters := of.buildSeen(object)
	take := of.End
	if exists && matters {
		take = of.Show
	}
	if c, changed := take(s); changed {
		return t.recordChanges(of, c)
	}
	return nil
}

// recordChanges returns the slots of the objects that have changed, and of those whose generators have. The caller holds the lock.
func (t *tables) recordChanges(of *table, changes ...mirror.Change[kept]) (concerned []copies.Slot) {
	generators, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, c := range changes {
		was, is := cmp.Or(c.Was, &kept{}), cmp.Or(c.Is, &kept{})
		slot := copies.SlotOf(of.kind, c.Place)
		if is.generated != nil {
			concerned = append(concerned, slot)
		} else {
			delete(t.applied, slot)
		}
		if was.asks != is.asks || was.asks != "" && was.uid != is.uid {
			generators[was.uid], generators[is.uid], namespaces[slot.Namespace] = true, true, true
		}
	}
	delete(generators, "") // no object was there before, or none is there now
	for namespace := range namespaces {
		for slot, object := range t.generatedIn(namespace) {
			if generators[object.Controller] {
				concerned = append(concerned, slot)
			}
		}
	}
	return concerned
}

// generatedIn returns the generated objects of a namespace. The caller holds the lock.
func (t *tables) generatedIn(namespace string) iter.Seq2[copies.Slot, *copies.Generated] {
	return func(yield func(copies.Slot, *copies.Generated) bool) {
		for _, of := range t.kinds {
			for name, is := range of.In(namespace) {
				slot := copies.SlotOf(of.kind, mirror.Place{Namespace: namespace, Name: name})
				if is.generated != nil && !yield(slot, is.generated) {
					return
				}
			}
		}
	}
}

// setState records the state of the watch of a kind. It returns the slots of the objects whose generators are of this
// kind, because these objects may have waited for the watch.
func (t *tables) setState(kind schema.GroupKind, now watchset.Status) (concerned []copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kinds[kind].status = now
	for _, of := range t.kinds {
		for p, is := range of.All() {
			if is.generated != nil && (of.kind == kind || is.generated.ControllerKind == kind) {
				concerned = append(concerned, copies.SlotOf(of.kind, p))
			}
		}
	}
	return concerned
}

// recordApplied takes in the answer to an apply, so that the next pass over the object knows of it before the watch
// brings it. The apply names the UID, so no answer is about another object than the one that was known when it began.
func (t *tables) recordApplied(slot copies.Slot, answer metav1.Object) (concerned []copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, p := t.kinds[slot.Kind], slot.NamespacedName()
	s, _ := of.buildSeen(answer)
	if c, changed := of.Answered(of.Begin(p), s); changed {
		concerned = t.recordChanges(of, c)
	}
	if is := of.At(p); is == nil || is.uid != s.uid || s.generated == nil {
		return concerned // the watch has shown that the object is gone, and perhaps that another one has come
	}
	if delete(t.applied, slot); s.generated.Ours {
		t.applied[slot] = s.uid
	}
	return concerned
}

// wasApplied reports whether this process labelled this object: if so and the label is missing, somebody else took it
// off.
func (t *tables) wasApplied(slot copies.Slot, uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.applied[slot] == uid
}

// slotsIn returns the slots of the objects in these namespaces. The view calls it under the view's lock, at each
// change, so slotsIn looks at no other object.
func (t *tables) slotsIn(namespaces []string) (slots []copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, namespace := range namespaces {
		for slot := range t.generatedIn(namespace) {
			slots = append(slots, slot)
		}
	}
	return slots
}

// findObject returns what is known of an object, the mode that its generator asks for, and the state of the watch of
// its kind. object is nil if nothing is known of it, or if its generator may exist without being known. The generator
// may exist unless the watch of its kind is synced. A kind that the configuration doesn't name has no watch.
func (t *tables) findObject(slot copies.Slot) (object *copies.Generated, wanted string, served watchset.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.kinds[slot.Kind]
	is := of.At(slot.NamespacedName())
	if is == nil || is.generated == nil {
		return nil, "", watchset.Status{}
	}
	object = is.generated
	if object.Controller == "" {
		return object, "", of.status
	}
	by := t.kinds[object.ControllerKind]
	if by == nil || !by.isGenerator || by.status.State != watchset.Synced {
		return nil, "", watchset.Status{}
	}
	generator := by.At(mirror.Place{Namespace: slot.Namespace, Name: object.ControllerName})
	if generator != nil && generator.uid == object.Controller {
		wanted = generator.asks
	}
	return object, wanted, of.status
}

// describeUnseen returns a sentence for each kind that can't be watched, in alphabetical order.
func (t *tables) describeUnseen() (sentences []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, of := range t.kinds {
		why := ""
		switch status := of.status; status.State {
		case watchset.Forbidden:
			why = "the operator may not " + strings.Join(status.Missing, " and ") + " this kind in the whole cluster; apply what " +
				"`manager manifests` prints"
		case watchset.NotServed:
			why = "the API server doesn't serve it"
		case watchset.Degraded:
			why = status.Err.Error()
		default:
			continue
		}
		sentences = append(sentences, fmt.Sprintf("%s: generated objects get no label because of this kind: %s", kind, why))
	}
	slices.Sort(sentences)
	return sentences
}
