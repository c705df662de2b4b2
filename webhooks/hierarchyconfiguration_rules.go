package webhooks

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/authority"
	"github.com/warren-tenancy/warren/internal/forest"
)

// request is a change of one field for which the user needs rights.
type request struct {
	field *field.Path
	// what completes the sentence: the user may not "move namespace x".
	what      string
	questions []authority.Question
}

// hierarchyVerdict is the judgement on a changed HierarchyConfiguration before the authorizer is asked.
type hierarchyVerdict struct {
	findings
	requests []request
	// moves reports whether the namespace would get another place.
	moves bool
	// unknown names a namespace that exists and that the forest doesn't hold yet, or is "".
	unknown string
}

// checkHierarchySpec checks what changes in the HierarchyConfiguration of namespace from old to now. Namespaces that g
// doesn't let it name are left out of the texts.
func checkHierarchySpec(s *forest.Snapshot, namespace string, old, now v1alpha1.HierarchyConfigurationSpec, rules keyRules,
	exists func(string) bool, g *visibility) hierarchyVerdict {
	move := authority.Judge(s, authority.Change{Namespace: namespace, Old: old.Parent, New: now.Parent}, exists)
	v := hierarchyVerdict{unknown: move.Unknown, moves: move.Moves}
	v.addWarnings(move.Warnings...)
	if other := forest.ExcludedBy(s, namespace, valueOrEmpty(now.Parent)); move.Moves && other != "" && g.maySeeNamespace(other) {
		v.addWarnings(forest.Exclusion(other, namespace))
	}
	parent := spec.Child("parent")
	for _, problem := range move.Problems {
		v.addProblems(field.Invalid(parent, valueOrEmpty(now.Parent), problem))
	}
	v.addRequest(parent, fmt.Sprintf("move namespace %q", namespace), append(move.Questions, move.BeforeProblems...))
	was, will := forest.HierarchyOf(namespace, "", old), forest.HierarchyOf(namespace, "", now)
	after := s.WithHierarchy(will)
	n := s.Namespace(namespace)
	placed := move.Moves && len(move.Problems) == 0 && n != nil
	if placed {
		after = after.WithNamespace(forest.Placed(n, valueOrEmpty(now.Parent)))
	}
	var changes [2]asked
	above := authority.Above(after, namespace)
	for i, side := range rules.keySidesOf(was, will) {
		added := authority.Added(side.old, side.now)
		switch {
		case placed:
			changes[i] = asked{parent, valueOrEmpty(now.Parent)}
		case !move.Moves && len(added) > 0:
			changes[i] = asked{side.propagated, added}
		}
		v.addRequest(side.propagated, fmt.Sprintf("propagate these keys from namespace %q", namespace),
			side.rules.Propagating(side.old, side.now))
		v.addRequest(side.overridden, fmt.Sprintf("override these keys in namespace %q", namespace),
			side.rules.Overriding(side.old, side.now, above, move.Moves))
		if placed {
			v.addRequest(parent, fmt.Sprintf("override these keys below namespace %q", namespace),
				side.rules.OverridingBelow(overriddenBelow(s, namespace, i), above))
		}
	}
	v.checkReplacedValues(after, namespace, changes, g)
	children := authority.Requiring(namespace, was.Required, will.Required)
	v.addRequest(spec.Child("requiredChildren"), fmt.Sprintf("require children of namespace %q", namespace), children)
	return v
}

func (v *hierarchyVerdict) addRequest(at *field.Path, what string, questions []authority.Question) {
	if len(questions) > 0 {
		v.requests = append(v.requests, request{at, what, questions})
	}
}

// asked is a field and the value that it asks for. A nil field asks for nothing.
type asked struct {
	field *field.Path
	value any
}

// checkReplacedValues refuses a change of labels, or of annotations, by which inherited values would silently replace
// values that people have set.
func (v *hierarchyVerdict) checkReplacedValues(after *forest.Snapshot, namespace string, changes [2]asked, g *visibility) {
	if changes[0].field == nil && changes[1].field == nil {
		return
	}
	labels, annotations := forest.ReplacedValues(after, namespace)
	for i, values := range [2][]string{labels, annotations} {
		if c := changes[i]; c.field != nil && len(values) > 0 {
			what, list := [2]string{"labels", "annotations"}[i], [2]string{"overriddenLabels", "overriddenAnnotations"}[i]
			v.addProblems(field.Invalid(c.field, c.value, what+" would be replaced: "+g.joinVisibleTexts(values)+
				"; first remove them, or keep them: list their keys in spec."+list+" of their namespaces' HierarchyConfigurations"))
		}
	}
}

// problemOfDenial returns the problem of a request after the authorizer has denied one of its questions. The parameter
// no is that question.
func (r request) problemOfDenial(user string, no authority.Question, parent *string, g *visibility) *field.Error {
	if no.Instead != "" {
		return field.Invalid(r.field, valueOrEmpty(parent), no.Instead)
	}
	return field.Forbidden(r.field, fmt.Sprintf("user %q may not %s: %s", user, r.what, no.Needs(g.maySeeNamespace)))
}

// keyRules determine whose consent the keys of a HierarchyConfiguration need.
type keyRules struct {
	inheritLabel, inheritAnnotation, undelegated func(key string) bool
	// declared returns the HierarchyConfiguration of a namespace; an empty one where it has none.
	declared func(namespace string) *forest.Hierarchy
}

// keySide is what a HierarchyConfiguration says about labels, or about annotations.
type keySide struct {
	propagated, overridden *field.Path
	old, now               authority.Keys
	rules                  authority.KeyRules
}

func (r keyRules) keySidesOf(old, now *forest.Hierarchy) [2]keySide {
	side := func(i int, suffix string, inherits func(string) bool) keySide {
		return keySide{
			spec.Child("propagated" + suffix), spec.Child("overridden" + suffix), keysOfSide(old, i), keysOfSide(now, i),
			authority.KeyRules{Inherits: inherits, Undelegated: r.undelegated, Declares: func(namespace, key string) bool {
				return slices.Contains(r.declared(namespace).Propagated[i], key)
			}},
		}
	}
	return [2]keySide{side(0, "Labels", r.inheritLabel), side(1, "Annotations", r.inheritAnnotation)}
}

// keysOfSide returns the keys of one side: 0 for labels, 1 for annotations.
func keysOfSide(h *forest.Hierarchy, side int) authority.Keys {
	return authority.Keys{Propagated: h.Propagated[side], Overridden: h.Overridden[side]}
}

// overriddenBelow returns the keys of one side that the namespaces below the one called name override, each once.
func overriddenBelow(s *forest.Snapshot, name string, side int) []string {
	var keys []string
	for below := range s.Below(name) {
		if h := s.Hierarchy(below); h != nil {
			keys = append(keys, h.Overridden[side]...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func valueOrEmpty(parent *string) string {
	if parent == nil {
		return ""
	}
	return *parent
}
