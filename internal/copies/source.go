package copies

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Source is what is known of an object that is propagated.
type Source struct {
	// Maker is what made the object a source.
	Maker                Maker
	UID, ResourceVersion string
	// Mode is create, update or none.
	Mode string
	// Invalid is why the object can't be judged: an unknown mode, or a selector that does not parse. Because of an invalid source, no copy is
	// written or deleted.
	Invalid string
	// Excluded is why the object is never propagated.
	Excluded string
	// Selector selects among the namespaces below; nil selects all.
	Selector labels.Selector
	// Terminating says that the source is being deleted. Until it is gone, no copy is written or deleted because of it.
	Terminating bool
	// Content is the hash of what is written from the source, Meta the digest of the labels and annotations among that. Both are empty until
	// the body of this version has been read.
	Content string
	Meta    uint64
	// Role is the name of the Role that a RoleBinding names, or ""; empty until the body was read.
	Role string
	// Size is what one copy takes, in bytes: 0 until the body was read.
	Size int
	// Created is when the object was made, in Unix seconds.
	Created int64
	// Access says that the object is a RoleBinding that the operator made to hand out the access of a tenant.
	Access bool

	reached   int              // how many namespaces below the selector selects
	reachedIn *forest.Snapshot // the forest for which reached was counted
}

// IsUnread says whether the body of this version is still to be read, and may be written.
func (s *Source) IsUnread() bool {
	return s.Content == "" && s.Excluded == "" && s.Invalid == "" && s.Mode != v1alpha1.ModeNone && !s.Terminating
}

type sourceKey struct {
	kind            schema.GroupKind
	namespace, name string
}

func (k sourceKey) slot() Slot { return Slot{k.kind, k.namespace, k.name} }

// place is a kind and a name: what the slots of a source have in common.
type place struct {
	kind schema.GroupKind
	name string
}

func (s Slot) source() sourceKey { return sourceKey{s.Kind, s.Namespace, s.Name} }
func (s Slot) place() place      { return place{s.Kind, s.Name} }

// Sources are the sources of a World. Which there are, World alone changes, because limits and losses depend on that.
type Sources struct {
	byKey  map[sourceKey]*Source
	places map[string]map[place]bool // by namespace
	counts map[schema.GroupKind]int
}

func newSources() *Sources {
	return &Sources{byKey: map[sourceKey]*Source{}, places: map[string]map[place]bool{}, counts: map[schema.GroupKind]int{}}
}

// At returns the source that stands at slot, or nil.
func (s *Sources) At(slot Slot) *Source { return s.byKey[slot.source()] }

// In returns the slots of the sources of a kind in namespace, or Everywhere.
func (s *Sources) In(kind schema.GroupKind, namespace string) (slots []Slot) {
	if namespace != Everywhere {
		for at := range s.places[namespace] {
			if at.kind == kind {
				slots = append(slots, Slot{kind, namespace, at.name})
			}
		}
		return slots
	}
	for key := range s.byKey {
		if key.kind == kind {
			slots = append(slots, key.slot())
		}
	}
	return slots
}

func (s *Sources) put(slot Slot, source *Source) {
	if s.At(slot) == nil {
		s.counts[slot.Kind]++
	}
	s.byKey[slot.source()] = source
	if s.places[slot.Namespace] == nil {
		s.places[slot.Namespace] = map[place]bool{}
	}
	s.places[slot.Namespace][slot.place()] = true
}

func (s *Sources) delete(slot Slot) {
	if s.At(slot) == nil {
		return
	}
	s.counts[slot.Kind]--
	delete(s.byKey, slot.source())
	if delete(s.places[slot.Namespace], slot.place()); len(s.places[slot.Namespace]) == 0 {
		delete(s.places, slot.Namespace)
	}
}
