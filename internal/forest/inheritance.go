package forest

import (
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

// Rules are what the configuration says about trees. A nil function matches nothing.
type Rules struct {
	// InheritLabel and InheritAnnotation determine which keys flow down a tree and out of templates.
	InheritLabel, InheritAnnotation func(key string) bool
	// SubLabel and SubAnnotation determine which keys of a SubNamespace's spec reach its namespace.
	SubLabel, SubAnnotation func(key string) bool
	// ProtectedName names which namespaces are never in the forest, besides those with the label protected.
	ProtectedName func(name string) bool
	// ReservedName names which names no new sub-namespace gets; nil reserves none.
	ReservedName func(name string) bool
	// AllowCascading lets the deletion of any namespace delete the sub-namespaces below it.
	AllowCascading bool
	// CheckName returns an error that explains why a new sub-namespace in the tree of root may not bear that name; nil
	// allows every name.
	CheckName func(root, name string) error
	// Limits are the limits of every tree, except for the fields that the LNamespace of a tree sets itself.
	Limits v1alpha1.Limits
	// Billing names the labels that the operator writes from the billing of an LNamespace on each namespace of its
	// tree.
	Billing BillingKeys
}

func (r Rules) isProtected(n *Namespace) bool {
	return n.label(v1alpha1.LabelProtected) == v1alpha1.True || r.ProtectedName != nil && r.ProtectedName(n.Name)
}

// These keys of the API server and of kubectl are never inherited, whatever the configuration says. The API server
// resets metadataName, so to inherit it would make an endless loop.
const (
	metadataName = "kubernetes.io/metadata.name"
	lastApplied  = "kubectl.kubernetes.io/last-applied-configuration"
)

func isNeverInherited(key string) bool {
	return v1alpha1.IsReservedKey(key) || key == metadataName || key == lastApplied || key == v1alpha1.LabelCreatedBy
}

// side holds what differs between labels and annotations, which follow the same rules of inheritance.
type side struct {
	of             func(n *Namespace) map[string]string
	spec           func(sub *Sub) map[string]string
	inherit, local func(key string) bool
	mark           string // is written before the key in the annotation inherited: "" for labels, "@" for annotations
	index          int    // of this side in Propagated and Overridden of a Hierarchy: 0 for labels, 1 for annotations
	// declared are the keys that the HierarchyConfigurations of the ancestors, and of the namespace itself, propagate.
	declared map[string]bool
	// billing are keys that no SubNamespace's spec may set, because they name who pays.
	billing BillingKeys
}

func (r Rules) bothSides() [2]side {
	return [2]side{
		{func(n *Namespace) map[string]string { return n.Labels }, func(sub *Sub) map[string]string { return sub.Labels }, r.InheritLabel,
			r.SubLabel, "", 0, nil, r.Billing},
		{func(n *Namespace) map[string]string { return n.Annotations }, func(sub *Sub) map[string]string { return sub.Annotations },
			r.InheritAnnotation, r.SubAnnotation, "@", 1, nil, BillingKeys{}},
	}
}

func (d side) inheritsKey(key string) bool {
	return (d.declared[key] || d.inherit != nil && d.inherit(key)) && !isNeverInherited(key)
}

func (d side) allowsKey(key string) bool {
	return d.local != nil && d.local(key) && !isNeverInherited(key) && !d.billing.Has(key)
}

// declareKeys returns d with the keys that h propagates added to those that are inherited. The result is for the
// namespace of h and for its descendants. h may be nil.
func (d side) declareKeys(h *Hierarchy) side {
	keys := h.declaredKeys(d.index)
	if len(keys) == 0 {
		return d
	}
	declared := map[string]bool{}
	maps.Copy(declared, d.declared)
	for _, key := range keys {
		declared[key] = true
	}
	d.declared = declared
	return d
}

// passKeys returns the values in above that the namespace of h inherits: those whose keys h doesn't override. h may be
// nil.
func (d side) passKeys(h *Hierarchy, above map[string]string) map[string]string {
	keys := h.overriddenKeys(d.index)
	if len(keys) == 0 {
		return above
	}
	passed := maps.Clone(above)
	for _, key := range keys {
		delete(passed, key)
	}
	return passed
}

// operatorKeys returns the keys that the operator wrote on n, with their marks ("@" before those of annotations).
func (n *Namespace) operatorKeys() map[string]bool {
	list := n.Annotations[v1alpha1.AnnotationInherited]
	if list == "" {
		return nil
	}
	ours := map[string]bool{}
	for key := range strings.SplitSeq(list, ",") {
		if !isNeverInherited(strings.TrimPrefix(key, "@")) { // a forged list must not make the operator remove keys that shape the forest
			ours[key] = true
		}
	}
	return ours
}

// effective holds the values that the operator wants on a namespace (written), and those that the namespace's
// descendants inherit (flowing).
type effective struct {
	written, flowing map[string]string
	left             map[string]bool // keys that keep their present value, because only a person may set the wanted one
	refused          []string        // keys of the SubNamespace's spec that the configuration doesn't allow, with their marks
}

// effectiveKeys computes rule E of docs/behaviour/subnamespaces.md for the labels or the annotations of one namespace.
// above holds the inherited values; sub is the SubNamespace that owns n, or nil. The value of a key comes from the spec
// of sub, else from above, else from what somebody set on n.
func (d side) effectiveKeys(n *Namespace, sub *Sub, above map[string]string) effective {
	e := effective{written: map[string]string{}, flowing: map[string]string{}, left: map[string]bool{}}
	own, ours := d.of(n), n.operatorKeys()
	for key, value := range own {
		if d.inheritsKey(key) && !ours[d.mark+key] {
			e.flowing[key] = value
		}
	}
	for key, value := range above {
		e.takeKey(d, key, value)
	}
	if sub != nil {
		for key, value := range d.spec(sub) {
			if d.allowsKey(key) {
				e.takeKey(d, key, value)
			} else {
				e.refused = append(e.refused, d.mark+key)
			}
		}
	}
	return e
}

func (e *effective) takeKey(d side, key, value string) {
	if d.mark == "" && key == enforceLevel && value == privileged {
		e.left[key] = true
		if _, ok := e.flowing[key]; !ok && d.inheritsKey(key) {
			e.flowing[key] = value // so that descendants keep their own label instead of losing it
		}
		return
	}
	delete(e.left, key)
	e.written[key] = value
	if d.inheritsKey(key) {
		e.flowing[key] = value
	}
}

// inheritedKeys computes, for labels and annotations, what the namespace called name should carry. The namespace must
// not be halted.
func inheritedKeys(s *Snapshot, name string) [2]effective {
	var result [2]effective
	sources, _ := s.Sources(name)
	way := append(slices.Clone(sources.Names), name)
	for i, d := range s.rules.bothSides() {
		for step, at := range way {
			n, h := s.Namespace(at), s.Hierarchy(at)
			if s.KindOf(n) != Template { // a template has no descendants for which it could declare keys
				d = d.declareKeys(h)
			}
			above := result[i].flowing
			result[i] = d.effectiveKeys(n, owningSub(s, at), d.passKeys(h, above))
			if step == 0 && sources.Unknown != "" {
				d.freezeKeys(n, &result[i])
			}
			if d.index == 0 {
				result[i].holdLevel(d, n, above)
			}
		}
	}
	return result
}

// freezeKeys keeps the keys that n got from templates while those templates can't be judged, for example because one is
// missing. It keeps every key that the operator wrote on n and that nothing else asks for now. Only the namespace that
// references the template is frozen; its descendants continue to inherit from it. Billing labels follow the LNamespace
// meanwhile.
func (d side) freezeKeys(n *Namespace, e *effective) {
	for key := range n.operatorKeys() {
		bare, isAnnotation := strings.CutPrefix(key, "@")
		if isAnnotation != (d.mark == "@") || !d.inheritsKey(bare) || d.billing.Has(bare) {
			continue
		}
		if value, ok := d.of(n)[bare]; ok {
			if _, wanted := e.written[bare]; !wanted {
				e.takeKey(d, bare, value)
			}
		}
	}
}

// owningSub returns the SubNamespace that the namespace called name is bound to, or nil.
func owningSub(s *Snapshot, name string) *Sub {
	n := s.Namespace(name)
	if n == nil || !n.Bound() || n.Parent() == "" {
		return nil
	}
	return s.Sub(n.Parent(), name)
}

// NotTransferred is how a message about RefusedKeys begins.
const NotTransferred = "these keys are not set here: the configuration does not allow them, or they would lower a level of pod security. " +
	"Only a cluster admin lowers such a level, from the root downwards. Keys: "

// RefusedKeys returns the keys that the namespace called name does not get as asked, though it may have them with
// another value. One reason is that the configuration does not allow a key of its SubNamespace's spec. All others
// concern the level of pod security: the operator never sets privileged, and neither lowers a level or its version, nor
// takes the level off. Then the level's key is listed. The keys are in alphabetical order; those of annotations have a
// leading @.
func RefusedKeys(s *Snapshot, name string) []string {
	if s.Namespace(name) == nil {
		return nil
	}
	both := inheritedKeys(s, name)
	refused := slices.Concat(both[0].refused, both[1].refused)
	for key := range both[0].left {
		refused = append(refused, key)
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// flowDiffers reports whether the values that descendants inherit from the namespace called name differ between a and
// b.
func flowDiffers(a, b *Snapshot, name string) bool {
	x, y := inheritedKeys(a, name), inheritedKeys(b, name)
	return !maps.Equal(x[0].flowing, y[0].flowing) || !maps.Equal(x[1].flowing, y[1].flowing)
}
