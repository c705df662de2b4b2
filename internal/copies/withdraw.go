package copies

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// planWithdrawal plans for a slot in a namespace where nothing may be granted, such as a halted or protected one. But
// an access copy there loses the access that its source no longer grants: otherwise users could keep their rights in a
// namespace by having it halted.
func (p *planner) planWithdrawal() Action {
	w, c := p.world, p.copied
	n := w.Forest.Namespace(p.slot.Namespace)
	if n == nil || n.Terminating || c == nil || !c.isBinding() || !c.flags.has(accessCopy) || !w.Sights.seesFacts(p.slot, w.Forest, c.from) {
		return Action{}
	}
	from := p.slot.At(c.from)
	s := w.Sources.At(from)
	// Elsewhere such copies stay; here rights end together with the namespace that granted them (PROP-H2).
	if s == nil && w.Loss(from) == GoneWithNamespace {
		return Action{Verb: Delete, Source: from}
	}
	if s == nil || s.Mode == v1alpha1.ModeNone && s.Invalid == "" {
		return p.planRemoval(from)
	}
	// A source that was not read yet can't be compared; its read queues this slot.
	if s.Content == "" || s.Content == c.content || s.Content == w.Copies.compared[p.slot] {
		return Action{}
	}
	return Action{Verb: Withdraw, Source: from, Hash: Hash{s.Mode, PlaceOf(p.slot, from.Namespace), s.Content}}
}

// Withdrawal is what is to be done with an access copy so that it grants nothing that its source doesn't grant.
type Withdrawal struct {
	// Remove reports that the copy is to be deleted, because none of the access that it grants may stay.
	Remove bool
	// Body is the request body of a PUT, guarded by the UID and resourceVersion of the copy as it was read; nil if the
	// copy may stay as it is.
	Body []byte
}

// Withdraw compares an access copy, as the API server returned it, with the body of its source. Subjects that both name
// stay. A copy of which no subject stays is to be removed, and so is one for another role, or of another LNamespace,
// than the source. object is changed.
func (b *Body) Withdraw(slot Slot, object map[string]any) (Withdrawal, error) {
	meta, err := metadataOf(object)
	if err != nil {
		return Withdrawal{}, fmt.Errorf("reading the metadata of %s: %w", slot, err)
	}
	source := map[string]any{}
	if err := json.Unmarshal(b.rest, &source); err != nil {
		return Withdrawal{}, fmt.Errorf("reading the source of %s: %w", slot, err)
	}
	uid := b.annotations[v1alpha1.AnnotationLNamespaceUID]
	if meta.Annotations[v1alpha1.AnnotationLNamespaceUID] != uid || !reflect.DeepEqual(object["roleRef"], source["roleRef"]) {
		return Withdrawal{Remove: true}, nil
	}
	given, _ := source["subjects"].([]any)
	subjects, _ := object["subjects"].([]any)
	kept := slices.DeleteFunc(slices.Clone(subjects), func(subject any) bool {
		return !slices.ContainsFunc(given, func(other any) bool { return reflect.DeepEqual(subject, other) })
	})
	switch len(kept) {
	case 0:
		return Withdrawal{Remove: true}, nil
	case len(subjects):
		return Withdrawal{}, nil
	}
	object["subjects"] = kept
	text, err := json.Marshal(kept)
	if err != nil {
		return Withdrawal{}, fmt.Errorf("writing %s: %w", slot, err)
	}
	// This content hash is that of no source, so that the copy is written anew when the namespace has a path to a root
	// again.
	hash := ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	hash.Content = contentOf(append([]byte("withdrawn"), text...))
	metadata := findNested(object, "metadata")
	delete(metadata, "managedFields")
	findNested(metadata, "annotations")[v1alpha1.AnnotationSourceHash] = hash.String()
	body, err := json.Marshal(object)
	if err != nil {
		return Withdrawal{}, fmt.Errorf("writing %s: %w", slot, err)
	}
	return Withdrawal{Body: body}, nil
}
