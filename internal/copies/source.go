package copies

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	// Invalid is why the object can't be judged: an unknown mode, or a selector that does not parse. While a source is
	// invalid, no copy is written or deleted because of it.
	Invalid string
	// Excluded is why the object is never propagated, or "".
	Excluded string
	// Selector selects among the namespaces below; nil selects all.
	Selector labels.Selector
	// Terminating reports that the source is being deleted. Until it is gone, no copy is written or deleted because of
	// it.
	Terminating bool
	// Content is the hash of what is written from the source, Meta the digest of the labels and annotations that are
	// written. Both are empty until the body of this version has been read.
	Content string
	Meta    uint64
	// Role is the name of the Role that a RoleBinding names, or ""; empty until the body was read.
	Role string
	// Size is what one copy takes, in bytes: 0 until the body was read.
	Size int
	// Created is when the object was made, in Unix seconds.
	Created int64
	// Access reports that the object is a RoleBinding that the operator made to grant the access of a tenant.
	Access bool

	reached   int              // how many of the namespaces below are selected by Selector
	reachedIn *forest.Snapshot // the forest for which reached was counted
	placed    int              // how many copies that count are in one of these namespaces
	placedIn  *forest.Snapshot // the forest for which placed was counted; nil before
}

// TakeBody records what the body of this version has shown.
func (s *Source) TakeBody(b *Body) {
	s.Content, s.Meta, s.Size, s.Role = b.Content, b.Meta, b.Size, b.Role
	if s.Excluded == "" {
		s.Excluded = b.Excluded
	}
}

// forgetContent makes the source unread again.
func (s *Source) forgetContent() { s.Content = "" }

// IsUnread reports whether the body of this version was not read yet, and copies of it may be written.
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

// Sources are the sources of a World. World alone adds and removes them, because limits and losses depend on them.
type Sources struct {
	byKey  map[sourceKey]*Source
	places map[string]map[place]bool // by namespace
	counts map[schema.GroupKind]int
}

func newSources() *Sources {
	return &Sources{byKey: map[sourceKey]*Source{}, places: map[string]map[place]bool{}, counts: map[schema.GroupKind]int{}}
}

// At returns the source at slot, or nil.
func (s *Sources) At(slot Slot) *Source { return s.byKey[slot.source()] }

func (s *Sources) hasSource(key sourceKey) bool { return s.byKey[key] != nil }

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

func (s *Sources) setSource(slot Slot, source *Source) {
	if s.At(slot) == nil {
		s.counts[slot.Kind]++
	}
	s.byKey[slot.source()] = source
	if s.places[slot.Namespace] == nil {
		s.places[slot.Namespace] = map[place]bool{}
	}
	s.places[slot.Namespace][slot.place()] = true
}

func (s *Sources) removeSource(slot Slot) {
	if s.At(slot) == nil {
		return
	}
	s.counts[slot.Kind]--
	delete(s.byKey, slot.source())
	if delete(s.places[slot.Namespace], slot.place()); len(s.places[slot.Namespace]) == 0 {
		delete(s.places, slot.Namespace)
	}
}

// builtIn are objects that the API server or a platform writes into every namespace by itself.
var builtIn = map[string][]string{
	"ConfigMap":      {"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"},
	"ServiceAccount": {"default"},
	"Service":        {"kubernetes"},
	"Endpoints":      {"kubernetes"},
}

// notCopied are the types of Secrets that are useless or harmful in another namespace.
var notCopied = map[string]bool{
	"kubernetes.io/service-account-token": true,
	"bootstrap.kubernetes.io/token":       true,
	"helm.sh/release.v1":                  true,
}

// ByConfiguration is why an object that propagation.neverPropagate names is never propagated.
const ByConfiguration = "propagation.neverPropagate of the configuration excludes it"

// Excluded returns why an object is never propagated, or "". secretType is "" where it is not known (yet).
func (r Rules) Excluded(slot Slot, meta metav1.Object, secretType string) string {
	switch labels := meta.GetLabels(); {
	case len(meta.GetFinalizers()) > 0:
		return "it has finalizers (" + strings.Join(meta.GetFinalizers(), ", ") + ")"
	case slot.Kind == (schema.GroupKind{Kind: "Secret"}) && notCopied[secretType]:
		return "Secrets of type " + secretType + " are never propagated"
	case slot.Kind.Group == "" && slices.Contains(builtIn[slot.Kind.Kind], slot.Name):
		return "the platform writes " + slot.Name + " into every namespace"
	case slot.Kind == (schema.GroupKind{Kind: "ConfigMap"}) && labels["owner"] == "helm" && strings.HasPrefix(slot.Name,
		"sh.helm.release.v1."):
		return "Helm releases are never propagated"
	case r.NeverPropagate != nil && r.NeverPropagate(slot.Kind, slot.Name, secretType, labels):
		return ByConfiguration
	}
	return ""
}

// SourceOf reads a source from its metadata. ok is false for an object that is no source: any object of a kind in mode
// Remove; an object without the label propagate whose kind is not in mode All; or a copy, including distributed copies
// and copies whose label somebody took off.
func (r Rules) SourceOf(slot Slot, meta metav1.Object, mode KindMode) (s *Source, ok bool) {
	value, opted := meta.GetLabels()[v1alpha1.LabelPropagate]
	_, copied := meta.GetLabels()[v1alpha1.LabelInheritedFrom]
	// A user can take the label off, but the hash still shows that the operator wrote this object.
	copied = copied || ParseHash(meta.GetAnnotations()[v1alpha1.AnnotationSourceHash]) != Hash{}
	if copied || mode == Remove || !opted && mode != All {
		return nil, false
	}
	maker := Labelled
	if !opted {
		value, maker = v1alpha1.ModeUpdate, Covered
	}
	s = &Source{
		Maker: maker, UID: string(meta.GetUID()), ResourceVersion: meta.GetResourceVersion(), Mode: value,
		Terminating: meta.GetDeletionTimestamp() != nil,
		Excluded:    r.Excluded(slot, meta, ""),
		Created:     meta.GetCreationTimestamp().Unix(),
		Access:      GivesRights(slot) && meta.GetLabels()[v1alpha1.LabelAccess] != "",
	}
	s.parseMarks(meta.GetAnnotations()[v1alpha1.AnnotationSelect])
	return s, true
}

// longestSelector bounds a selector, in bytes. A parsed selector takes seventy times as much memory as its text, and an
// annotation may have 256 kB: a few such annotations of one tenant would use up the operator's memory.
const longestSelector = 4096

// parseMarks checks the mode and parses the selector.
func (s *Source) parseMarks(selector string) {
	switch s.Mode {
	case v1alpha1.ModeCreate, v1alpha1.ModeUpdate, v1alpha1.ModeNone:
	default:
		s.Invalid = "label " + v1alpha1.LabelPropagate + " must be create, update or none, not " + strconv.Quote(s.Mode)
		return
	}
	if selector == "" {
		return
	}
	if len(selector) > longestSelector {
		s.Invalid = fmt.Sprintf("annotation %s has %d bytes: at most %d, write fewer requirements", v1alpha1.AnnotationSelect,
			len(selector), longestSelector)
		return
	}
	parsed, err := labels.Parse(selector, field.WithPath(field.NewPath(v1alpha1.AnnotationSelect)))
	if err != nil {
		s.Invalid = "annotation " + v1alpha1.AnnotationSelect + " is no label selector: " + err.Error()
		return
	}
	s.Selector = newSelector(parsed)
}

// selector matches labels in a time that depends on how many labels there are, and on how many requirements have their
// keys. The number of other requirements hardly matters. That is necessary because the longest selector has hundreds of
// requirements, and each plan of each namespace below matches them anew.
type selector struct {
	labels.Selector
	byKey  []labels.Requirement // all
	needed []labels.Requirement // those that no namespace meets without a label of that key
}

func newSelector(parsed labels.Selector) selector {
	all, _ := parsed.Requirements()
	s := selector{Selector: parsed, byKey: slices.Clone(all)}
	slices.SortStableFunc(s.byKey, func(a, b labels.Requirement) int { return cmp.Compare(a.Key(), b.Key()) })
	for _, r := range s.byKey {
		switch r.Operator() {
		case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
		default:
			s.needed = append(s.needed, r)
		}
	}
	return s
}

// Matches implements labels.Selector.
func (s selector) Matches(l labels.Labels) bool {
	set, isSet := l.(labels.Set)
	if !isSet {
		return s.Selector.Matches(l)
	}
	// First the requirements that a missing key fails; then only keys that the namespace has can fail one.
	for _, r := range s.needed {
		if !r.Matches(set) {
			return false
		}
	}
	for key := range set {
		at, _ := slices.BinarySearchFunc(s.byKey, key, func(r labels.Requirement, key string) int { return cmp.Compare(r.Key(), key) })
		for ; at < len(s.byKey) && s.byKey[at].Key() == key; at++ {
			if !s.byKey[at].Matches(set) {
				return false
			}
		}
	}
	return true
}
