// Package authority says who may change the shape of a tree: it turns a request to move a namespace into what is
// unlawful for everybody, and into the questions that the authorizer must all answer with yes.
package authority

import (
	"fmt"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// Right is what a question asks for.
type Right string

// The rights.
const (
	// Administer is authority over a namespace: update of its HierarchyConfiguration, or, where it has none, create.
	Administer Right = "Administer"
	// CreateHierarchy is create of HierarchyConfigurations in a namespace that need not exist.
	CreateHierarchy Right = "CreateHierarchy"
	// ChangeTenant is update of the LNamespace that is called Namespace, which its managers and sudoers hold; or UpdateNamespaces.
	ChangeTenant Right = "ChangeTenant"
	// DoEverything is every verb on every resource of a namespace; or UpdateNamespaces.
	DoEverything Right = "DoEverything"
	// CreateSubNamespaces is create of SubNamespaces in a namespace.
	CreateSubNamespaces Right = "CreateSubNamespaces"
	// UpdateNamespaces and CreateNamespaces are held cluster-wide.
	UpdateNamespaces Right = "UpdateNamespaces"
	CreateNamespaces Right = "CreateNamespaces"
)

// Question is one thing that the authorizer must say yes to.
type Question struct {
	Right Right
	// Namespace is empty for what is held cluster-wide.
	Namespace string
	// Role says why it is asked: "proposed parent".
	Role string
	// Instead is the answer to a no, where it is not a lack of rights that stands in the way but the state of the tree.
	Instead string
}

// Needs is what a no lacks, in words. A namespace that the user doesn't see is not named.
func (q Question) Needs(sees func(namespace string) bool) string {
	role := ""
	if q.Role != "" {
		role = " (" + q.Role + ")"
	}
	if q.Namespace != "" && !sees(q.Namespace) {
		return q.needsUnseen(role)
	}
	switch q.Right {
	case UpdateNamespaces:
		return "needs update on namespaces cluster-wide" + role
	case CreateNamespaces:
		return "needs create on namespaces cluster-wide" + role
	case ChangeTenant:
		return fmt.Sprintf("needs update on LNamespace %q%s", q.Namespace, role)
	case DoEverything:
		return fmt.Sprintf("needs every right in namespace %q%s, or a cluster admin's mark: annotation %s with the UID of the LNamespace that it may join",
			q.Namespace, role, v1alpha1.AnnotationAdopt)
	case CreateSubNamespaces:
		return fmt.Sprintf("needs create on subnamespaces in namespace %q%s", q.Namespace, role)
	default: // it tells nobody whether the namespace, or its HierarchyConfiguration, exists
		return fmt.Sprintf("needs update on hierarchyconfigurations in namespace %q%s", q.Namespace, role)
	}
}

// needsUnseen is what a no lacks in a namespace that is not named.
func (q Question) needsUnseen(role string) string {
	const where = " in a namespace that you may not see"
	switch q.Right {
	case ChangeTenant:
		return "needs update on the LNamespace of the tenant that the namespace leaves; ask one of its managers"
	case DoEverything:
		return "needs every right" + where + role
	case CreateSubNamespaces:
		return "needs create on subnamespaces" + where + role
	}
	return "needs update on hierarchyconfigurations" + where + role + "; ask a cluster admin who may allow it"
}

// Roles that a namespace has in a move.
const (
	roleParent = "proposed parent"
	roleRoot   = "root of the current tree"
	roleCommon = "most recent common ancestor"
	roleMember = "member of the cycle"
	roleJoins  = "it joins another tree"
)

// Change is a change of a HierarchyConfiguration's spec.parent: a name, "" for a root, nil for no request.
type Change struct {
	Namespace string
	Old, New  *string
}

// Verdict is what a change comes to.
type Verdict struct {
	// Problems are unlawful for everybody, each a sentence. Where there is one, nothing is asked.
	Problems []string
	// Questions are in the order in which a no decides: the old side first.
	Questions []Question
	// BeforeProblems are the questions that must be answered with yes before the problems are told to who may not see the target.
	BeforeProblems []Question
	// Unknown names a namespace that the forest must learn of before anything can be said, or is "".
	Unknown string
	// Warnings are sentences for the user.
	Warnings []string
	// Moves says whether the namespace would get another place.
	Moves bool
}

// Judge judges a change as a move from where the label says the namespace stands, whatever the old request was. exists
// says whether a namespace that the forest lacks exists after all.
func Judge(s *forest.Snapshot, c Change, exists func(name string) bool) Verdict {
	if equal(c.Old, c.New) {
		return Verdict{}
	}
	m, ok := newMove(s, c)
	if !ok {
		return Verdict{}
	}
	v := Verdict{Problems: m.problems(), Moves: true}
	if len(v.Problems) > 0 {
		v.BeforeProblems = unique(m.questions())
		return v
	}
	if v.Unknown = m.unknown(exists); v.Unknown != "" {
		return v
	}
	v.Questions = unique(m.questions())
	v.Warnings = m.warnings()
	return v
}
