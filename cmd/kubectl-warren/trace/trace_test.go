package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/trace"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/tree"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/rules"
)

var slot = copies.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "web", Name: "key"}

// view reads a forest from lines such as "web parent=org", where keys are labels without their domain.
func view(lines ...string) tree.View {
	v := tree.View{Forest: forest.New(forest.Rules{}), Conditions: map[string][]metav1.Condition{}}
	for _, line := range lines {
		words := strings.Fields(line)
		n := &forest.Namespace{Name: words[0], Labels: map[string]string{}}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			n.Labels[v1alpha1.Domain+"/"+key] = value
		}
		v.Forest = v.Forest.WithNamespace(n)
	}
	return v
}

// grown returns template base, below it root org, below that mid and web.
func grown(more ...string) tree.View {
	return view(append([]string{"base type=template", "org type=root template=base", "mid parent=org", "web parent=mid"}, more...)...)
}

// told returns the view of grown, with condition Propagated False in a namespace.
func told(namespace, reason, message string) tree.View {
	v := grown()
	v.Conditions[namespace] = []metav1.Condition{{Type: "Propagated", Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	return v
}

func object(labels ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.Labels, o.Annotations = map[string]string{}, map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		o.Labels[labels[i]] = labels[i+1]
	}
	return o
}

func source(mode string) *metav1.PartialObjectMetadata { return object(v1alpha1.LabelPropagate, mode) }

func selecting(selector string) *metav1.PartialObjectMetadata {
	o := source(v1alpha1.ModeUpdate)
	o.Annotations[v1alpha1.AnnotationSelect] = selector
	return o
}

func noted(keys ...string) *metav1.PartialObjectMetadata { return annotated(object(), keys...) }

func annotated(o *metav1.PartialObjectMetadata, keys ...string) *metav1.PartialObjectMetadata {
	for _, key := range keys {
		o.Annotations[key] = "update"
	}
	return o
}

func ended(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	o.DeletionTimestamp = &metav1.Time{}
	return o
}

// copied returns a copy in namespace web, as the operator writes it.
func copied(from, mode string) *metav1.PartialObjectMetadata {
	o := object(v1alpha1.LabelInheritedFrom, from, v1alpha1.LabelPropagate, mode)
	o.Namespace, o.Name = slot.Namespace, slot.Name
	o.Annotations[v1alpha1.AnnotationSourceHash] = copies.Hash{Mode: mode, Place: copies.PlaceOf(slot, from),
		Content: strings.Repeat("0", 32)}.String()
	return o
}

// above returns the places base, org and mid, with these objects in them.
func above(base, org, mid *metav1.PartialObjectMetadata) []trace.Place {
	return []trace.Place{{Namespace: "base", Object: base}, {Namespace: "org", Object: org}, {Namespace: "mid", Object: mid}}
}

func TestOf(t *testing.T) {
	const update, create = v1alpha1.ModeUpdate, v1alpha1.ModeCreate
	conflict := told("web", "Rejected", `Secret "key" from "org": no`)
	never := copies.Rules{NeverPropagate: func(_ schema.GroupKind, name, _ string, _ map[string]string) bool { return name == slot.Name }}
	distributed := source(update)
	distributed.Labels[v1alpha1.LabelDistributedBy] = "keys"
	distributed.Annotations[v1alpha1.AnnotationSourceHash] = copied("org", update).Annotations[v1alpha1.AnnotationSourceHash]
	partial := view("web parent=mid")
	partial.Partial = true
	cases := map[string]struct {
		c    trace.Case
		want string
	}{
		"a copy from a template": {trace.Case{View: grown(), Here: copied("base", update), Above: above(source(update), nil, nil)},
			"Copy base base>org>mid>web update"},
		"a copy from an ancestor": {trace.Case{View: grown(), Here: copied("mid", update), Above: above(nil, nil, source(update))},
			"Copy mid mid>web update"},
		"made once": {
			trace.Case{View: grown(), Here: copied("org", create), Above: above(nil, nil, nil)},
			"Copy org org>mid>web create; it was written once, and now belongs to this namespace: it doesn't follow its source",
		},
		"its source is gone": {trace.Case{View: grown(), Here: copied("org", update), Above: above(nil, nil, nil)},
			"Copy org org>mid>web update; its source is gone: the operator deletes the copy"},
		"its source selects others": {trace.Case{View: grown(), Here: copied("org", update), Above: above(nil, selecting("a=b"), nil)},
			"Copy org org>mid>web update; its source no longer reaches this namespace: the operator deletes the copy"},
		"another is nearer the root": {trace.Case{View: grown(), Here: copied("mid", update), Above: above(source(update), nil, source(update))},
			"Copy mid mid>web update; the source in base, nearer the root, takes its place"},
		"from elsewhere": {trace.Case{View: grown("shop type=root"), Here: copied("shop", update), Above: above(nil, nil, nil)},
			"Copy shop shop>web update; namespace shop is no longer above this one: the operator deletes the copy"},
		"its source is broken": {trace.Case{View: grown(), Here: copied("org", update), Above: above(nil, source("x"), nil)},
			`Copy org org>mid>web update; the operator neither writes nor deletes a copy of this name here while the object in org is ` +
				`no valid source: ` +
				`label tenancy.warren.dev/propagate must be create, update or none, not "x"`},
		"of a kind as a whole": {trace.Case{View: grown(), Here: copied("org", update), Above: above(nil, object(), nil)},
			"Copy org org>mid>web update"},
		"of a kind not configured": {
			trace.Case{View: grown(), Here: copied("org", update), Above: above(nil, source(update), nil), Configured: true},
			"Copy org org>mid>web update; the configuration doesn't have Secret among propagation.kinds: it stays as it is",
		},
		"halted": {
			trace.Case{View: view("web parent=gone"), Here: copied("org", update)},
			"Copy org org>web update; namespace web is halted (ParentMissing): parent namespace gone does not exist",
		},
		"a source": {trace.Case{View: grown(), Here: source(update), Above: above(nil, nil, nil)}, "Source update"},
		"a source in the way": {trace.Case{View: grown(), Here: source(update), Above: above(nil, source(update), nil)},
			"Source update; it has the name of a copy from org: rename or delete it, then the operator writes the copy"},
		"PROP-E6 trace names the labels of a source that match propagation.excludedLabels": {
			trace.Case{
				View: grown(), Here: copied("org", update), Above: above(nil, object(v1alpha1.LabelPropagate, update, "app.kubernetes.io/part-of", "x",
					"team", "y"), nil),
				Rules: copies.Rules{ExcludedLabel: func(key string) bool { return strings.Contains(key, "kubernetes.io/") }},
			},
			"Copy org org>mid>web update; these labels of its source are never copied: app.kubernetes.io/part-of (propagation.excludedLabels of " +
				"the configuration)",
		},
		"PROP-E6 trace names annotations that match propagation.excludedAnnotations, but not last-applied-configuration": {
			trace.Case{
				View: grown(), Here: copied("org", update), Above: above(nil, annotated(source(update), "deployment.kubernetes.io/revision",
					corev1.LastAppliedConfigAnnotation, "nginx.ingress.kubernetes.io/auth-url"), nil),
				Rules: rules.ForCopies(configfile.Default()),
			},
			"Copy org org>mid>web update; these annotations of its source are never copied: deployment.kubernetes.io/revision " +
				"(propagation.excludedAnnotations of the configuration)",
		},
		"PROP-E5 trace of a labelled object has as reason that its kind is not configured": {
			trace.Case{View: grown(), Here: source(update), Above: above(nil, nil, nil), Configured: true},
			"Other; it isn't copied: the configuration doesn't have Secret among propagation.kinds",
		},
		"PROP-E5 trace of a labelled object has as reason that its namespace is in no tree": {trace.Case{View: view("web"), Here: source(update)},
			"Other; it isn't copied: namespace web is in no tree"},
		"PROP-E5 trace of a labelled object has as reason that " +
			"its namespace is protected": {trace.Case{View: view("web protected=true"), Here: source(update)},
			"Other; it isn't copied: namespace web is protected, and can be in no tree"},
		"PROP-E5 trace names an annotation in place of the label": {
			trace.Case{View: grown(), Here: noted(v1alpha1.LabelPropagate, "propagate.hnc.x-k8s.io/treeSelect"), Above: above(nil, nil, nil)},
			"Other; its annotation propagate.hnc.x-k8s.io/treeSelect does nothing: use label tenancy.warren.dev/propagate and annotation " +
				"tenancy.warren.dev/select; " +
				"its annotation tenancy.warren.dev/propagate does nothing, because propagate is a label",
		},
		"somebody's own": {trace.Case{View: grown(), Here: object(), Above: above(nil, nil, nil)}, "Other"},
		"in the way": {trace.Case{View: grown(), Here: object(), Above: above(source(update), nil, nil)},
			"Other; it has the name of a copy from base: rename or delete it, then the operator writes the copy"},
		"good enough": {trace.Case{View: grown(), Here: object(), Above: above(source(create), nil, nil)},
			"Other; the source in base has mode create, so any object of this name is left as it is"},
		"no copy of the operator's": {trace.Case{View: grown(), Here: object(v1alpha1.LabelInheritedFrom, "org"), Above: above(nil, nil, nil)},
			"Other; it has the label tenancy.warren.dev/inherited-from, but the operator did not write it"},

		"due": {trace.Case{View: grown(), Above: above(nil, source(update), nil)},
			"Absent; a copy from org should be here, but does not exist yet"},
		"due, refused": {trace.Case{View: conflict, Above: above(nil, source(update), nil)},
			`Absent; a copy from org should be here, but does not exist: Rejected: no`},
		"PROP-X9 a copy is due, and Propagated names only another one: trace has \"does not exist yet\"": {
			trace.Case{View: told("web", "Rejected", `Secret "other" from "org": no`), Above: above(nil, source(update), nil)},
			"Absent; a copy from org should be here, but does not exist yet",
		},
		"PROP-X9 Propagated names a copy among others: trace has the sentence about this copy alone": {
			trace.Case{View: told("web", "Conflict",
				`Secret "a" from "org": no; Secret "key" from "org": why; because; Secret "z" from "org": no; and 3 more`),
				Above: above(nil, source(update), nil)},
			"Absent; a copy from org should be here, but does not exist: Conflict: why; because",
		},
		"PROP-X9 Propagated names a kind that ends alike: trace has \"does not exist yet\"": {
			trace.Case{View: told("web", "Conflict", `SealedSecret "key" from "org": no`), Above: above(nil, source(update), nil)},
			"Absent; a copy from org should be here, but does not exist yet",
		},
		"PROP-X9 trace has the limit that the source's namespace reports": {
			trace.Case{View: told("org", "LimitExceeded", `Secret "key" from "org": 3 copies too many`), Above: above(nil, source(update), nil)},
			"Absent; a copy from org should be here, but does not exist: LimitExceeded: 3 copies too many",
		},
		"PROP-X9 trace names the copy that must be removed first": {
			trace.Case{View: told("web", "WaitingForRemoval", `Secret "old" from "shop": it goes`), Above: above(nil, source(update), nil)},
			`Absent; a copy from org should be here, but does not exist: WaitingForRemoval: Secret "old" from "shop": it goes`,
		},
		"PROP-X9 no copy is due of a Secret of a type that is never propagated": {
			trace.Case{View: grown(), Above: []trace.Place{{Namespace: "org", Object: object(), Type: "helm.sh/release.v1"}},
				Mode: copies.All, Configured: true},
			"Absent; no source above web reaches this namespace",
		},
		"PROP-X9 no copy is due of an object that neverPropagate matches": {
			trace.Case{View: grown(), Above: above(nil, object(), nil), Mode: copies.All, Configured: true, Rules: never},
			"Absent; no source above web reaches this namespace",
		},
		"PROP-X9 trace of an object that neverPropagate matches has \"never propagated\" with the reason": {
			trace.Case{View: grown(), Here: object(), Above: above(nil, nil, nil), Mode: copies.All, Configured: true, Rules: never},
			"Other; it is never propagated: propagation.neverPropagate of the configuration excludes it",
		},
		"PROP-X9 trace of an object with label none has that label as reason": {
			trace.Case{View: grown(), Here: source("none"), Above: above(nil, nil, nil), Mode: copies.All, Configured: true},
			"Other; it isn't copied: its label tenancy.warren.dev/propagate is none",
		},
		"PROP-X9 trace of an object with an invalid label has \"no valid source\"": {
			trace.Case{View: grown(), Here: source("x"), Above: above(nil, nil, nil), Mode: copies.All, Configured: true},
			"Other; it is no valid source: label tenancy.warren.dev/propagate must be create, update or none, not \"x\"",
		},
		"PROP-X9 trace of a Secret of such a type has \"never propagated\" with the reason": {
			trace.Case{View: grown(), Here: object(), Type: "helm.sh/release.v1", Above: above(nil, nil, nil), Mode: copies.All, Configured: true},
			"Other; it is never propagated: Secrets of type helm.sh/release.v1 are never propagated",
		},
		"nothing asks for it": {
			trace.Case{View: grown(), Above: above(source("none"), selecting("a=b"), nil), Mode: copies.OptIn, Configured: true},
			"Absent; no source above web reaches this namespace",
		},
		"nothing is seen to ask for it": {
			trace.Case{View: grown(), Above: above(nil, nil, nil)},
			"Absent; no source above web reaches this namespace; the configuration can't be read, so it is not known whether propagation.kinds " +
				"has this kind",
		},
		"what could ask is broken": {
			trace.Case{View: grown(), Above: above(nil, ended(source(update)), nil)},
			"Absent; the operator neither writes nor deletes a copy of this name here while the object in org is a source that is being deleted",
		},
		"what could ask is unread": {
			trace.Case{View: grown(), Above: []trace.Place{{Namespace: "org", Unread: true}}, Mode: copies.OptIn, Configured: true},
			"Absent; no source that you may read above web reaches this namespace",
		},
		"the kind is not configured": {trace.Case{View: grown(), Above: above(nil, source(update), nil), Configured: true},
			"Absent; the configuration doesn't have Secret among propagation.kinds"},
		"the kind is removed": {trace.Case{View: grown(), Above: above(nil, source(update), nil), Mode: copies.Remove, Configured: true},
			"Absent; propagation.kinds has Secret in mode Remove"},
		"PROP-X9 trace of a copy of a kind in mode Remove has the mode, and that the copy is deleted": {
			trace.Case{View: grown(), Here: copied("org", update), Above: above(nil, source(update), nil), Mode: copies.Remove, Configured: true},
			"Copy org org>mid>web update; propagation.kinds has Secret in mode Remove: the operator deletes the copy",
		},
		"PROP-X9 trace of a labelled object of a kind in mode Remove has the mode": {
			trace.Case{View: grown(), Here: source(update), Above: above(nil, nil, nil), Mode: copies.Remove, Configured: true},
			"Other; it isn't copied: propagation.kinds has Secret in mode Remove",
		},
		"PROP-X9 trace of a labelled copy of a ResourceDistribution has \"copies are never copied on\"": {
			trace.Case{View: grown(), Here: distributed, Above: above(nil, nil, nil), Mode: copies.OptIn, Configured: true},
			"Other; it isn't copied: it is a copy of ResourceDistribution keys, and copies are never copied on",
		},
		"the kind as a whole": {trace.Case{View: grown(), Above: above(nil, object(), nil), Mode: copies.All, Configured: true},
			"Absent; a copy from org should be here, but does not exist yet"},
		"nothing is above": {trace.Case{View: view("web"), Mode: copies.OptIn, Configured: true},
			"Absent; no namespace is above web from which it could come"},
		"what is above is unread": {trace.Case{View: partial}, "Absent; you may not read all that is above namespace web"},
		"a template is unread": {
			trace.Case{View: view("org type=root template=base", "mid parent=org", "web parent=mid"), Above: above(nil, nil, nil)[1:],
				Mode: copies.OptIn, Configured: true},
			"Absent; sources in templates are not shown: template base does not exist, or you may not read it; " +
				"no source above web reaches this namespace",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.c.Slot = slot
			got := trace.Of(c.c)
			words := append([]string{string(got.Verdict)}, got.From, strings.Join(got.Path, ">"), got.Mode)
			text := strings.Join(append([]string{strings.Join(strings.Fields(strings.Join(words, " ")), " ")}, got.Notes...), "; ")
			if diff := cmp.Diff(c.want, text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOfService(t *testing.T) {
	t.Run("PROP-E6 trace of a copy of a Service names the fields that it does not get", func(t *testing.T) {
		at := copies.Slot{Kind: schema.GroupKind{Kind: "Service"}, Namespace: "web", Name: "gate"}
		here := object(v1alpha1.LabelInheritedFrom, "org")
		here.Namespace, here.Name = at.Namespace, at.Name
		here.Annotations[v1alpha1.AnnotationSourceHash] = copies.Hash{Mode: v1alpha1.ModeUpdate, Place: copies.PlaceOf(at, "org"),
			Content: strings.Repeat("0", 32)}.String()
		got := trace.Of(trace.Case{View: grown(), Slot: at, Here: here, Above: above(nil, source(v1alpha1.ModeUpdate), nil)})
		want := []string{"these fields of its source are never copied: " + copies.OwnFields(at.Kind)}
		if diff := cmp.Diff(want, got.Notes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestWhyNotCopied(t *testing.T) {
	t.Run("PROP-E8 trace, describe and doctor report that a source with another program's finalizer is not copied; the text names the "+
		"finalizer", func(t *testing.T) {
		held := source(v1alpha1.ModeUpdate)
		held.Namespace, held.Name, held.Finalizers = "org", slot.Name, []string{"example.com/held"}
		const want = "it is never propagated: it has finalizers (example.com/held)"
		if got := trace.WhyNotCopied(grown().Forest, slot.Kind, held); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestWrite(t *testing.T) {
	finalized := source(v1alpha1.ModeUpdate)
	finalized.Finalizers = []string{"x/y"}
	c := trace.Case{View: grown("a parent=web", "b parent=a", "c parent=b"), Slot: copies.Slot{Kind: slot.Kind, Namespace: "c", Name: "key"},
		Above: append(above(source("none"), selecting("x=y"), object()),
			trace.Place{Namespace: "web", Object: copied("org", v1alpha1.ModeUpdate)}, trace.Place{Namespace: "a", Object: finalized},
			trace.Place{Namespace: "b", Unread: true})}
	const want = `There is no secret/key in c.
Note:  no source that you may read above c reaches this namespace
Note:  the configuration can't be read, so it is not known whether propagation.kinds has this kind

NAMESPACE   SECRET/KEY
base        no source: the label tenancy.warren.dev/propagate is none
org         a source (update), but only for namespaces with x=y
mid         it lacks the label tenancy.warren.dev/propagate: no source, unless the configuration has the kind in mode All
web         a copy of that in org
a           never propagated: it has finalizers (x/y)
b           you may not read it
`
	var text bytes.Buffer
	if err := trace.Of(c).Write(&text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text.Reset()
	org := trace.Of(trace.Case{View: grown(), Slot: slot, Here: copied("org", v1alpha1.ModeUpdate),
		Above: above(nil, source(v1alpha1.ModeUpdate), nil)})
	if err := org.Write(&text); err != nil {
		t.Fatal(err)
	}
	const ofCopy = `secret/key in web is a copy of that in org.
Path:  org -> mid -> web
Mode:  update

NAMESPACE   SECRET/KEY
base        none
org         a source (update)
mid         none
`
	if diff := cmp.Diff(ofCopy, text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
