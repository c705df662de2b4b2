package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

var metadataLabels = field.NewPath("metadata", "labels")

// checkNamespace checks a namespace that is created or changed. before is the forest that has the namespace as old
// describes it. If the namespace is created, old is nil, and before lacks it. Only changes are judged: the reconcilers
// report what was wrong already.
func checkNamespace(before *forest.Snapshot, old, now *forest.Namespace, g *visibility) findings {
	if old == nil {
		old = &forest.Namespace{Name: now.Name}
	}
	c := namespaceChange{before: before, after: before.WithNamespace(now), old: old, now: now, sight: g}
	c.checkNotTakenAlong()
	c.checkParentLabel()
	c.checkTemplateLabel()
	c.checkNotProtected()
	c.checkDependantsKept()
	c.checkPlaceKept()
	return c.findings
}

type namespaceChange struct {
	findings
	before, after *forest.Snapshot
	old, now      *forest.Namespace
	sight         *visibility
}

// newOwner returns the parent in which a SubNamespace would own the namespace by this change; "" if the change binds it
// to none.
func newOwner(old, now *forest.Namespace) string {
	if !now.Bound() || old.BoundTo(now.Parent()) {
		return ""
	}
	return now.Parent()
}

// checkNotTakenAlong refuses to bind the namespace to a SubNamespace that is being deleted: the operator would delete
// both.
func (c *namespaceChange) checkNotTakenAlong() {
	parent := newOwner(c.old, c.now)
	if sub := c.before.Sub(parent, c.now.Name); parent != "" && sub != nil && sub.Deleting {
		c.addProblems(field.Forbidden(metadataLabels.Key(v1alpha1.LabelParent), "SubNamespace "+parent+"/"+c.now.Name+
			" is being deleted, and would take this namespace with it: try again when it is gone"))
	}
}

// checkParentLabel checks a new parent label.
func (c *namespaceChange) checkParentLabel() {
	name, at := c.now.Parent(), metadataLabels.Key(v1alpha1.LabelParent)
	if name == "" || name == c.old.Parent() {
		return
	}
	p := c.before.Namespace(name)
	switch cycle := forest.ParentCycle(c.after, c.now.Name); {
	case cycle != "":
		c.addProblems(field.Invalid(at, name, "would make a cycle: "+cycle))
		return
	case c.before.Protected(name):
		c.addProblems(field.Forbidden(at, name+" is a protected namespace"))
	case p != nil && p.Type() == v1alpha1.TypeTemplate:
		c.addProblems(field.Invalid(at, name, "parent namespace "+name+" is a template"))
	case p != nil && p.Terminating:
		c.addProblems(field.Invalid(at, name, "parent namespace "+name+" is being terminated"))
	}
	// If the change is refused already, limits and replaced values are of no interest.
	if len(c.problems) > 0 {
		return
	}
	c.addWarnings(authority.ParentWarnings(c.before, name)...)
	for _, why := range forest.Crowded(c.after, c.before, c.now.Name) {
		c.addProblems(field.Forbidden(at, why))
	}
	labels, annotations := forest.ReplacedValues(c.after, c.now.Name)
	if len(labels) > 0 {
		c.addWarnings("labels will be replaced: " + c.sight.joinVisibleTexts(labels))
	}
	if len(annotations) > 0 {
		c.addWarnings("annotations will be replaced: " + c.sight.joinVisibleTexts(annotations))
	}
}

// checkTemplateLabel checks a new template label.
func (c *namespaceChange) checkTemplateLabel() {
	name, at := c.now.Template(), metadataLabels.Key(v1alpha1.LabelTemplate)
	if name == "" || name == c.old.Template() {
		return
	}
	if cycle := forest.TemplateCycle(c.after, c.now.Name); cycle != "" {
		c.addProblems(field.Invalid(at, name, "would make a cycle: "+cycle))
		return
	}
	problem, warning := templateTarget(c.before, at, name)
	c.addProblems(problem...)
	c.addWarnings(warning...)
}

// templateTarget checks whether the namespace called name can be a template for others.
func templateTarget(s *forest.Snapshot, at *field.Path, name string) (field.ErrorList, []string) {
	switch t := s.Namespace(name); {
	case t == nil:
		return nil, []string{"template namespace " + name + " does not exist"}
	case s.KindOf(t) != forest.Template:
		return field.ErrorList{field.Invalid(at, name, name+" is not a template namespace")}, nil
	case t.Terminating:
		return nil, []string{"template namespace " + name + " is being terminated"}
	}
	return nil, nil
}

// checkNotProtected refuses the labels type and parent to a protected namespace: the configuration, or a label, keeps
// it out of the forest.
func (c *namespaceChange) checkNotProtected() {
	for _, key := range []string{v1alpha1.LabelType, v1alpha1.LabelParent} {
		if value := c.now.Labels[key]; value != "" && value != c.old.Labels[key] && c.after.Protected(c.now.Name) {
			c.addProblems(field.Forbidden(metadataLabels.Key(key), c.now.Name+" is a protected namespace"))
			return
		}
	}
}

// checkPlaceKept judges a change after which the namespace is in no tree.
func (c *namespaceChange) checkPlaceKept() {
	was := c.before.KindOf(c.old)
	if !isInTrees(was) || isInTrees(c.after.KindOf(c.now)) {
		return
	}
	_, hadAncestry := c.old.Annotations[v1alpha1.AnnotationAncestry]
	_, hasAncestry := c.now.Annotations[v1alpha1.AnnotationAncestry]
	switch owner, undo := c.findOwner(); {
	// The annotation is lost, too, so a manifest without Warren's keys has replaced the whole object. Its author
	// doesn't mean that (SUB-T16).
	case owner != "" && hadAncestry && !hasAncestry:
		why := owner + " would lose this namespace, with the rights and copies in it: keep the labels and annotations of " + v1alpha1.Domain +
			", as kubectl apply does"
		if c.old.Bound() {
			why += "; to take the namespace out of its tree: kubectl warren cut " + c.now.Name
		}
		c.addProblems(field.Forbidden(metadataLabels.Key(removedLabelOf(was)), why))
	// Only the labels are gone: that is meant, and costs what the warning says.
	case undo != "" && len(c.problems) == 0:
		c.addWarnings("namespace " + c.now.Name + " leaves its tree: the operator deletes the rights and copies that it has from there; to " +
			"undo this: " + undo)
	}
}

// findOwner returns what keeps the namespace in its tree, and the command for a cluster admin that puts it back there.
// The owner is "" if nothing but its labels kept it there. Both are "" for a root that the change doesn't take from its
// LNamespace, and for one of no LNamespace.
func (c *namespaceChange) findOwner() (owner, undo string) {
	name, parent := c.now.Name, c.old.Parent()
	tenant := c.before.TenantOf(name)
	switch {
	case tenant != nil && !tenant.Deleting && c.now.TenantUID() != tenant.UID:
		return "LNamespace " + name, "kubectl annotate namespace " + name + " " + v1alpha1.AnnotationAdopt + "=" + tenant.UID + " --overwrite"
	case owningSubNamespace(c.before, c.old) != nil:
		return "SubNamespace " + parent + "/" + name, "kubectl warren graft " + name + " " + parent
	case parent != "":
		return "", "kubectl warren set " + name + " --parent " + parent
	}
	return "", ""
}

// isInTrees reports whether a namespace of that kind is in a tree, unless it is halted.
func isInTrees(k forest.Kind) bool { return k == forest.Root || k == forest.SubNamespace }

// checkDependantsKept refuses a change that would leave children without a parent, or instances without their template.
func (c *namespaceChange) checkDependantsKept() {
	was, is := c.before.KindOf(c.old), c.after.KindOf(c.now)
	if children := c.before.Children(c.now.Name); isInTrees(was) && !isInTrees(is) && len(children) > 0 {
		c.addProblems(field.Forbidden(metadataLabels.Key(removedLabelOf(was)), c.now.Name+" has "+countOrListChildren(children, c.sight)+
			": delete them, or move them to another parent, first"))
	}
	if users := c.before.Instances(c.now.Name); was == forest.Template && is != forest.Template && len(users) > 0 {
		c.addProblems(field.Forbidden(metadataLabels.Key(v1alpha1.LabelType), c.now.Name+" is referenced by: "+c.sight.joinVisibleTexts(users)+
			"; take the reference off them first: kubectl warren template unset NAMESPACE"))
	}
}

func removedLabelOf(was forest.Kind) string {
	if was == forest.SubNamespace {
		return v1alpha1.LabelParent
	}
	return v1alpha1.LabelType
}

func countOrListChildren(children []string, g *visibility) string {
	switch _, hidden := g.divideByVisibility(children); {
	case hidden:
		return "children (" + g.joinVisibleTexts(children) + ")"
	case len(children) == 1:
		return "1 child (" + children[0] + ")"
	}
	return fmt.Sprintf("%d children (%s)", len(children), g.joinVisibleTexts(children))
}

// checkNamespaceDeletion checks a deletion by a person. The webhook isn't called when the operator or the namespace
// controller deletes.
func checkNamespaceDeletion(s *forest.Snapshot, n *forest.Namespace, g *visibility) findings {
	at := field.NewPath("metadata", "name")
	if n.Terminating || s.Protected(n.Name) {
		return findings{}
	}
	f := checkDeletion(s, n.Name, g)
	if users := s.Instances(n.Name); s.KindOf(n) == forest.Template && len(users) > 0 {
		f.addProblems(field.Forbidden(at, n.Name+" is referenced by: "+g.joinVisibleTexts(users)+
			"; take the reference off them first: kubectl warren template unset NAMESPACE"))
	}
	return f
}

// owningSubNamespace returns the SubNamespace that a bound namespace belongs to, as far as the forest knows; nil if
// there is none, or it is being deleted.
func owningSubNamespace(s *forest.Snapshot, n *forest.Namespace) *forest.Sub {
	if !n.Bound() || n.Parent() == "" {
		return nil
	}
	if sub := s.Sub(n.Parent(), n.Name); sub != nil && !sub.Deleting {
		return sub
	}
	return nil
}
