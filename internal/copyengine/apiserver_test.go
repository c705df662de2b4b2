package copyengine_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/copyengine"
	"github.com/warren-tenancy/warren/internal/forest"
)

// apiServer is a small model of a cluster. It has objects by slot, carries out Requests as controllers/copies does, and keeps the events
// that the watches have not shown yet.
type apiServer struct {
	kinds   []copyengine.Kind
	forest  *forest.Snapshot
	version int
	objects map[copies.Slot]apiObject
	events  []copyengine.Input // what the State has not been shown, the oldest first
	writes  []string           // the writes of copies, in words
	// refuse returns the error of a write; nil accepts every write. A write for which loseReply returns true is carried out, but gets no
	// answer.
	refuse    func(copyengine.WriteCopy) error
	loseReply func(copyengine.WriteCopy) bool
}

// apiObject is an object. Its meta is replaced as a whole, never changed in place.
type apiObject struct {
	meta    *metav1.PartialObjectMetadata
	content string
	size    int
}

func newAPIServer(f *forest.Snapshot, kinds []copyengine.Kind) *apiServer {
	return &apiServer{kinds: kinds, forest: f, version: 100, objects: map[copies.Slot]apiObject{}}
}

// put creates or replaces the object at slot, with content number n. change sets other fields of its metadata.
func put(slot copies.Slot, n int, change ...func(*metav1.ObjectMeta)) func(*apiServer) {
	return func(a *apiServer) {
		meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: slot.Namespace, Name: slot.Name, UID: a.newUID()}}
		if was, exists := a.objects[slot]; exists {
			meta.UID = was.meta.UID
			meta.CreationTimestamp = was.meta.CreationTimestamp
		} else {
			meta.CreationTimestamp = metav1.NewTime(time.Unix(int64(a.version), 0))
		}
		meta.Labels, meta.Annotations = map[string]string{}, map[string]string{}
		for _, change := range change {
			change(&meta.ObjectMeta)
		}
		a.store(slot, apiObject{meta, contentNumber(n), 100})
	}
}

// propagated puts a source in this mode at slot.
func propagated(slot copies.Slot, n int, mode string, change ...func(*metav1.ObjectMeta)) func(*apiServer) {
	return put(slot, n, append([]func(*metav1.ObjectMeta){withLabel(v1alpha1.LabelPropagate, mode)}, change...)...)
}

func withLabel(key, value string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.Labels[key] = value }
}

func withAnnotation(key, value string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.Annotations[key] = value }
}

// relabel sets one label of an object, or removes it if value is empty, as another user than the operator does.
func relabel(slot copies.Slot, key, value string) func(*apiServer) {
	return func(a *apiServer) {
		was := a.objects[slot]
		was.meta = was.meta.DeepCopy()
		if was.meta.Labels[key] = value; value == "" {
			delete(was.meta.Labels, key)
		}
		a.store(slot, was)
	}
}

// resized gives an object content number n, of this size.
func resized(slot copies.Slot, n, size int) func(*apiServer) {
	return func(a *apiServer) {
		was := a.objects[slot]
		was.meta, was.content, was.size = was.meta.DeepCopy(), contentNumber(n), size
		a.store(slot, was)
	}
}

// remove deletes the object at slot, if there is one. An object with finalizers only gets a deletionTimestamp: it is there until released.
func remove(slot copies.Slot) func(*apiServer) {
	return func(a *apiServer) {
		was, exists := a.objects[slot]
		switch {
		case !exists || was.meta.DeletionTimestamp != nil:
		case len(was.meta.Finalizers) > 0:
			was.meta = was.meta.DeepCopy()
			was.meta.DeletionTimestamp = &metav1.Time{Time: time.Unix(int64(a.version), 0)}
			a.store(slot, was)
		default:
			a.vanish(slot)
		}
	}
}

// released removes the finalizers of an object that is being deleted, so that it no longer exists.
func released(slot copies.Slot) func(*apiServer) { return func(a *apiServer) { a.vanish(slot) } }

func contentNumber(n int) string { return fmt.Sprintf("%032d", n) }

func (a *apiServer) newUID() types.UID {
	a.version++
	return types.UID(fmt.Sprint("uid-", a.version))
}

// store stores an object under a new resourceVersion. Watches whose selector matched it before, or matches it now, will show it.
func (a *apiServer) store(slot copies.Slot, object apiObject) {
	a.version++
	object.meta.ResourceVersion = strconv.Itoa(a.version)
	before, existed := a.objects[slot]
	a.objects[slot] = object
	for _, watch := range a.watchesOf(slot) {
		switch {
		case selects(watch, object.meta):
			a.events = append(a.events, copyengine.ObjectSeen{Watch: watch, Object: object.meta})
		case existed && selects(watch, before.meta):
			a.events = append(a.events, copyengine.ObjectGone{Watch: watch, Object: object.meta})
		}
	}
}

func (a *apiServer) vanish(slot copies.Slot) {
	object := a.objects[slot]
	delete(a.objects, slot)
	a.version++
	last := object.meta.DeepCopy()
	last.ResourceVersion = strconv.Itoa(a.version)
	for _, watch := range a.watchesOf(slot) {
		if selects(watch, object.meta) {
			a.events = append(a.events, copyengine.ObjectGone{Watch: watch, Object: last})
		}
	}
}

// grow replaces the forest by next; namespaces are those that the change concerns.
func (a *apiServer) grow(next *forest.Snapshot, namespaces ...string) {
	a.events = append(a.events, copyengine.ForestChanged{Old: a.forest, New: next, Namespaces: namespaces})
	a.forest = next
}

func (a *apiServer) watchesOf(slot copies.Slot) (watches []copyengine.Watch) {
	for _, role := range a.kindOf(slot).Roles() {
		watches = append(watches, copyengine.Watch{Kind: slot.Kind, Role: role})
	}
	return watches
}

func (a *apiServer) kindOf(slot copies.Slot) copyengine.Kind {
	i := slices.IndexFunc(a.kinds, func(k copyengine.Kind) bool { return k.GroupKind() == slot.Kind })
	return a.kinds[i]
}

// selects reports whether the selector of a watch selects an object.
func selects(watch copyengine.Watch, meta *metav1.PartialObjectMetadata) bool {
	_, propagated := meta.Labels[v1alpha1.LabelPropagate]
	_, inherited := meta.Labels[v1alpha1.LabelInheritedFrom]
	return watch.Role == copyengine.SourcesAndCopies || watch.Role == copyengine.SourcesAlone && propagated ||
		watch.Role == copyengine.CopiesAlone && inherited
}

func (a *apiServer) list(watch copyengine.Watch) (all []*metav1.PartialObjectMetadata) {
	for slot, object := range a.objects {
		if slot.Kind == watch.Kind && selects(watch, object.meta) {
			all = append(all, object.meta)
		}
	}
	return all
}

// carryOut carries out a Request, and returns the answers. known is the forest that the State knows.
func (a *apiServer) carryOut(request copyengine.Request, known *forest.Snapshot) []copyengine.Input {
	switch one := request.(type) {
	case copyengine.ReadSource:
		read, err := a.read(one.Source, one.Resource)
		return append(read, copyengine.SourceRead{Source: one.Source, Err: err})
	case copyengine.FindLoss:
		return []copyengine.Input{copyengine.LossFound{Source: one.Source, Loss: a.findLoss(one)}}
	case copyengine.CheckRemoval:
		answer := copyengine.RemovalChecked{CheckRemoval: one}
		if a.forest != known {
			answer.Err = copies.ErrBehind
		}
		return []copyengine.Input{answer}
	}
	write := request.(copyengine.WriteCopy)
	if a.refuse != nil {
		if err := a.refuse(write); err != nil {
			return []copyengine.Input{copyengine.CopyWritten{WriteCopy: write, Err: err}}
		}
	}
	read, result, err := a.write(write)
	if a.loseReply != nil && a.loseReply(write) {
		result, err = copyengine.Result{}, unavailable()
	}
	return append(read, copyengine.CopyWritten{WriteCopy: write, Result: result, Err: err})
}

// read reads a source whole.
func (a *apiServer) read(slot copies.Slot, resource schema.GroupVersionResource) ([]copyengine.Input, error) {
	object, exists := a.objects[slot]
	if !exists {
		return nil, notFound(slot)
	}
	body := &copies.Body{Content: contentIn(object.content, resource), Size: object.size, Meta: metaOf(object.meta)}
	return []copyengine.Input{copyengine.BodyRead{Source: slot, Resource: resource, UID: string(object.meta.UID),
		ResourceVersion: object.meta.ResourceVersion, Body: body}}, nil
}

// contentIn returns the content of an object as the API server shows it in the version of resource: v2 has a field that v1 lacks.
func contentIn(content string, resource schema.GroupVersionResource) string {
	if resource.Version == "v2" {
		return content + " and more"
	}
	return content
}

// metaOf returns the digest of the labels and annotations that a copy of this object would have.
func metaOf(meta *metav1.PartialObjectMetadata) uint64 {
	return copies.Rules{}.CopyOf(copies.Slot{}, meta).Meta
}

func (a *apiServer) findLoss(request copyengine.FindLoss) copies.Loss {
	object, exists := a.objects[request.Source]
	n := a.forest.Namespace(request.Source.Namespace)
	switch {
	case exists:
		if _, isSource := (copies.Rules{}).SourceOf(request.Source, object.meta, request.Mode); isSource {
			return copies.Doubtful
		}
		return copies.Confirmed
	case n == nil || n.Terminating:
		return copies.GoneWithNamespace
	}
	return copies.Confirmed
}

// write carries out one WriteCopy, as copyWrite in controllers/copies does.
func (a *apiServer) write(w copyengine.WriteCopy) (read []copyengine.Input, result copyengine.Result, err error) {
	source, hasSource := a.objects[w.Action.Source]
	source.content = contentIn(source.content, w.Resource)
	at, exists := a.objects[w.Slot]
	same := exists && w.Over != nil && string(at.meta.UID) == w.Over.UID && at.meta.ResourceVersion == w.Over.ResourceVersion
	switch {
	case w.Action.Verb == copies.Delete && !exists, w.Action.Verb != copies.Create && !exists:
		return nil, copyengine.Result{Absent: true}, nil
	case w.Action.Verb == copies.Create && exists:
		return a.probe(w, at)
	case w.Action.Verb != copies.Create && !same:
		return nil, copyengine.Result{}, conflicting(w.Slot)
	case w.Action.Verb == copies.Delete:
		a.writes = append(a.writes, "delete "+w.Slot.String())
		remove(w.Slot)(a)
		return nil, copyengine.Result{Deleted: true}, nil
	case !hasSource:
		return nil, copyengine.Result{}, notFound(w.Action.Source)
	}
	if source.content != w.Action.Hash.Content {
		read, _ = a.read(w.Action.Source, w.Resource)
	}
	if w.Action.Verb == copies.Inspect {
		if at.content == source.content && metaOf(at.meta) == metaOf(source.meta) {
			body := &copies.Body{Content: source.content, Meta: metaOf(source.meta)}
			return read, copyengine.Result{Compared: body, ComparedUID: w.Over.UID, ComparedVersion: w.Over.ResourceVersion}, nil
		}
		w.Over.Drifted, result.FoundDrifted = true, true
	}
	a.writes = append(a.writes, verbs[w.Action.Verb]+" "+w.Slot.String())
	result.Written = a.writeCopy(w, source)
	result.Repaired = w.Over != nil && copies.IsRepair(w.Over, w.Action)
	return read, result, nil
}

// probe returns what exists where a copy should be.
func (a *apiServer) probe(w copyengine.WriteCopy, at apiObject) ([]copyengine.Input, copyengine.Result, error) {
	if at.meta.DeletionTimestamp != nil {
		return nil, copyengine.Result{}, copies.ErrBeingDeleted
	}
	from, labelled := at.meta.Labels[v1alpha1.LabelInheritedFrom]
	found := at.meta
	if !labelled {
		from, found = copies.UnlabelledFrom(a.forest, w.Slot, at.meta), at.meta.DeepCopy()
		metav1.SetMetaDataLabel(&found.ObjectMeta, v1alpha1.LabelInheritedFrom, from)
	}
	if hash := copies.ParseHash(at.meta.Annotations[v1alpha1.AnnotationSourceHash]); hash.Place == "" ||
		hash.Place != copies.PlaceOf(w.Slot, from) {
		return nil, copyengine.Result{}, copies.ErrObstacle
	}
	return nil, copyengine.Result{Found: found, Unlabelled: !labelled}, nil
}

func (a *apiServer) writeCopy(w copyengine.WriteCopy, source apiObject) *metav1.PartialObjectMetadata {
	hash := w.Action.Hash
	hash.Content = source.content
	change := func(m *metav1.ObjectMeta) {
		for key, value := range source.meta.Labels {
			if !v1alpha1.IsReservedKey(key) {
				m.Labels[key] = value
			}
		}
		m.Labels[v1alpha1.LabelInheritedFrom] = w.Action.Source.Namespace
		m.Annotations[v1alpha1.AnnotationSourceHash] = hash.String()
		if w.Over != nil && w.Over.Kept != nil {
			m.Finalizers = w.Over.Kept.Finalizers
		}
	}
	put(w.Slot, 0, change)(a)
	written := a.objects[w.Slot]
	written.content, written.size = source.content, source.size
	a.objects[w.Slot] = written
	return written.meta
}
