// Package authority turns a change of a tree (a move, inherited keys, required children) into problems and questions. A
// problem forbids the change to every user. A question is about the user's rights, and internal/authorizer puts it to
// the API server. The change is allowed only if there is no problem and every question is answered with yes.
//
// "cl" stands for the right to update namespaces cluster-wide, which makes its holder a cluster admin for everything
// here.
//
// The aim: no administrator of a namespace takes rights from the administrators of namespaces above it, or secrets from
// namespaces beside it. Authority over both parents would not be sufficient for a move between trees. Any user of two
// tenants could then move a namespace from one to the other, and any admin of a namespace could become cluster-admin in
// it, as a sudoer of the new tenant. So who leaves a tenant needs the right to change that tenant, or cl where no
// tenant would get the limits and the bill. Who joins a tree needs every right in the namespace, or a cluster admin's
// mark. To require children needs the right to create SubNamespaces. Otherwise the right to update a
// HierarchyConfiguration would imply it.
//
// Deleting a HierarchyConfiguration needs no authority, because it moves nothing. So no webhook is called for it: an
// outage of the webhook would block the deletion of namespaces. If adm(n) asks for create, the review has no name: with
// a name it would allow Roles with resourceNames, which the API server refuses afterwards.
package authority

import (
	"fmt"

	"github.com/warren-tenancy/warren/internal/forest"
)

// Right is the right that a question asks for.
type Right string

// The rights.
const (
	// Administer is authority over a namespace: the right to update its HierarchyConfiguration, or, where it has none,
	// to create one.
	Administer Right = "Administer"
	// CreateHierarchy is the right to create HierarchyConfigurations in a namespace that need not exist.
	CreateHierarchy Right = "CreateHierarchy"
	// ChangeTenant is the right to update the LNamespace that Question.Namespace names. Its managers have it, and its
	// sudoers while they use sudo. UpdateNamespaces includes it.
	ChangeTenant Right = "ChangeTenant"
	// DoEverything is the right to every verb on every resource of a namespace. UpdateNamespaces includes it.
	DoEverything Right = "DoEverything"
	// CreateSubNamespaces is the right to create SubNamespaces in a namespace.
	CreateSubNamespaces Right = "CreateSubNamespaces"
	// UpdateNamespaces and CreateNamespaces are the rights to update and to create namespaces cluster-wide.
	UpdateNamespaces Right = "UpdateNamespaces"
	CreateNamespaces Right = "CreateNamespaces"
)

// Question is one question to the authorizer, which must answer it with yes.
type Question struct {
	Right Right
	// Namespace is empty for a cluster-wide right.
	Namespace string
	// Parent is set where Right is DoEverything: the namespace below which Namespace is to be placed.
	Parent string
	// Role states why the right is needed, such as "proposed parent".
	Role string
	// Instead, unless it is empty, is shown in place of the message about the missing right. It names what is wrong
	// with the tree: until that is resolved, only a user with cl may make the move.
	Instead string
}

// Needs describes the right that the user lacks if the answer is no. A namespace that the user doesn't see is not
// named.
func (q Question) Needs(sees func(namespace string) bool) string {
	role := ""
	if q.Role != "" {
		role = " (" + q.Role + ")"
	}
	if q.Namespace != "" && !sees(q.Namespace) {
		return q.describeUnseenNeed(role)
	}
	switch q.Right {
	case UpdateNamespaces:
		return "needs update on namespaces cluster-wide" + role
	case CreateNamespaces:
		return "needs create on namespaces cluster-wide" + role
	case ChangeTenant:
		return fmt.Sprintf("needs update on LNamespace %q%s", q.Namespace, role)
	case DoEverything:
		return fmt.Sprintf("needs every right in namespace %q%s, or a cluster admin's mark: kubectl warren mark %s %s", q.Namespace, role,
			q.Namespace, q.Parent)
	case CreateSubNamespaces:
		return fmt.Sprintf("needs create on subnamespaces in namespace %q%s", q.Namespace, role)
	default: // the text is the same whether the namespace, or its HierarchyConfiguration, exists or not
		return fmt.Sprintf("needs update on hierarchyconfigurations in namespace %q%s", q.Namespace, role)
	}
}

// describeUnseenNeed describes the right that the user lacks in a namespace that must not be named.
func (q Question) describeUnseenNeed(role string) string {
	const where = " in a namespace that you may not see"
	switch q.Right {
	case ChangeTenant:
		return "needs update on the LNamespace of the tenant that the namespace leaves; ask one of its managers"
	case DoEverything:
		return "needs every right" + where + role
	case CreateSubNamespaces:
		return "needs create on subnamespaces" + where + role
	}
	return "needs update on hierarchyconfigurations" + where + role + "; a cluster admin can tell you whom to ask"
}

// Roles that a namespace can have in a move.
const (
	roleParent = "proposed parent"
	roleRoot   = "root of the current tree"
	roleCommon = "most recent common ancestor"
	roleMember = "member of the cycle"
	roleJoins  = "it joins another tree"
)

// Change is a change of a HierarchyConfiguration's spec.parent. Old and New are a name, "" for a root, or nil if the
// field is absent.
type Change struct {
	Namespace string
	Old, New  *string
}

// Verdict is the judgement on a Change, before the authorizer is asked.
type Verdict struct {
	// Problems are sentences that explain why nobody may make the change. Where there is one, Questions is empty.
	Problems []string
	// Questions are in the order in which a missing right is reported: those about the old parent first.
	Questions []Question
	// BeforeProblems are the questions that must all be answered with yes before Problems are shown to a user who may
	// not see the new parent.
	BeforeProblems []Question
	// Unknown names a namespace that exists and that the forest must learn of before the change can be judged, or is
	// "".
	Unknown string
	// Warnings are sentences for the user.
	Warnings []string
	// Moves reports whether the change would give the namespace another place.
	Moves bool
}

// Judge checks a change as a move from the place that the namespace's label parent gives it, whatever c.Old is. If
// c.Old and c.New are equal, there is nothing to judge. exists reports whether a namespace that the forest lacks exists
// after all.
func Judge(s *forest.Snapshot, c Change, exists func(name string) bool) Verdict {
	if equalNames(c.Old, c.New) {
		return Verdict{}
	}
	m, ok := moveAskedBy(s, c)
	if !ok {
		return Verdict{}
	}
	v := Verdict{Problems: m.problemsOfMove(), Moves: true}
	if len(v.Problems) > 0 {
		v.BeforeProblems = uniqueQuestions(m.questionsOfMove())
		return v
	}
	if v.Unknown = m.unknownParent(exists); v.Unknown != "" {
		return v
	}
	v.Questions = uniqueQuestions(m.questionsOfMove())
	v.Warnings = m.warningsOfMove()
	return v
}
