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

// Empty says that there is nothing to write.
func (c Change) Empty() bool { return len(c.Labels) == 0 && len(c.Annotations) == 0 }

// Desired compares the namespace called name with what it should carry: tree labels, ancestry, what it inherits, what its
// LNamespace says of a root, and the place that its HierarchyConfiguration asks for. Nothing is written where the namespace
// is protected or terminating; where it is halted, nothing but that nobody holds it any more; from one that left the forest everything that the operator wrote is removed.
func (s *Snapshot) Desired(name string) Change {
	n := s.Namespace(name)
	if n == nil || n.Terminating || s.rules.isProtected(n) {
		return Change{}
	}
	if s.isAbandoned(n) {
		return diff(n, s.released(n))
	}
	fixed := s.asRequested(s.withRootLabels(n))
	if fixed != n {
		s = s.WithNamespace(fixed)
	}
	if s.Place(name).Halted() {
		return diff(n, fixed)
	}
	return diff(n, s.wantedNamespace(fixed))
}

// clone is n with maps of its own.
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

// withRootLabels is n with the labels that its LNamespace gives a root; n itself where nothing differs.
func (s *Snapshot) withRootLabels(n *Namespace) *Namespace {
	tenant := s.Tenant(n.Name)
	if tenant == nil || tenant.Deleting || tenant.UID != n.TenantUID() || n.Parent() != "" {
		return n
	}
	if n.Type() == v1alpha1.TypeRoot && n.Template() == tenant.Template {
		return n
	}
	fixed := n.clone()
	fixed.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
	set(fixed.Labels, v1alpha1.LabelTemplate, tenant.Template)
	return fixed
}

// With is n as it is once change was written.
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

func set(m map[string]string, key, value string) {
	if value == "" {
		delete(m, key)
	} else {
		m[key] = value
	}
}

// wantedNamespace is n as it should be.
func (s *Snapshot) wantedNamespace(n *Namespace) *Namespace {
	w, place := n.clone(), s.Place(n.Name)
	s.deriveKeys(w, place.Path)
	if place.Kind == None {
		w.inheritKeys(n, [2]effective{})
		w.keepLevel(n)
		delete(w.Annotations, v1alpha1.AnnotationCascading)
		delete(w.Annotations, v1alpha1.AnnotationHeldBy)
		return w
	}
	delete(w.Labels, v1alpha1.LabelReleased)
	keys := s.inheritedKeys(n.Name)
	s.addBillingLabels(n, place.Path, &keys[0])
	w.inheritKeys(n, keys)
	if sub := s.owningSub(n.Name); sub == nil || !sub.Deleting { // else its permission may have been left to it a moment ago
		set(w.Annotations, v1alpha1.AnnotationCascading, s.cascadingValue(n))
	}
	return w
}

// cascadingValue is "true" where the LNamespace or the HierarchyConfiguration of n allows that what is below goes with it.
func (s *Snapshot) cascadingValue(n *Namespace) string {
	tenant, h := s.Tenant(n.Name), s.Hierarchy(n.Name)
	if tenant != nil && tenant.UID == n.TenantUID() && tenant.AllowCascading || h != nil && h.AllowCascading {
		return v1alpha1.True
	}
	return ""
}

// deriveKeys sets the keys that follow from the path alone.
func (s *Snapshot) deriveKeys(n *Namespace, path []string) {
	maps.DeleteFunc(n.Labels, func(key, _ string) bool { return strings.HasSuffix(key, v1alpha1.TreeLabelSuffix) })
	delete(n.Annotations, v1alpha1.AnnotationAncestry)
	delete(n.Annotations, v1alpha1.AnnotationParentUID)
	if len(path) == 0 {
		return
	}
	if len(path) > 1 {
		n.Annotations[v1alpha1.AnnotationParentUID] = s.Namespace(path[len(path)-2]).UID
	}
	for i, ancestor := range path {
		n.Labels[v1alpha1.TreeLabel(ancestor)] = strconv.Itoa(len(path) - 1 - i)
	}
	n.Annotations[v1alpha1.AnnotationAncestry] = strings.Join(path, "/")
}

// inheritKeys writes what e wants, takes back what the operator wrote earlier and nothing wants now, and notes which keys
// are the operator's. A key that somebody else had set to the very same value stays theirs.
func (n *Namespace) inheritKeys(old *Namespace, e [2]effective) {
	was, ours := old.operatorKeys(), []string{}
	for i, d := range (Rules{}).bothSides() {
		have, now := d.of(old), d.of(n)
		for key, value := range e[i].written {
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
	set(n.Annotations, v1alpha1.AnnotationInherited, strings.Join(ours, ","))
}

// ChangeTo is what makes n carry the keys of wanted.
func (n *Namespace) ChangeTo(wanted *Namespace) Change { return diff(n, wanted) }

func diff(old, wanted *Namespace) Change {
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

// NewChild is the namespace that the SubNamespace name in parent makes, with everything that its first version must
// carry. It is not part of the snapshot.
func (s *Snapshot) NewChild(parent, name string) *Namespace {
	return s.completeKeys(&Namespace{Name: name, Labels: map[string]string{
		v1alpha1.LabelCreatedBy: v1alpha1.OperatorName,
		v1alpha1.LabelParent:    parent,
		v1alpha1.LabelBound:     v1alpha1.True,
	}})
}

// NewRoot is the namespace that the LNamespace tenant makes, with everything that its first version must carry.
func (s *Snapshot) NewRoot(tenant *Tenant) *Namespace {
	n := &Namespace{
		Name:        tenant.Name,
		Labels:      map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.OperatorName, v1alpha1.LabelType: v1alpha1.TypeRoot},
		Annotations: map[string]string{v1alpha1.AnnotationLNamespaceUID: tenant.UID},
	}
	set(n.Labels, v1alpha1.LabelTemplate, tenant.Template)
	return s.WithTenant(tenant).completeKeys(n)
}

// Adoption is what makes the namespace of tenant's name its root: its keys come, the cluster admin's mark goes.
func (s *Snapshot) Adoption(tenant *Tenant) Change {
	old := s.Namespace(tenant.Name)
	n := old.clone()
	delete(n.Annotations, v1alpha1.AnnotationAdopt)
	n.Annotations[v1alpha1.AnnotationLNamespaceUID] = tenant.UID
	n.Labels[v1alpha1.LabelType] = v1alpha1.TypeRoot
	set(n.Labels, v1alpha1.LabelTemplate, tenant.Template)
	return diff(old, s.WithTenant(tenant).completeKeys(n))
}

func (s *Snapshot) completeKeys(n *Namespace) *Namespace {
	return s.WithNamespace(n).wantedNamespace(n)
}

// Affected are the namespaces whose place, keys or copies may differ between old and s after name changed: name itself
// and, if its place or what flows from it changed, all below it.
func (s *Snapshot) Affected(old *Snapshot, name string) []string {
	affected := append([]string{name}, s.newlyAbandoned(old, name)...)
	if s.reachesBelow(old, name) {
		affected = slices.AppendSeq(affected, s.Below(name)) // as in old: the edges below name are those of others
	}
	return affected
}

// reachesBelow says whether the change of name between old and s matters to those below it.
func (s *Snapshot) reachesBelow(old *Snapshot, name string) bool {
	before, after := old.Namespace(name), s.Namespace(name)
	if before == nil || after == nil || before.UID != after.UID || before.Terminating != after.Terminating {
		return true
	}
	if before.Template() != after.Template() {
		return true
	}
	if a, b := old.Place(name), s.Place(name); a.Kind != b.Kind || a.Halt != b.Halt || !slices.Equal(a.Path, b.Path) {
		return true
	}
	return !old.Hierarchy(name).declaresAs(s.Hierarchy(name)) || flowDiffers(old, s, name) || s.billsOtherwise(old, name)
}
