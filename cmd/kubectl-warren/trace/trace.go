// Package trace finds from which source an object was copied, or why a copy is missing, by the objects that the user
// could read. It is pure, and uses the operator's own planner. A source is an object that the operator copies to the
// namespaces below.
package trace

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/copies"
)

// Case is one object, and the objects of its kind and name in the namespaces above, as far as they could be read.
type Case struct {
	View tree.View
	Slot copies.Slot
	// Here is the object, nil if there is none, and Type the type of a Secret.
	Here *metav1.PartialObjectMetadata
	Type string
	// Above are the namespaces from which a copy can come, topmost first. If Here is a copy, its source's namespace is
	// among them.
	Above []Place
	// Mode is the kind's configured mode of propagation; "" if the kind isn't configured. It is valid only if Configured
	// is true.
	Mode       copies.KindMode
	Configured bool
	// Rules are those of the configuration, which describe what is never propagated; the zero value if it can't be read.
	Rules copies.Rules
}

// Place is a namespace in which a source was looked for.
type Place struct {
	Namespace string
	Object    *metav1.PartialObjectMetadata // nil if there is none
	Type      string                        // of a Secret
	Unread    bool                          // the user may not read it
}

// Verdict describes what an object is.
type Verdict string

// The verdicts. Other is an object that is neither a copy nor a source that is copied.
const (
	Copy   Verdict = "Copy"
	Source Verdict = "Source"
	Other  Verdict = "Other"
	Absent Verdict = "Absent"
)

// Trace is the answer. Its JSON form is an interface that scripts rely on.
type Trace struct {
	Object  Object  `json:"object"`
	Verdict Verdict `json:"verdict"`
	// From is the namespace of the source of a copy, and Path has the namespaces from there to the copy's, both included.
	From string   `json:"from,omitempty"`
	Path []string `json:"path,omitempty"`
	Mode string   `json:"mode,omitempty"`
	// Notes are sentences about the object: why it is missing, what is wrong with it, or why it doesn't follow a source.
	Notes []string `json:"notes"`
	// Above lists what was found in the namespaces from which a copy could come, topmost first.
	Above []Sight `json:"above"`
}

// Object is what was asked about.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Sight is what was found in one namespace.
type Sight struct {
	Namespace string `json:"namespace"`
	Found     string `json:"found"`
}

// Origin returns the source namespace and the mode of a copy; ok is false for an object that is no copy. The hash that
// the operator wrote must fit, because anybody may write the label.
func Origin(kind schema.GroupKind, meta *metav1.PartialObjectMetadata) (from, mode string, ok bool) {
	from = meta.Labels[v1alpha1.LabelInheritedFrom]
	hash := copies.ParseHash(meta.Annotations[v1alpha1.AnnotationSourceHash])
	slot := copies.Slot{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}
	return from, hash.Mode, from != "" && hash.Place == copies.PlaceOf(slot, from)
}

// Of returns the trace of a case.
func Of(c Case) *Trace {
	t := &Trace{
		Object:  Object{c.Slot.Kind.Group, c.Slot.Kind.Kind, c.Slot.Namespace, c.Slot.Name},
		Verdict: Absent, Notes: []string{}, Above: []Sight{},
	}
	for _, p := range c.Above {
		t.Above = append(t.Above, Sight{p.Namespace, c.describeFound(p)})
	}
	if c.Here == nil {
		t.Notes = c.whyAbsent()
		return t
	}
	if from, mode, ok := Origin(c.Slot.Kind, c.Here); ok {
		t.Verdict, t.From, t.Mode, t.Path = Copy, from, mode, c.pathFrom(from)
		t.Notes = append(append(t.Notes, c.ofCopy(from, mode)...), c.leftOut(from)...)
		return t
	}
	t.Verdict = Other
	source := c.sourceIn(Place{Namespace: c.Slot.Namespace, Object: c.Here, Type: c.Type})
	if why := c.whyNotCopied(source); why != "" {
		t.Notes = append(t.Notes, why)
	} else if source != nil {
		t.Verdict, t.Mode = Source, source.Mode
	}
	t.Notes = append(t.Notes, mistakenAnnotations(c.Here)...)
	if at, s := c.wantedSource(); s != nil && s.Mode == v1alpha1.ModeCreate {
		t.Notes = append(t.Notes, "the source in "+at+" has mode create, so any object of this name is left as it is")
	} else if s != nil {
		t.Notes = append(t.Notes, "it has the name of a copy from "+at+
			": rename or delete it, then the operator writes the copy")
	}
	return t
}

// whyNotCopied explains why no copies are made of the object here. source is that object as a source; nil if it is
// none. The text is "" for a source that is copied, and for an object that nobody takes for a source.
func (c Case) whyNotCopied(source *copies.Source) string {
	outside := outsideTrees(c.View.Forest, c.Slot.Namespace)
	switch {
	case source == nil && c.Here.Labels[v1alpha1.LabelInheritedFrom] != "":
		return "it has the label " + v1alpha1.LabelInheritedFrom + ", but the operator did not write it"
	case source == nil && asksForCopies(c.Here) && c.whyNoSource(c.Here) != "":
		return "it isn't copied: " + c.whyNoSource(c.Here)
	case source == nil:
		return ""
	case source.Invalid != "":
		return "it is no valid source: " + source.Invalid
	case source.Mode == v1alpha1.ModeNone:
		return "it isn't copied: its label " + v1alpha1.LabelPropagate + " is none"
	case source.Excluded != "":
		return "it is never propagated: " + source.Excluded
	case c.isUnlisted():
		return "it isn't copied: " + c.notListed()
	case outside != "":
		return "it isn't copied: " + outside
	}
	return ""
}

// kindMode returns the kind's mode of propagation. If the configuration can't be read, it is All for a copy whose
// source lacks the label propagate, and otherwise OptIn, the default.
func (c Case) kindMode() copies.KindMode {
	switch {
	case c.Configured:
		return c.Mode
	case c.Here == nil:
		return copies.OptIn
	}
	from, _, ok := Origin(c.Slot.Kind, c.Here)
	place := c.foundAbove(from)
	if !ok || place.Object == nil {
		return copies.OptIn
	}
	if _, opted := place.Object.Labels[v1alpha1.LabelPropagate]; opted {
		return copies.OptIn
	}
	return copies.All
}

// foundAbove returns the place of a namespace; an Unread one if it is not among c.Above.
func (c Case) foundAbove(namespace string) Place {
	i := slices.IndexFunc(c.Above, func(p Place) bool { return p.Namespace == namespace })
	if i < 0 {
		return Place{Namespace: namespace, Unread: true}
	}
	return c.Above[i]
}

// pathFrom returns the namespaces on the way from a source's namespace to here. If the source's namespace isn't a known
// ancestor, the way has only these two; below a template that can't be read, it has the source's namespace and all
// known ancestors.
func (c Case) pathFrom(from string) []string {
	sources, _ := c.View.Forest.Sources(c.Slot.Namespace)
	names := append(slices.Clone(sources.Names), c.Slot.Namespace)
	if i := slices.Index(names, from); i >= 0 {
		return names[i:]
	}
	if sources.Unknown != "" { // a template that can't be read is above all others
		return append([]string{from}, names...)
	}
	return []string{from, c.Slot.Namespace}
}

// wantedSource returns the source that the operator would copy here if there were no object, and its namespace; nil if
// there is none.
func (c Case) wantedSource() (string, *copies.Source) {
	world := copies.NewWorld(c.View.Forest)
	world.SetKind(c.Slot.Kind, c.kindMode(), true)
	for _, p := range c.Above {
		if s := c.sourceIn(p); s != nil {
			world.PutSource(c.Slot.At(p.Namespace), s)
		}
	}
	action := world.Plan(c.Slot)
	if action.Verb != copies.Create {
		return "", nil
	}
	return action.Source.Namespace, world.Sources.At(action.Source)
}

// sourceIn returns the object in a namespace as a source; nil if it is none.
func (c Case) sourceIn(p Place) *copies.Source {
	if p.Object == nil {
		return nil
	}
	slot := c.Slot.At(p.Namespace)
	s, ok := c.Rules.SourceOf(slot, p.Object, c.kindMode())
	if !ok {
		return nil
	}
	if s.Excluded == "" { // SourceOf doesn't know the types of Secrets
		s.Excluded = c.Rules.Excluded(slot, p.Object, p.Type)
	}
	s.Content = "unread" // the content doesn't matter here
	return s
}

// describeFound says in words what was found in a namespace above.
func (c Case) describeFound(p Place) string {
	switch {
	case p.Unread:
		return "you may not read it"
	case p.Object == nil:
		return "none"
	}
	if from, _, ok := Origin(c.Slot.Kind, p.Object); ok {
		return "a copy of that in " + from
	}
	s := c.sourceIn(p)
	switch {
	case s == nil && c.whyNoSource(p.Object) != "":
		return "no source: " + c.whyNoSource(p.Object)
	case s == nil && !c.Configured:
		return "it lacks the label " + v1alpha1.LabelPropagate +
			": no source, unless the configuration has the kind in mode All"
	case s == nil:
		return "no source: it lacks the label " + v1alpha1.LabelPropagate
	case s.Invalid != "":
		return "no valid source: " + s.Invalid
	case s.Mode == v1alpha1.ModeNone:
		return "no source: the label " + v1alpha1.LabelPropagate + " is none"
	case s.Excluded != "":
		return "never propagated: " + s.Excluded
	case s.Terminating:
		return "a source that is being deleted"
	case s.Selector != nil && !s.Selector.Matches(labels.Set(c.View.Forest.SelectableLabels(c.Slot.Namespace))):
		return fmt.Sprintf("a source (%s), but only for namespaces with %s", s.Mode, s.Selector)
	}
	return fmt.Sprintf("a source (%s)", s.Mode)
}

// ofCopy returns the notes on a copy.
func (c Case) ofCopy(from, mode string) []string {
	var notes []string
	if mode == v1alpha1.ModeCreate {
		notes = append(notes, "it was written once, and now belongs to this namespace: it doesn't follow its source")
	}
	sources, ok := c.View.Forest.Sources(c.Slot.Namespace)
	at, s := c.wantedSource()
	source := c.foundAbove(from)
	switch {
	case !ok:
		return append(notes, c.whyUntouched())
	case s == nil && c.frozenSource() != "":
		return append(notes, c.frozenSource())
	case c.isUnlisted():
		return append(notes, c.notListed()+": it stays as it is")
	case mode == v1alpha1.ModeCreate:
		return notes
	case c.removesCopies():
		return append(notes, c.modeRemove()+": the operator deletes the copy")
	case !sources.Has(from) && !sources.Frozen(from):
		return append(notes, "namespace "+from+" is no longer above this one: the operator deletes the copy")
	case s != nil && at != from:
		return append(notes, "the source in "+at+", nearer the root, takes its place")
	case !source.Unread && source.Object == nil:
		return append(notes, "its source is gone: the operator deletes the copy")
	case s == nil && !source.Unread:
		return append(notes, "its source no longer reaches this namespace: the operator deletes the copy")
	}
	return notes
}

// whyAbsent explains why nothing is here.
func (c Case) whyAbsent() []string {
	sources, ok := c.View.Forest.Sources(c.Slot.Namespace)
	at, s := c.wantedSource()
	switch {
	case !ok:
		return []string{c.whyUntouched()}
	case c.isUnlisted():
		return []string{c.notListed()}
	case c.removesCopies():
		return []string{c.modeRemove()}
	case s != nil:
		return []string{"a copy from " + at + " should be here" + c.describeDue(at)}
	case c.frozenSource() != "":
		return []string{c.frozenSource()}
	}
	var notes []string
	if sources.Unknown != "" {
		notes = append(notes, "sources in templates are not shown: "+sources.Unknown+", or you may not read it")
	}
	switch {
	case len(c.Above) == 0:
		notes = append(notes, "no namespace is above "+c.Slot.Namespace+" from which it could come")
	case slices.ContainsFunc(c.Above, func(p Place) bool { return p.Unread }):
		notes = append(notes, "no source that you may read above "+c.Slot.Namespace+" reaches this namespace")
	default:
		notes = append(notes, "no source above "+c.Slot.Namespace+" reaches this namespace")
	}
	if !c.Configured {
		notes = append(notes, "the configuration can't be read, so it is not known whether propagation.kinds has this kind")
	}
	return notes
}

// frozenSource returns a sentence about a source above because of which no copy here is written or deleted; "" if there
// is none.
func (c Case) frozenSource() string {
	for _, p := range c.Above {
		if s := c.sourceIn(p); s != nil && (s.Invalid != "" || s.Terminating && s.Mode != v1alpha1.ModeNone) {
			return "the operator neither writes nor deletes a copy of this name here while the object in " + p.Namespace + " is " +
				c.describeFound(p)
		}
	}
	return ""
}

func (c Case) isUnlisted() bool { return c.Configured && c.Mode == "" }

func (c Case) removesCopies() bool { return c.Configured && c.Mode == copies.Remove }

func (c Case) modeRemove() string {
	return fmt.Sprintf("propagation.kinds has %s in mode Remove", c.Slot.Kind)
}

func (c Case) notListed() string {
	return fmt.Sprintf("the configuration doesn't have %s among propagation.kinds", c.Slot.Kind)
}

// whyUntouched explains why the operator writes nothing in the namespace.
func (c Case) whyUntouched() string {
	name := c.Slot.Namespace
	n, place := c.View.Forest.Namespace(name), c.View.Forest.Place(name)
	switch {
	case n == nil:
		return "there is no namespace " + name
	case n.Terminating:
		return "namespace " + name + " is being deleted"
	case place.Halted() && c.View.Partial:
		if halted := v1alpha1.FindCondition(c.View.Conditions[name], v1alpha1.ConditionHalted); halted != nil && halted.Status ==
			metav1.ConditionTrue {
			return fmt.Sprintf("namespace %s is halted (%s): %s", name, halted.Reason, halted.Message)
		}
		return "you may not read all that is above namespace " + name
	case place.Halted():
		return fmt.Sprintf("namespace %s is halted (%s): %s", name, place.Halt.Reason, place.Halt.Message)
	}
	return "namespace " + name + " is protected"
}
