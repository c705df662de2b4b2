package migrate

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Warren's operator does more than what the steps write: it makes copies, and sets inherited labels and annotations.
// The plan lists what this changes, so that the user sees every new right and rule before.

// NewCopies are copies of one source that the operator will make and the other operator has not made.
type NewCopies struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	From       string   `json:"from"`
	Namespaces []string `json:"namespaces"`
}

// KeyChange is a label, or an annotation (its key after @), whose value on namespaces changes by inheritance in
// Warren's trees.
type KeyChange struct {
	Key string `json:"key"`
	// Was is the value before, nil for none; Becomes the value after, nil if the key is removed.
	Was        *string  `json:"was"`
	Becomes    *string  `json:"becomes"`
	Namespaces []string `json:"namespaces"`
}

// findNewCopies returns the copies that the world after the migration asks for, and for which there is no object yet.
func (p *planner) findNewCopies(world *copies.World,
	objects map[copies.Slot]*metav1.PartialObjectMetadata) (found []NewCopies) {
	found = []NewCopies{}
	for _, from := range sortedSlots(objects) {
		_, copied := p.Copies[from]
		if copied || world.Sources.At(from) == nil || isHelmRelease(objects[from]) {
			continue
		}
		n := NewCopies{Kind: from.Kind.Kind, Name: from.Name, From: from.Namespace}
		for below := range p.after.Below(from.Namespace) {
			if slot := from.At(below); objects[slot] == nil {
				if action := world.Plan(slot); action.Verb == copies.Create && action.Source == from {
					n.Namespaces = append(n.Namespaces, below)
				}
			}
		}
		if len(n.Namespaces) > 0 {
			slices.Sort(n.Namespaces)
			found = append(found, n)
		}
	}
	return found
}

// findKeyChanges returns the labels and annotations that inheritance changes on the namespaces that join.
func (o *outlook) findKeyChanges() []KeyChange {
	byChange := map[string]*KeyChange{}
	note := func(namespace, mark string, now map[string]string, changes map[string]*string) {
		for key, becomes := range changes {
			if v1alpha1.IsReservedKey(key) || strings.HasSuffix(key, v1alpha1.TreeLabelSuffix) {
				continue
			}
			change := KeyChange{Key: mark + key, Becomes: becomes}
			if was, there := now[key]; there {
				change.Was = &was
			}
			id := strings.Join([]string{change.Key, valueOrNone(change.Was), valueOrNone(becomes)}, "\x00")
			if byChange[id] == nil {
				byChange[id] = &change
			}
			byChange[id].Namespaces = append(byChange[id].Namespaces, namespace)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.joining)) {
		now, change := o.end.Namespace(name), forest.DesiredChange(o.end, name)
		note(name, "", now.Labels, change.Labels)
		note(name, "@", now.Annotations, change.Annotations)
	}
	changes := []KeyChange{}
	for _, id := range slices.Sorted(maps.Keys(byChange)) {
		changes = append(changes, *byChange[id])
	}
	return changes
}

func valueOrNone(value *string) string {
	if value == nil {
		return "(none)"
	}
	return *value
}
