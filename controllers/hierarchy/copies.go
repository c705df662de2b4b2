package hierarchy

import (
	"fmt"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Copies answers what is wrong with copies of propagated objects. controllers/copies implements it.
type Copies interface {
	// Known reports whether this replica, since it leads, has looked at everything that concerns a namespace. Before
	// that, Troubles may lack some.
	Known(namespace string) bool
	// UnobservedIn returns one sentence for each kind whose copies in a namespace the operator can't observe now.
	UnobservedIn(namespace string) []string
	// MayNotObserve reports whether UnobservedIn has a reason that concerns this tree and lasts until a cluster admin
	// acts: a missing right, or no room for more watches.
	MayNotObserve(namespace string) bool
	// Troubles returns, in alphabetical order, what keeps copies in these namespaces from being what they should be.
	Troubles(namespaces iter.Seq[string]) []copies.Trouble
}

// mostCopies is how many copies a message names at most.
const mostCopies = 10

// findPropagated returns condition Propagated: whether the copies in the namespace called name are what they should be.
// Of the copies in namespaces below it, only conflicts count; for a template, only conflicts of its own sources.
func findPropagated(s *forest.Snapshot, name string, known Copies) finding {
	const kind = v1alpha1.ConditionPropagated
	// First: the reasons below are known only where the operator sees all copies and sources.
	if texts := known.UnobservedIn(name); len(texts) > 0 && s.Place(name).Kind != forest.None {
		return badFinding(kind, v1alpha1.ReasonNotObserved, forest.First(texts, mostCopies, "; "))
	}
	own := known.Troubles(slices.Values([]string{name}))
	for _, reason := range []v1alpha1.Reason{v1alpha1.ReasonConflict, v1alpha1.ReasonRejected, v1alpha1.ReasonWaitingForRemoval,
		v1alpha1.ReasonLimitExceeded,
		v1alpha1.ReasonInvalidSource} {
		if texts := textsOf(own, reason, describeTrouble); len(texts) > 0 {
			return badFinding(kind, reason, forest.First(texts, mostCopies, "; "))
		}
	}
	below := known.Troubles(s.Below(name))
	text := locateTrouble
	if s.KindOf(s.Namespace(name)) == forest.Template { // a template is no ancestor: only its own sources matter to it
		below = slices.DeleteFunc(below, func(t copies.Trouble) bool { return t.From != name })
		text = nameSource // readers of the template may have no right to know these trees
	}
	if texts := slices.Compact(slices.Sorted(slices.Values(textsOf(below, v1alpha1.ReasonConflict, text)))); len(texts) > 0 {
		return badFinding(kind, v1alpha1.ReasonDescendantConflict, forest.First(texts, mostCopies, "; "))
	}
	if request := forest.RequestOf(s, name); request.Asked {
		return finding{kind, metav1.ConditionUnknown, v1alpha1.ReasonPending,
			"spec.parent is not carried out, so the copies are still those of the present place: see condition ParentApplied"}
	}
	return goodFinding(kind, v1alpha1.ReasonInSync,
		"no problem is reported for the sources and copies in this namespace, and no conflict for the copies below")
}

// textsOf returns the texts of the troubles that have that reason.
func textsOf(troubles []copies.Trouble, reason v1alpha1.Reason, text func(copies.Trouble) string) []string {
	var texts []string
	for _, t := range troubles {
		if t.Reason == reason {
			texts = append(texts, text(t))
		}
	}
	return texts
}

func describeTrouble(t copies.Trouble) string {
	return fmt.Sprintf("%s %q from %q: %s", t.Slot.Kind.Kind, t.Slot.Name, t.From, t.Text)
}

func locateTrouble(t copies.Trouble) string {
	return fmt.Sprintf("%s: %s %q", t.Slot.Namespace, t.Slot.Kind.Kind, t.Slot.Name)
}

// nameSource names a copy that another object prevents, but not the namespace of that copy.
func nameSource(t copies.Trouble) string {
	return fmt.Sprintf("%s %q can't be copied into a namespace that this template reaches: an object of that name is there",
		t.Slot.Kind.Kind, t.Slot.Name)
}
