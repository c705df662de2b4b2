package hierarchy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// finding is one condition of a HierarchyConfiguration before it is written.
type finding struct {
	kind    v1alpha1.ConditionType
	status  metav1.ConditionStatus
	reason  v1alpha1.Reason
	message string
}

// isWrong reports whether the finding reports something wrong, in this namespace or below it. bad reports the same,
// except for a conflict below, which leaves the namespace ready.
func (f finding) isWrong() bool { return isWrongStatus(f.kind, f.status) }

// ofNamespace reports whether the finding reports something wrong, for another reason than NotObserved. That reason may
// concern the whole cluster: Copies.MayNotObserve decides whether it concerns this namespace.
func (f finding) ofNamespace() bool { return f.isWrong() && f.reason != v1alpha1.ReasonNotObserved }

func (f finding) isBad() bool {
	return f.isWrong() && f.reason != v1alpha1.ReasonDescendantConflict
}

func goodFinding(kind v1alpha1.ConditionType, reason v1alpha1.Reason, message string) finding {
	return finding{kind, metav1.ConditionTrue, reason, message}
}

func badFinding(kind v1alpha1.ConditionType, reason v1alpha1.Reason, message string) finding {
	return finding{kind, metav1.ConditionFalse, reason, message}
}

// listFindings returns the conditions of the namespace called name, in the order in which they decide Ready. rejected
// is the API server's message if it refused the namespace's keys, refused its message if it refused required children;
// else "".
func listFindings(s *forest.Snapshot, name, rejected, refused string) []finding {
	return []finding{haltedCondition(s, name), parentApplied(s, name, rejected), metadataSynced(s, name, rejected),
		childrenReady(s, name, refused)}
}

func haltedCondition(s *forest.Snapshot, name string) finding {
	if halt := s.Place(name).Halt; halt.Reason != "" {
		return finding{v1alpha1.ConditionHalted, metav1.ConditionTrue, halt.Reason, halt.Message}
	}
	return finding{v1alpha1.ConditionHalted, metav1.ConditionFalse, v1alpha1.ReasonActive,
		"nothing above this namespace is missing, so it is not halted"}
}

func parentApplied(s *forest.Snapshot, name, rejected string) finding {
	const kind = v1alpha1.ConditionParentApplied
	request, h := forest.RequestOf(s, name), s.Hierarchy(name)
	asked, overruled := forest.OverruledParent(s, name)
	switch {
	case len(request.Obstacles) > 0:
		return badFinding(kind, request.Obstacles[0].Reason, joinSentences(request.Obstacles))
	case request.Asked && rejected != "":
		return finding{kind, metav1.ConditionUnknown, v1alpha1.ReasonPending, missingParent(s, request.Parent) + "the API server refuses to " +
			"place the namespace: " + rejected + describeExclusion(s, name, request.Parent)}
	case request.Asked && request.Parent == "":
		return finding{kind, metav1.ConditionUnknown, v1alpha1.ReasonPending,
			"the namespace is about to become a root, because spec.parent names no parent"}
	case request.Asked:
		return finding{kind, metav1.ConditionUnknown, v1alpha1.ReasonPending,
			"the namespace is about to be placed below the parent that spec.parent names"}
	case forest.IsReleased(s, name) && h != nil && h.Parent != nil && *h.Parent != "":
		return badFinding(kind, v1alpha1.ReasonNamespaceReleased,
			fmt.Sprintf("namespace %s has left the tree that spec.parent %q asked for: the lists of the tenant no longer name any subject that "+
				"administered the namespace when it was placed. To place it again, delete and recreate this object as a user who may place "+
				"the namespace", name, *h.Parent))
	case overruled:
		n := s.Namespace(name)
		return badFinding(kind, v1alpha1.ReasonLabelChanged,
			fmt.Sprintf("%s was moved from %q to %q by its label; %sdelete this object", name, asked, n.Parent(), toKeepPlace(n)))
	case h == nil || h.Parent == nil:
		return goodFinding(kind, v1alpha1.ReasonNotRequested, "spec.parent is not set; the namespace stays where it is")
	}
	return goodFinding(kind, v1alpha1.ReasonApplied, "the namespace has the parent that spec.parent names, or none if spec.parent is \"\"")
}

// toKeepPlace returns the clause about the change of spec.parent that leaves n where it is; "" if each change would
// move it.
func toKeepPlace(n *forest.Namespace) string {
	switch n.KindByLabels() {
	case forest.SubNamespace, forest.Root:
		return fmt.Sprintf("set spec.parent to %q, or ", n.Parent())
	case forest.None:
		return "clear spec.parent, or "
	}
	return ""
}

// missingParent returns the clause that the parent does not exist; "" if it exists or none is asked for. Without the
// parent, the mark that the API server's refusal asks for doesn't help.
func missingParent(s *forest.Snapshot, parent string) string {
	if parent == "" || s.Namespace(parent) != nil {
		return ""
	}
	return "parent namespace " + parent + " does not exist: correct spec.parent, or create the parent; "
}

// describeExclusion returns the clause about another namespace whose request can't be carried out together with the
// request for parent; "" if there is none.
func describeExclusion(s *forest.Snapshot, name, parent string) string {
	other := forest.ExcludedBy(s, name, parent)
	if other == "" {
		return ""
	}
	return "; " + forest.Exclusion(other, name)
}

func metadataSynced(s *forest.Snapshot, name, rejected string) finding {
	const kind = v1alpha1.ConditionMetadataSynced
	refused := forest.RefusedKeys(s, name)
	switch {
	case s.Place(name).Halted():
		return finding{kind, metav1.ConditionUnknown, v1alpha1.ReasonHalted,
			"nothing is written to the namespace while it is halted: see condition Halted"}
	case rejected != "":
		return badFinding(kind, v1alpha1.ReasonMetadataRejected, rejected)
	case forest.LacksSub(s, name):
		return badFinding(kind, v1alpha1.ReasonSubNamespaceMissing, "the namespace is "+forest.MissingSub(s.Namespace(name).Parent(), name))
	case forest.TemplateProblem(s, name) != "":
		return badFinding(kind, v1alpha1.ReasonTemplateMissing, forest.TemplateProblem(s, name)+"; what was inherited from the template stays")
	case len(refused) > 0:
		return badFinding(kind, v1alpha1.ReasonKeyNotAllowed, forest.NotTransferred+forest.Few(refused))
	}
	return goodFinding(kind, v1alpha1.ReasonSynced,
		"the namespace carries the labels and annotations that its ancestors and its template give it")
}

func childrenReady(s *forest.Snapshot, name, refused string) finding {
	const kind = v1alpha1.ConditionChildrenReady
	h := s.Hierarchy(name)
	if h == nil || len(h.Required) == 0 {
		return goodFinding(kind, v1alpha1.ReasonNoneRequired, "spec.requiredChildren is empty")
	}
	if !s.Place(name).InTree() {
		return badFinding(kind, v1alpha1.ReasonNotInForest, name+" is in no tree, or is halted, so its required children can't be created")
	}
	obstacles := forest.UnmetChildren(s, name)
	for _, reason := range []v1alpha1.Reason{v1alpha1.ReasonChildConflict, v1alpha1.ReasonLimitExceeded, v1alpha1.ReasonChildPending} {
		these := slices.DeleteFunc(slices.Clone(obstacles), func(o forest.Obstacle) bool { return o.Reason != reason })
		switch {
		case len(these) > 0 && reason == v1alpha1.ReasonChildPending && refused != "":
			return badFinding(kind, reason, refused)
		case len(these) > 0:
			return badFinding(kind, reason, joinSentences(these))
		}
	}
	return goodFinding(kind, v1alpha1.ReasonAllPresent, "every required child exists")
}

// joinSentences joins the sentences of obstacles, five at most.
func joinSentences(obstacles []forest.Obstacle) string {
	var texts []string
	for _, o := range obstacles {
		texts = append(texts, o.Message)
	}
	return forest.First(texts, forest.Named, "; ")
}

// readyCondition returns condition Ready. It is False with the first of the other conditions that is bad or unknown,
// and True if there is none.
func readyCondition(s *forest.Snapshot, name string, all []finding) finding {
	for _, f := range all {
		if f.isBad() || f.status == metav1.ConditionUnknown {
			return badFinding(v1alpha1.ConditionReady, f.reason, f.message)
		}
	}
	if s.Place(name).Kind == forest.None {
		return goodFinding(v1alpha1.ConditionReady, v1alpha1.ReasonNotInForest, name+" is in no tree")
	}
	return goodFinding(v1alpha1.ConditionReady, v1alpha1.ReasonSettled, name+" has everything that its ancestors and this object ask for")
}
