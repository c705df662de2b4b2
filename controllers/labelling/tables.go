package labelling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// tables hold generators with the annotation, and objects that have a controller or the operator's label, as they were
// last seen. Nothing is kept of other objects. Methods return the slots of objects that are to be queued; a slot is the
// place (kind, namespace, name) of an object.
type tables struct {
	mu         sync.Mutex // guards all below; nothing else is called while it is held
	generators map[types.UID]generator
	objects    map[copies.Slot]*copies.Generated
	controlled map[types.UID]map[copies.Slot]bool // the slots of objects, by controller
	placed     map[string]map[copies.Slot]bool    // the slots of objects, by namespace
	states     map[schema.GroupKind]watchset.Status
	applied    map[copies.Slot]types.UID // the objects that were labelled by this process
}

// generator is an object that asks for its controlled objects to be propagated.
type generator struct {
	kind      schema.GroupKind
	namespace string
	mode      string
}

// newTables returns empty tables. Until generators of these kinds are known, no object that one of them may control
// loses its label.
func newTables(generators []schema.GroupVersionKind) *tables {
	t := &tables{
		generators: map[types.UID]generator{}, objects: map[copies.Slot]*copies.Generated{}, controlled: map[types.UID]map[copies.Slot]bool{},
		placed: map[string]map[copies.Slot]bool{},
		states: map[schema.GroupKind]watchset.Status{}, applied: map[copies.Slot]types.UID{},
	}
	for _, kind := range generators {
		t.states[kind.GroupKind()] = watchset.Status{State: watchset.Pending}
	}
	return t
}

// generatorOf returns what is kept of an object of a generator's kind.
func generatorOf(kind schema.GroupKind, object metav1.Object) generator {
	return generator{kind, object.GetNamespace(), copies.GeneratedMode(object)}
}

// putGenerator takes in an object of a generator's kind.
func (t *tables) putGenerator(uid types.UID, now generator) []copies.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.setGenerator(uid, now)
}

// setGenerator keeps a generator that asks for a mode, and drops one that asks for none. The caller holds the lock.
func (t *tables) setGenerator(uid types.UID, now generator) []copies.Slot {
	if was := t.generators[uid]; was.mode == now.mode {
		return nil
	}
	if t.generators[uid] = now; now.mode == "" {
		delete(t.generators, uid)
	}
	return t.slotsOf(uid)
}

func (t *tables) removeGenerator(uid types.UID) []copies.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.generators, uid)
	return t.slotsOf(uid)
}

// slotsOf returns the slots of the objects that a controller controls. The caller holds the lock.
func (t *tables) slotsOf(controller types.UID) []copies.Slot {
	slots := make([]copies.Slot, 0, len(t.controlled[controller]))
	for slot := range t.controlled[controller] {
		slots = append(slots, slot)
	}
	return slots
}

// putObject takes in an object, and reports whether it is to be queued. now is nil for an object of which nothing is
// kept.
func (t *tables) putObject(slot copies.Slot, now *copies.Generated) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.setObject(slot, now)
}

// setObject keeps now in place of what was known of the slot. If now is older than the known version, which may come
// from the answer to an apply, it changes nothing; if now is nil, it forgets the object. It reports whether the object
// is to be queued. The caller holds the lock.
func (t *tables) setObject(slot copies.Slot, now *copies.Generated) bool {
	was := t.objects[slot]
	if was != nil && now != nil && forest.IsNewer(was.ResourceVersion, now.ResourceVersion) {
		return false
	}
	t.dropObject(slot)
	if now == nil {
		delete(t.applied, slot)
		return false
	}
	t.objects[slot] = now
	addSlot(t.controlled, now.Controller, slot)
	addSlot(t.placed, slot.Namespace, slot)
	return true
}

func (t *tables) removeObject(slot copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropObject(slot)
	delete(t.applied, slot)
}

// dropObject drops an object. The caller holds the lock.
func (t *tables) dropObject(slot copies.Slot) {
	if known := t.objects[slot]; known != nil {
		delete(t.objects, slot)
		dropSlot(t.controlled, known.Controller, slot)
		dropSlot(t.placed, slot.Namespace, slot)
	}
}

// addSlot adds a slot to an index of slots, dropSlot removes it.
func addSlot[K comparable](index map[K]map[copies.Slot]bool, key K, slot copies.Slot) {
	if index[key] == nil {
		index[key] = map[copies.Slot]bool{}
	}
	index[key][slot] = true
}

func dropSlot[K comparable](index map[K]map[copies.Slot]bool, key K, slot copies.Slot) {
	if delete(index[key], slot); len(index[key]) == 0 {
		delete(index, key)
	}
}

// replaceObjects takes in the complete list of a kind: exactly these generators and objects of it exist. It is one step
// under the lock: if a generator were forgotten for a moment, the objects that it controls would lose their label, and
// with the label their copies.
func (t *tables) replaceObjects(kind schema.GroupKind, generators map[types.UID]generator,
	objects map[copies.Slot]*copies.Generated) (concerned []copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, was := range t.generators {
		if _, stays := generators[uid]; was.kind == kind && !stays {
			concerned = append(concerned, t.setGenerator(uid, generator{})...)
		}
	}
	for uid, now := range generators {
		concerned = append(concerned, t.setGenerator(uid, now)...)
	}
	for slot := range t.objects {
		if slot.Kind == kind && objects[slot] == nil {
			t.dropObject(slot)
			delete(t.applied, slot)
		}
	}
	for slot, now := range objects {
		if t.setObject(slot, now) {
			concerned = append(concerned, slot)
		}
	}
	return concerned
}

// setState records the state of the watch of a kind. It returns the slots of the objects whose generators are of this
// kind, because these objects may have waited for the watch.
func (t *tables) setState(kind schema.GroupKind, now watchset.Status) (concerned []copies.Slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states[kind] = now
	for slot, object := range t.objects {
		if object.ControllerKind == kind || slot.Kind == kind {
			concerned = append(concerned, slot)
		}
	}
	return concerned
}

// recordApplied takes in the answer to an apply, so that the next pass over the object knows of it before the watch
// brings it.
func (t *tables) recordApplied(slot copies.Slot, answer metav1.Object) {
	now := copies.GeneratedOf(answer)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.objects[slot]; known == nil || now == nil || known.UID != now.UID {
		return // the watch has shown that the object is gone, and perhaps that another one has come
	}
	t.setObject(slot, now)
	if delete(t.applied, slot); now.Ours {
		t.applied[slot] = now.UID
	}
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
		slots = slices.AppendSeq(slots, maps.Keys(t.placed[namespace]))
	}
	return slots
}

// findObject returns what is known of an object, the mode that its generator asks for, and the state of the watch of
// its kind. object is nil if nothing is known of it, or if its generator may exist without being known. The generator
// may exist unless the watch of its kind is synced. A kind that the configuration doesn't name has no watch.
func (t *tables) findObject(slot copies.Slot) (object *copies.Generated, wanted string, served watchset.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if object = t.objects[slot]; object == nil {
		return nil, "", watchset.Status{}
	}
	state, followed := t.states[object.ControllerKind]
	if object.Controller != "" && (!followed || state.State != watchset.Synced) {
		return nil, "", watchset.Status{}
	}
	if g, ok := t.generators[object.Controller]; ok && g.kind == object.ControllerKind && g.namespace == slot.Namespace {
		wanted = g.mode
	}
	return object, wanted, t.states[slot.Kind]
}

// describeUnseen returns a sentence for each kind that can't be watched, in alphabetical order.
func (t *tables) describeUnseen() (sentences []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, status := range t.states {
		why := ""
		switch status.State {
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
