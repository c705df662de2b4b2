package copies

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Step is one write that Plan leads to or, with a Reason in Held, a write that is wanted and can't be made.
type Step struct {
	Slot Slot
	Verb Verb
	// From is the namespace of the source.
	From string
	// Why describes what makes the write necessary.
	Why string
	// Held is why nothing is written all the same: Conflict, LimitExceeded; or "".
	Held v1alpha1.Reason
}

// Preview returns every write that would bring the copies to what they should be, in the order of namespaces. It
// assumes that all sources were read, that all copies were compared with them, and that an object that is not in the
// world doesn't exist. A copy that is deleted and made anew gives two steps. Preview changes the World, which is of no
// further use afterwards.
func (w *World) Preview() []Step {
	namespaces := map[string]bool{}
	for name := range w.Forest.All() {
		namespaces[name] = true
	}
	for name := range w.Copies.rooms {
		namespaces[name] = true
	}
	decideLosses(w)
	var steps []Step
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		slots := w.SlotsIn(namespace)
		// Deletions come first, as in a namespace that has moved.
		for _, slot := range slots {
			if a := w.Plan(slot); a.Verb == Delete {
				steps = append(steps, Step{Slot: slot, Verb: Delete, From: a.Source.Namespace, Why: whyDeleted(w, slot, a.Source)})
				w.DeleteCopy(slot)
			}
		}
		for _, slot := range slots {
			switch a := w.Plan(slot); {
			case a.Reason == v1alpha1.ReasonConflict:
				steps = append(steps, Step{Slot: slot, From: a.Source.Namespace, Why: "an object of that name exists, but is no copy of this source",
					Held: a.Reason})
			case a.Reason == v1alpha1.ReasonLimitExceeded:
				steps = append(steps, Step{Slot: slot, From: a.Source.Namespace, Why: "the limits of the tree leave no room for it", Held: a.Reason})
			case a.Verb == Create, a.Verb == Update, a.Verb == Withdraw:
				steps = append(steps, Step{Slot: slot, Verb: a.Verb, From: a.Source.Namespace, Why: whyWritten(w, slot, a)})
			}
		}
	}
	return steps
}

// decideLosses sets the Loss of each missing source. Preview assumes that everything is known, so a missing source is
// gone.
func decideLosses(w *World) {
	for key := range w.Copies.bySource {
		loss := Confirmed
		if n := w.Forest.Namespace(key.namespace); n == nil || n.Terminating {
			loss = GoneWithNamespace
		}
		w.SetLoss(key.slot(), loss)
	}
}

func whyDeleted(w *World, slot, from Slot) string {
	if w.kinds[slot.Kind].mode == Remove {
		return fmt.Sprintf("propagation.kinds has %s in mode Remove", slot.Kind)
	}
	if sources, ok := w.Forest.Sources(slot.Namespace); ok && !sources.Has(from.Namespace) {
		return "namespace " + from.Namespace + " is no longer above this one"
	}
	switch s := w.Sources.At(from); {
	case s == nil:
		return "its source is gone, or no source any more"
	case s.Excluded != "":
		return "its source is never propagated: " + s.Excluded
	case s.Mode == v1alpha1.ModeNone:
		return "the label propagate of its source is none"
	}
	return "its source doesn't select this namespace"
}

func whyWritten(w *World, slot Slot, a Action) string {
	c := w.Copies.At(slot)
	switch {
	case c == nil:
		return "it is not there yet"
	case a.Verb == Withdraw:
		return "it gives access that its source no longer gives"
	case c.From != a.Source.Namespace:
		return "the source that applies here is now in " + a.Source.Namespace + ", no longer in " + c.From
	case c.Hash.Mode != a.Hash.Mode:
		return "the mode of its source is now " + a.Hash.Mode + ", no longer " + c.Hash.Mode
	case c.Hash.Content != a.Hash.Content:
		return "its source has changed, or propagation.excludedLabels or propagation.excludedAnnotations now exclude other keys, " +
			"or its kind is now read in another version"
	}
	return "it differs from its source: another client changed it"
}

// UnlabelledFrom is for a copy of ours that has lost its label inherited-from. It returns the namespace of the copy's
// source, which it looks for among the namespaces above in the forest f. It returns "" for any other object.
func UnlabelledFrom(f *forest.Snapshot, slot Slot, meta metav1.Object) string {
	return UnlabelledHash(meta).FindSource(f, slot)
}

// UnlabelledHash returns the hash of an object that has lost its label inherited-from. It returns the zero Hash for an
// object that has the label, and for one that has no hash.
func UnlabelledHash(meta metav1.Object) Hash {
	if _, labelled := meta.GetLabels()[v1alpha1.LabelInheritedFrom]; labelled {
		return Hash{}
	}
	return ParseHash(meta.GetAnnotations()[v1alpha1.AnnotationSourceHash])
}

// FindSource returns the namespace of the source of the copy at slot. It looks among the namespaces above in the forest
// f, and returns "" if it is none of them.
func (h Hash) FindSource(f *forest.Snapshot, slot Slot) string {
	if h.Place == "" {
		return ""
	}
	sources, _ := f.Sources(slot.Namespace)
	for _, from := range sources.Names {
		if h.Place == PlaceOf(slot, from) {
			return from
		}
	}
	return ""
}

// Differs reports whether a copy was changed; found is the body that was rendered from the copy itself. foreign reports
// that another manager owns a field that matters. If foreign is false, mutating admission has added what the copy has
// beyond its source, and would add it again: that is no change.
func (b *Body) Differs(found *Body, foreign bool) bool {
	return found.Content != b.Content && (foreign || !b.Within(found))
}
