package forest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Change is what must be written to the metadata of a Namespace, in one write. A nil value removes the key.
type Change struct {
	Labels, Annotations map[string]*string
}

// Empty reports that there is nothing to write.
func (c Change) Empty() bool { return len(c.Labels) == 0 && len(c.Annotations) == 0 }

// DesiredChange returns the change that gives the namespace called name all that it should carry. These are the tree
// labels, ancestry, inherited keys, the labels that its LNamespace gives a root, and the place that its
// HierarchyConfiguration asks for. The change is empty for a namespace that is missing, protected or terminating. A
// halted namespace gets its root labels and the place that was asked for, nothing else. A namespace whose holders (see
// HeldBy) the tenant no longer lists is released, halted or not. From a namespace that left the forest, everything that
// the operator wrote is removed.
func DesiredChange(s *Snapshot, name string) Change {
	n := s.Namespace(name)
	if n == nil || n.Terminating || s.rules.isProtected(n) {
		return Change{}
	}
	// Its holders must not keep what came from the tenant.
	if isAbandoned(s, n) {
		return compareMetadata(n, releaseKeys(s, n))
	}
	fixed := asRequested(s, withRootLabels(s, n))
	if fixed != n {
		s = s.WithNamespace(fixed)
	}
	// Where it belongs can't be judged now, so it keeps all other keys.
	if s.Place(name).Halted() {
		return compareMetadata(n, fixed)
	}
	return compareMetadata(n, wantedNamespace(s, fixed))
}

// clone returns a copy of n whose maps are its own and never nil.
func (n *Namespace) clone() *Namespace {
	c := *n
	c.Labels, c.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	return &c
}

// withRootLabels returns n with the labels that its LNamespace gives a root; n itself where nothing differs.
func withRootLabels(s *Snapshot, n *Namespace) *Namespace {
	tenant := s.Tenant(n.Name)
	if tenant == nil || tenant.Deleting || tenant.UID != n.TenantUID() || n.Parent() != "" {
		return n
	}
	if n.Type() == v1alpha1.TypeRoot && n.Template() == tenant.Template {
		return n
	}
	fixed := n.clone()
	fixed.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
	setKey(fixed.Labels, v1alpha1.LabelTemplate, tenant.Template)
	return fixed
}

// With returns n as it is after change was written.
func (n *Namespace) With(change Change) *Namespace {
	w := n.clone()
	for _, both := range []struct {
		keys    map[string]string
		changes map[string]*string
	}{{w.Labels, change.Labels}, {w.Annotations, change.Annotations}} {
		for key, value := range both.changes {
			if value == nil {
				delete(both.keys, key)
			} else {
				both.keys[key] = *value
			}
		}
	}
	return w
}

func setKey(m map[string]string, key, value string) {
	if value == "" {
		delete(m, key)
	} else {
		m[key] = value
	}
}

// wantedNamespace returns n with all the keys that it should carry at its place.
func wantedNamespace(s *Snapshot, n *Namespace) *Namespace {
	w, place := n.clone(), s.Place(n.Name)
	deriveKeys(s, w, place.Path)
	if place.Kind == None {
		w.inheritKeys(n, [2]effective{})
		w.keepLevel(n)
		delete(w.Labels, v1alpha1.LabelShare)
		delete(w.Annotations, v1alpha1.AnnotationCascading)
		delete(w.Annotations, v1alpha1.AnnotationHeldBy)
		return w
	}
	delete(w.Labels, v1alpha1.LabelReleased)
	keys := inheritedKeys(s, n.Name)
	addBillingLabels(s, n, place.Path, &keys[0])
	w.inheritKeys(n, keys)
	if sub := owningSub(s, n.Name); sub == nil || !sub.Deleting { // else Bequest may just have written the permission of an ancestor
		setKey(w.Annotations, v1alpha1.AnnotationCascading, cascadingValue(s, n))
	}
	return w
}

// cascadingValue is "true" where the LNamespace or the HierarchyConfiguration of n allows that the deletion of n also
// deletes what is below it. Otherwise it is "".
func cascadingValue(s *Snapshot, n *Namespace) string {
	tenant, h := s.Tenant(n.Name), s.Hierarchy(n.Name)
	if tenant != nil && tenant.UID == n.TenantUID() && tenant.AllowCascading || h != nil && h.AllowCascading {
		return v1alpha1.True
	}
	return ""
}

// deriveKeys sets on n the keys that follow from path alone: the tree labels, the ancestry and the digest of the
// parent's UID. An empty path removes them.
func deriveKeys(s *Snapshot, n *Namespace, path []string) {
	deriveTreeLabels(n.Labels, path)
	delete(n.Annotations, v1alpha1.AnnotationAncestry)
	delete(n.Annotations, v1alpha1.AnnotationParentUID)
	if len(path) == 0 {
		return
	}
	if len(path) > 1 {
		n.Annotations[v1alpha1.AnnotationParentUID] = v1alpha1.DigestUID(s.Namespace(path[len(path)-2]).UID)
	}
	n.Annotations[v1alpha1.AnnotationAncestry] = strings.Join(path, "/")
}

// deriveTreeLabels replaces the tree labels by those of a path from a root.
func deriveTreeLabels(labels map[string]string, path []string) {
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasSuffix(key, v1alpha1.TreeLabelSuffix) })
	for i, ancestor := range path {
		labels[v1alpha1.TreeLabel(ancestor)] = strconv.Itoa(len(path) - 1 - i)
	}
}

// inheritKeys writes the values that e wants on n, which is a copy of old. It removes the keys that the operator wrote
// earlier and that are no longer wanted, and records which keys are the operator's.
func (n *Namespace) inheritKeys(old *Namespace, e [2]effective) {
	was, ours := old.operatorKeys(), []string{}
	for i, d := range (Rules{}).bothSides() {
		have, now := d.of(old), d.of(n)
		for key, value := range e[i].written {
			// A key that somebody else has set to the wanted value stays that person's: the operator won't remove it.
			if current, ok := have[key]; !ok || current != value || was[d.mark+key] {
				now[key] = value
				ours = append(ours, d.mark+key)
			}
		}
		for key := range have {
			_, wanted := e[i].written[key]
			switch {
			case wanted || !was[d.mark+key]:
			case e[i].left[key]:
				ours = append(ours, d.mark+key)
			default:
				delete(now, key)
			}
		}
	}
	slices.Sort(ours)
	setKey(n.Annotations, v1alpha1.AnnotationInherited, strings.Join(ours, ","))
}

// ChangeTo returns the change that makes n carry the keys of wanted.
func (n *Namespace) ChangeTo(wanted *Namespace) Change { return compareMetadata(n, wanted) }

func compareMetadata(old, wanted *Namespace) Change {
	return Change{Labels: diffMap(old.Labels, wanted.Labels), Annotations: diffMap(old.Annotations, wanted.Annotations)}
}

func diffMap(old, wanted map[string]string) map[string]*string {
	changes := map[string]*string{}
	for key, value := range wanted {
		if current, ok := old[key]; !ok || current != value {
			changes[key] = &value
		}
	}
	for key := range old {
		if _, ok := wanted[key]; !ok {
			changes[key] = nil
		}
	}
	return changes
}

// NewChild returns the namespace that the operator creates for the SubNamespace sub, with everything that its first
// version must carry. The snapshot doesn't hold the namespace, and may not hold sub yet.
func NewChild(s *Snapshot, sub *Sub) *Namespace {
	return completeKeys(s.WithSub(sub), &Namespace{Name: sub.Name, Labels: map[string]string{
		v1alpha1.LabelCreatedBy: v1alpha1.OperatorName,
		v1alpha1.LabelParent:    sub.Parent,
		v1alpha1.LabelBound:     v1alpha1.True,
	}})
}

// NewRoot returns the namespace that the operator creates for the LNamespace tenant, with everything that its first
// version must carry.
func NewRoot(s *Snapshot, tenant *Tenant) *Namespace {
	n := &Namespace{
		Name:        tenant.Name,
		Labels:      map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.OperatorName, v1alpha1.LabelType: v1alpha1.TypeRoot},
		Annotations: map[string]string{v1alpha1.AnnotationLNamespaceUID: tenant.UID},
	}
	setKey(n.Labels, v1alpha1.LabelTemplate, tenant.Template)
	return completeKeys(s.WithTenant(tenant), n)
}

// Adoption returns the change that makes the existing namespace of tenant's name the tenant's root. It removes the
// cluster admin's annotation adopt.
func Adoption(s *Snapshot, tenant *Tenant) Change {
	old := s.Namespace(tenant.Name)
	n := old.clone()
	delete(n.Annotations, v1alpha1.AnnotationAdopt) // an adoption mark counts once
	n.Annotations[v1alpha1.AnnotationLNamespaceUID] = tenant.UID
	n.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
	setKey(n.Labels, v1alpha1.LabelTemplate, tenant.Template)
	return compareMetadata(old, completeKeys(s.WithTenant(tenant), n))
}

func completeKeys(s *Snapshot, n *Namespace) *Namespace {
	return wantedNamespace(s.WithNamespace(n), n)
}

// AffectedNamespaces returns the namespaces whose place, keys or copies may differ between old and s after name
// changed. These are name itself, and the namespaces that the change makes the operator release, or keeps it from
// releasing. If the place of name changed, or what it passes on, they also are all its descendants.
func AffectedNamespaces(s, old *Snapshot, name string) []string {
	affected := append([]string{name}, otherwiseAbandoned(s, old, name)...)
	if reachesBelow(s, old, name) {
		affected = slices.AppendSeq(affected, s.Below(name)) // the same namespaces are below name in old
	}
	return affected
}

// reachesBelow reports whether the change of name between old and s matters to its descendants.
func reachesBelow(s, old *Snapshot, name string) bool {
	before, after := old.Namespace(name), s.Namespace(name)
	if before == nil || after == nil || before.UID != after.UID || before.Terminating != after.Terminating {
		return true
	}
	// Another LNamespace has other lists, by which those below are released.
	if before.Template() != after.Template() || before.TenantUID() != after.TenantUID() {
		return true
	}
	if a, b := old.Place(name), s.Place(name); a.Kind != b.Kind || a.Halt != b.Halt || !slices.Equal(a.Path, b.Path) {
		return true
	}
	return !old.Hierarchy(name).declaresAs(s.Hierarchy(name)) || flowDiffers(old, s, name) || billsOtherwise(s, old, name)
}
