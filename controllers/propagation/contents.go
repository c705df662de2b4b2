package propagation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// contents are what the watches, and the answers to our own writes, have shown. They are not safe for concurrent use:
// tables guard them with their lock.
type contents struct {
	world    *propagate.World
	rules    propagate.Rules
	lastSeen map[stream]string // the highest resourceVersion of a copy that a watch has brought
	bodies   *bodies
}

// stream names one watch of copies by its kind and namespace; namespace "" stands for a watch of the whole cluster.
type stream struct {
	kind      schema.GroupKind
	namespace string
}

func (c *contents) streamOf(kind schema.GroupKind, namespace string) stream {
	if c.world.Sights.IsNarrow(kind) {
		return stream{kind, namespace}
	}
	return stream{kind, ""}
}

// setForest does what tables.setForest says.
func (c *contents) setForest(change view.Change) []key {
	c.world.Forest = change.New
	var keys []key
	for _, namespace := range change.Namespaces {
		keys = append(keys, namespaceKey(namespace))
		for _, slot := range c.world.Doubtful(namespace) {
			c.world.SetLoss(slot, propagate.Unverified)
			keys = append(keys, sourceKey(slot))
		}
	}
	for _, root := range c.world.Limits.RootsHeldBack() {
		keys = append(keys, tenantKey(root))
	}
	return keys
}

// origin says which watch has brought an object.
type origin struct {
	kind Kind
	role role
}

func (o origin) slotOf(meta *metav1.PartialObjectMetadata) propagate.Slot {
	return propagate.Slot{Kind: o.kind.GroupKind(), Namespace: meta.Namespace, Name: meta.Name}
}

func (o origin) bringsSources() bool { return o.role != copiesAlone }
func (o origin) bringsCopies() bool  { return o.role != sourcesAlone }

// effects are what follows from a change of the tables.
type effects struct {
	keys []key
	// freed are namespaces in which a copy has changed or gone: writes that wait for removals there may go on.
	freed []string
}

func (e *effects) add(more effects) {
	e.keys = append(e.keys, more.keys...)
	e.freed = append(e.freed, more.freed...)
}

func (c *contents) put(o origin, meta *metav1.PartialObjectMetadata) effects {
	c.noteSeen(o, meta)
	if o.role == sourcesAndCopies {
		// In a watch of every object, a copy whose label inherited-from was taken off would pass for a source. In a watch of labelled objects
		// such a copy merely disappears, and the POST that follows finds it.
		if from := propagate.UnlabelledFrom(c.world.Forest, o.slotOf(meta), meta); from != "" {
			return c.putUnlabelled(o, meta, from)
		}
	}
	var all effects
	if o.bringsSources() {
		all.add(c.putSource(o, meta))
	}
	if o.bringsCopies() {
		all.add(c.putCopy(o, meta))
	}
	return all
}

// putUnlabelled enters a copy whose label inherited-from was taken off as a copy that drifted.
func (c *contents) putUnlabelled(o origin, meta *metav1.PartialObjectMetadata, from string) effects {
	slot := o.slotOf(meta)
	meta = meta.DeepCopy()
	metav1.SetMetaDataLabel(&meta.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	all := c.putCopy(o, meta)
	if known := c.world.Copies.At(slot); known != nil && known.ResourceVersion == meta.ResourceVersion {
		known.Drifted = true
		c.world.PutCopy(slot, known)
	}
	all.add(c.dropSource(slot))
	return all
}

func (c *contents) putSource(o origin, meta *metav1.PartialObjectMetadata) effects {
	slot := o.slotOf(meta)
	known := c.world.Sources.At(slot)
	if known != nil && c.isPast(meta, slot.Kind, known.UID, known.ResourceVersion) {
		return effects{}
	}
	s, ok := c.rules.SourceOf(slot, meta, o.kind.Mode)
	if !ok {
		return c.dropSource(slot)
	}
	if known != nil && known.ResourceVersion == s.ResourceVersion {
		return effects{}
	}
	c.bodies.fit(slot, s)
	c.world.PutSource(slot, s)
	return effects{keys: append(limitsAround(c.world, slot.Namespace), sourceKey(slot))}
}

func (c *contents) putCopy(o origin, meta *metav1.PartialObjectMetadata) effects {
	slot := o.slotOf(meta)
	known := c.world.Copies.At(slot)
	if known != nil && c.isPast(meta, slot.Kind, known.UID, known.ResourceVersion) {
		return effects{}
	}
	if _, ok := meta.Labels[v1alpha1.LabelInheritedFrom]; !ok {
		return c.dropCopy(slot)
	}
	if known != nil && known.UID != string(meta.UID) {
		known = nil
	}
	if known != nil && !view.Newer(meta.ResourceVersion, known.ResourceVersion) {
		return effects{} // the answer to our own write came before the watch
	}
	now := c.rules.CopyOf(slot, meta)
	if known != nil && known.Digest != 0 {
		now.Digest = c.rules.Digest(meta)
		now.Drifted = known.Drifted || now.Digest != known.Digest
	}
	c.world.PutCopy(slot, now)
	return effects{keys: append(slotKeys(c.world.BindingsTo(slot)), slotKey(slot)), freed: []string{slot.Namespace}}
}

// isPast says whether meta is an older version of an object of a narrow kind than the known one. When the watch of the whole cluster takes
// the place of the watches of namespaces, it may begin with older versions than these watches have shown.
func (c *contents) isPast(meta *metav1.PartialObjectMetadata, kind schema.GroupKind, uid, resourceVersion string) bool {
	return c.world.Sights.IsNarrow(kind) && string(meta.UID) == uid && view.Newer(resourceVersion, meta.ResourceVersion)
}

// remove forgets an object that a watch has seen go.
func (c *contents) remove(o origin, meta *metav1.PartialObjectMetadata) effects {
	c.noteSeen(o, meta)
	slot, uid := o.slotOf(meta), string(meta.UID)
	var all effects
	if s := c.world.Sources.At(slot); o.bringsSources() && s != nil && s.UID == uid && !c.isPast(meta, slot.Kind, uid, s.ResourceVersion) {
		all.add(c.dropSource(slot))
	}
	if known := c.world.Copies.At(slot); o.bringsCopies() && known != nil && known.UID == uid && !c.isPast(meta, slot.Kind, uid, known.ResourceVersion) {
		all.add(c.dropCopy(slot))
	}
	return all
}

// replace makes the tables hold exactly these objects of what the watch brings; known are the slots of what it has brought so far.
func (c *contents) replace(o origin, objects []*metav1.PartialObjectMetadata, known func() (sources, copies []propagate.Slot)) effects {
	var all effects
	exists := make(map[propagate.Slot]bool, len(objects))
	for _, meta := range objects {
		exists[o.slotOf(meta)] = true
		all.add(c.put(o, meta))
	}
	sources, copies := known()
	for _, slot := range sources {
		if o.bringsSources() && !exists[slot] {
			all.add(c.dropSource(slot))
		}
	}
	for _, slot := range copies {
		if o.bringsCopies() && !exists[slot] {
			all.add(c.dropCopy(slot))
		}
	}
	return all
}

func (c *contents) dropSource(slot propagate.Slot) effects {
	if c.world.Sources.At(slot) == nil {
		return effects{}
	}
	c.world.DeleteSource(slot)
	c.bodies.drop(slot)
	return effects{keys: append(limitsAround(c.world, slot.Namespace), sourceKey(slot), slotKey(slot))} // the slot: the source may have been in the way of a copy from above
}

func (c *contents) dropCopy(slot propagate.Slot) effects {
	known := c.world.Copies.At(slot)
	if known == nil {
		return effects{}
	}
	c.world.DeleteCopy(slot)
	keys := append(limitsAround(c.world, known.From), slotKeys(c.world.BindingsTo(slot))...)
	return effects{keys: append(keys, slotKey(slot)), freed: []string{slot.Namespace}}
}

// noteSeen keeps the highest resourceVersion that the watch of copies has brought.
func (c *contents) noteSeen(o origin, meta *metav1.PartialObjectMetadata) {
	at := c.streamOf(o.kind.GroupKind(), meta.Namespace)
	if o.bringsCopies() && (view.Newer(meta.ResourceVersion, c.lastSeen[at]) || c.lastSeen[at] == "") {
		c.lastSeen[at] = meta.ResourceVersion
	}
}
