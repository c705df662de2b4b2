package lnamespace

import (
	"fmt"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Copies answers what is wrong with copies of propagated objects. controllers/copies implements it.
type Copies interface {
	// Known reports whether this replica, since it leads, has looked at everything that concerns a namespace. Before
	// that, Troubles may lack some.
	Known(namespace string) bool
	// Troubles returns, in alphabetical order, what keeps copies in these namespaces from being what they should be.
	Troubles(namespaces iter.Seq[string]) []copies.Trouble
}

// templateTrouble is what a root lacks of its template, and what to do; empty if it lacks nothing, or has no template.
type templateTrouble struct {
	reason  v1alpha1.Reason
	message string
}

// mostCopies is how many copies a message names at most.
const mostCopies = 10

// findTemplateTrouble returns what the root lacks of its template. Until the copies are known after a start, what was
// reported before (was, which may be nil) stays.
func findTemplateTrouble(s *forest.Snapshot, root string, known Copies, was *metav1.Condition) templateTrouble {
	if problem := forest.TemplateProblem(s, root); problem != "" {
		return templateTrouble{v1alpha1.ReasonTemplateMissing, problem + ": nothing new is inherited from templates, and what was inherited " +
			"stays; a cluster admin corrects spec.template, or the template"}
	}
	switch {
	case known == nil:
		return templateTrouble{}
	case !known.Known(root):
		if was != nil && was.Reason != string(v1alpha1.ReasonTemplateMissing) {
			return templateTrouble{v1alpha1.Reason(was.Reason), was.Message}
		}
		return templateTrouble{}
	}
	troubles := known.Troubles(slices.Values([]string{root}))
	for _, reason := range []v1alpha1.Reason{v1alpha1.ReasonConflict, v1alpha1.ReasonRejected} {
		var texts []string
		for _, t := range troubles {
			// A root has no ancestors: what is copied into it comes from templates. Its own sources may be invalid, but
			// they are no copies.
			if t.Reason == reason && t.From != root {
				texts = append(texts, fmt.Sprintf("%s %q of template %s: %s", t.Slot.Kind.Kind, t.Slot.Name, t.From, t.Text))
			}
		}
		if len(texts) > 0 {
			return templateTrouble{reason, forest.First(texts, mostCopies, "; ")}
		}
	}
	return templateTrouble{}
}

// Again reports on the LNamespaces of these namespaces again, because of their copies.
func (r *Reconciler) Again(namespaces ...string) {
	for _, name := range namespaces {
		if r.View.Snapshot().Tenant(name) != nil {
			r.again.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
}
