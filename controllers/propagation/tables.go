package propagation

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/controllers/index"
	"github.com/warren-tenancy/warren/internal/propagate"
)

// feed takes one watch of a kind into the tables. It implements Sink.
type feed struct {
	engine  *Engine
	run     *kindRun
	role    role
	synced  bool
	trouble kindState // why the watch sees nothing; "" while it does
	// vanished ends all watches of the kind: the API server serves it no longer.
	vanished func()
}

func (f *feed) slot(meta *metav1.PartialObjectMetadata) propagate.Slot {
	return propagate.Slot{Kind: f.run.kind.GroupKind(), Namespace: meta.Namespace, Name: meta.Name}
}

// Put implements Sink.
func (f *feed) Put(meta *metav1.PartialObjectMetadata) {
	e := f.engine
	e.mu.Lock()
	keys := f.put(meta)
	e.mu.Unlock()
	e.enqueue(keys...)
}

// Gone implements Sink.
func (f *feed) Gone(meta *metav1.PartialObjectMetadata) {
	e := f.engine
	e.mu.Lock()
	f.noteSeen(meta.ResourceVersion)
	keys := f.gone(f.slot(meta), string(meta.UID))
	e.mu.Unlock()
	e.enqueue(keys...)
}

// Replace implements Sink.
func (f *feed) Replace(all []*metav1.PartialObjectMetadata) {
	e := f.engine
	e.mu.Lock()
	var keys []key
	there := make(map[propagate.Slot]bool, len(all))
	for _, meta := range all {
		there[f.slot(meta)] = true
		keys = append(keys, f.put(meta)...)
	}
	sources, copies := e.world.Kind(f.run.kind.GroupKind())
	if f.role != copiesAlone {
		for _, slot := range sources {
			if !there[slot] {
				keys = append(keys, f.sourceGone(slot)...)
			}
		}
	}
	if f.role != sourcesAlone {
		for _, slot := range copies {
			if !there[slot] {
				keys = append(keys, f.copyGone(slot)...)
			}
		}
	}
	f.synced, f.trouble = true, ""
	keys = append(keys, e.judge(f.run)...)
	e.mu.Unlock()
	e.enqueue(keys...)
}

// Lost implements Sink.
func (f *feed) Lost(err error) {
	e := f.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	f.synced, f.trouble = false, kindForbidden
	if apierrors.IsNotFound(err) {
		f.trouble = kindPending
		f.vanished()
	}
	e.judge(f.run)
}

func (f *feed) put(meta *metav1.PartialObjectMetadata) []key {
	f.noteSeen(meta.ResourceVersion)
	if f.role == sourcesAndCopies {
		if from := f.unmarked(meta); from != "" {
			return f.putUnmarked(meta, from)
		}
	}
	var keys []key
	if f.role != copiesAlone {
		keys = f.putSource(f.slot(meta), meta)
	}
	if f.role != sourcesAlone {
		keys = append(keys, f.putCopy(f.slot(meta), meta)...)
	}
	return keys
}

// unmarked is the source's namespace of a copy of ours that somebody took the label off, or "". Where every object is
// watched it would pass for a source; elsewhere the watch shows it as gone, and the POST that follows finds it.
func (f *feed) unmarked(meta *metav1.PartialObjectMetadata) string {
	hash := propagate.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	if _, labelled := meta.Labels[v1alpha1.LabelInheritedFrom]; labelled || hash.Place == "" {
		return ""
	}
	sources, _ := f.engine.world.Forest.Sources(meta.Namespace)
	for _, from := range sources.Names {
		if hash.Place == propagate.PlaceOf(f.slot(meta), from) {
			return from
		}
	}
	return ""
}

// putUnmarked takes a copy without its label for what it is: drifted.
func (f *feed) putUnmarked(meta *metav1.PartialObjectMetadata, from string) []key {
	e, slot := f.engine, f.slot(meta)
	meta = meta.DeepCopy()
	metav1.SetMetaDataLabel(&meta.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	keys := f.putCopy(slot, meta)
	if c := e.world.Copy(slot); c != nil && c.ResourceVersion == meta.ResourceVersion {
		c.Drifted = true
		e.world.PutCopy(slot, c)
	}
	return append(keys, f.sourceGone(slot)...)
}

func (f *feed) putSource(slot propagate.Slot, meta *metav1.PartialObjectMetadata) []key {
	e := f.engine
	s, ok := e.settings.Rules.SourceOf(slot, meta, f.run.kind.Mode)
	if !ok {
		return f.sourceGone(slot)
	}
	if known := e.world.Source(slot); known != nil && known.ResourceVersion == s.ResourceVersion {
		return nil
	}
	e.bodies.fit(slot, s)
	e.world.PutSource(slot, s)
	f.began(slot)
	return []key{sourceOf(slot)}
}

func (f *feed) putCopy(slot propagate.Slot, meta *metav1.PartialObjectMetadata) []key {
	e := f.engine
	if _, ok := meta.Labels[v1alpha1.LabelInheritedFrom]; !ok {
		return f.copyGone(slot)
	}
	known := e.world.Copy(slot)
	if known != nil && known.UID != string(meta.UID) {
		known = nil
	}
	if known != nil && !index.Newer(meta.ResourceVersion, known.ResourceVersion) {
		return nil // our own write's answer came first
	}
	rules := e.settings.Rules
	c := rules.CopyOf(slot, meta)
	if known != nil && known.Digest != 0 {
		c.Digest = rules.Digest(meta)
		c.Drifted = known.Drifted || c.Digest != known.Digest
	}
	e.world.PutCopy(slot, c)
	return append(e.released(slot.Namespace), slotKey(slot))
}

func (f *feed) gone(slot propagate.Slot, uid string) []key {
	e := f.engine
	var keys []key
	if s := e.world.Source(slot); f.role != copiesAlone && s != nil && s.UID == uid {
		keys = f.sourceGone(slot)
	}
	if c := e.world.Copy(slot); f.role != sourcesAlone && c != nil && c.UID == uid {
		keys = append(keys, f.copyGone(slot)...)
	}
	return keys
}

func (f *feed) sourceGone(slot propagate.Slot) []key {
	e := f.engine
	if e.world.Source(slot) == nil {
		return nil
	}
	e.world.DeleteSource(slot)
	e.bodies.drop(slot)
	f.began(slot)
	return []key{sourceOf(slot), slotKey(slot)} // it may have been in the way of a copy from above
}

// began measures the way of a source's event on the leader, but for those that only fill the tables.
func (f *feed) began(slot propagate.Slot) {
	if f.engine.leading && f.run.state == kindActive {
		f.engine.fanouts.begin(slot, time.Now())
	}
}

func (f *feed) copyGone(slot propagate.Slot) []key {
	e := f.engine
	if e.world.Copy(slot) == nil {
		return nil
	}
	e.world.DeleteCopy(slot)
	return append(e.released(slot.Namespace), slotKey(slot))
}

// released are the keys to look at because a copy in namespace has changed or gone while something there waits for
// removals. The caller holds the lock.
func (e *Engine) released(namespace string) []key {
	if !e.waitsNoLonger(namespace) {
		return nil
	}
	return []key{namespaceKey(namespace)}
}

// answered takes the answer to a write of our own into the tables, so that the next plan knows of it before the watch
// brings it.
func (e *Engine) answered(slot propagate.Slot, meta *metav1.PartialObjectMetadata) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rules := e.settings.Rules
	c, known := rules.CopyOf(slot, meta), e.world.Copy(slot)
	c.Digest = rules.Digest(meta)
	switch {
	case known != nil && known.UID == c.UID && index.Newer(known.ResourceVersion, c.ResourceVersion):
		return // somebody wrote after us, and the watch has told
	case known == nil && index.Newer(e.seen[slot.Kind], c.ResourceVersion):
		return // the watch has been there already, and has seen it go
	}
	e.world.PutCopy(slot, c)
}

// noteSeen keeps how far the watch of copies has come.
func (f *feed) noteSeen(resourceVersion string) {
	seen, gk := f.engine.seen, f.run.kind.GroupKind()
	if f.role != sourcesAlone && (index.Newer(resourceVersion, seen[gk]) || seen[gk] == "") {
		seen[gk] = resourceVersion
	}
}
