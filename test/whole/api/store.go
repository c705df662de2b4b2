package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Record is one version of an object. It never changes.
type Record struct {
	*unstructured.Unstructured
	Kind           *Kind
	revision       int64
	body, metadata []byte              // encoded when they are asked for
	rules          []rbacv1.PolicyRule // of a role, decoded when they are asked for
}

// Event is what happened to an object: Old is nil for a creation. Of a deleted object, New is its last state.
type Event struct {
	Type     watch.EventType
	Old, New *Record
	By       string // the user
	At       time.Time
}

func (r *Record) key() string { return r.GetNamespace() + "/" + r.GetName() }

// encode returns the object as JSON, or its metadata alone.
func (r *Record) encode(metadataOnly bool) []byte {
	if metadataOnly {
		if r.metadata == nil {
			r.metadata = mustEncode(map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
				"metadata": r.Object["metadata"]})
		}
		return r.metadata
	}
	if r.body == nil {
		r.body = mustEncode(r.Object)
	}
	return r.body
}

func mustEncode(object any) []byte {
	body, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("encoding an object of the model: %v", err))
	}
	return body
}

// store makes object the newest version of its kind, and returns its record. object must not be changed afterwards.
func (s *Server) store(k *Kind, old *Record, object *unstructured.Unstructured, by string) *Record {
	s.revision++
	object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	r := &Record{Unstructured: object, Kind: k, revision: s.revision}
	k.objects[r.key()] = r
	event := Event{Type: watch.Modified, Old: old, New: r, By: by, At: s.Now()}
	if old == nil {
		event.Type = watch.Added
	}
	s.publish(k, event)
	return r
}

// remove deletes the object from the storage.
func (s *Server) remove(r *Record, by string) *Record {
	s.revision++
	last := r.DeepCopy()
	last.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	gone := &Record{Unstructured: last, Kind: r.Kind, revision: s.revision}
	delete(r.Kind.objects, r.key())
	s.publish(r.Kind, Event{Type: watch.Deleted, Old: r, New: gone, By: by, At: s.Now()})
	return gone
}

func (s *Server) publish(k *Kind, event Event) {
	k.log = append(k.log, event)
	for _, each := range s.observers {
		each(event)
	}
}

// Observe has every change reported to observer.
func (s *Server) Observe(observer func(Event)) { s.observers = append(s.observers, observer) }

// Kind returns the kind of a resource.
func (s *Server) Kind(group, resource string) *Kind {
	for _, k := range s.kinds {
		if k.Has(group, resource) {
			return k
		}
	}
	panic(fmt.Sprintf("the model does not serve %s of group %q", resource, group))
}

// Kinds returns all kinds that are stored.
func (s *Server) Kinds() []*Kind { return s.kinds }

// Find returns an object, nil if there is none.
func (k *Kind) Find(namespace, name string) *Record { return k.objects[namespace+"/"+name] }

// All returns the objects, in the order of namespace and name.
func (k *Kind) All() []*Record {
	all := make([]*Record, 0, len(k.objects))
	for _, r := range k.objects {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Record) int {
		switch {
		case a.key() < b.key():
			return -1
		case a.key() > b.key():
			return 1
		}
		return 0
	})
	return all
}

// In returns the objects in a namespace.
func (k *Kind) In(namespace string) []*Record {
	return slices.DeleteFunc(k.All(), func(r *Record) bool { return r.GetNamespace() != namespace })
}

// Log returns all that happened to objects of the kind.
func (k *Kind) Log() []Event { return k.log }

// Revision is the newest resourceVersion.
func (s *Server) Revision() int64 { return s.revision }

// Compact forgets the past of all kinds: a watch from an older resourceVersion is answered 410.
func (s *Server) Compact() {
	for _, k := range s.kinds {
		k.compacted = s.revision
	}
}

func (s *Server) newUID() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids))
}
