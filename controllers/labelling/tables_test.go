package labelling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

var (
	secrets = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	secret  = secrets.GroupKind()
	widget  = widgets.GroupKind()
)

func slotOf(namespace, name string) copies.Slot {
	return copies.Slot{Kind: secret, Namespace: namespace, Name: name}
}

// secretAt returns a Secret that Widget w of UID w1 controls, and that the operator has labelled. Its UID is its name.
func secretAt(namespace, name, version string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name),
		ResourceVersion: version, Labels: map[string]string{v1alpha1.LabelPropagate: "update"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: "w", UID: "w1", Controller: new(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: copies.GeneratedManager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:tenancy.warren.dev/propagate":{}}}}`)}},
	}}
}

// widgetAt returns Widget w of UID w1, which asks for the label.
func widgetAt(namespace string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w", UID: "w1", ResourceVersion: "1",
		Annotations: map[string]string{v1alpha1.AnnotationPropagateGenerated: "update"}}}
}

// A labelled object keeps its label until it is certain that no generator asks for the label.
func TestLook(t *testing.T) {
	state := func(s watchset.State) func(*tables) {
		return func(t *tables) { t.setState(widget, watchset.Status{State: s}) }
	}
	listed := func(generators ...client.Object) func(*tables) {
		return func(t *tables) { t.takeList(widget, "2", generators) }
	}
	asks := widgetAt("acme")
	// Objects of both kinds may be labelled. Which kind is a generator, differs.
	for name, c := range map[string]struct {
		reason string
		kinds  []schema.GroupVersionKind
		steps  []func(*tables)
		known  bool
		wanted string
	}{
		"PROP-G5 before the operator knows any " +
			"generator, it leaves labels alone": {"nothing was heard of generators", []schema.GroupVersionKind{widgets}, nil, false, ""},
		"PROP-G5 while generators are being listed, " +
			"it leaves labels alone": {"the list is on its way", []schema.GroupVersionKind{widgets}, []func(*tables){state(watchset.Syncing)},
			false, ""},
		"PROP-G5 once generators are listed, the label of an " +
			"object follows its generator": {"it asks", []schema.GroupVersionKind{widgets}, []func(*tables){listed(asks), state(watchset.Synced)},
			true, "update"},
		"PROP-G5 when generators may no longer be listed, it leaves labels alone": {"absence means nothing", []schema.GroupVersionKind{widgets},
			[]func(*tables){listed(asks), state(watchset.Synced), state(watchset.Forbidden)}, false, ""},
		"PROP-G2 if the list lacks the " +
			"generator, no label is wanted": {"it is gone", []schema.GroupVersionKind{widgets}, []func(*tables){listed(asks), state(watchset.Synced),
			listed()}, true, ""},
		"PROP-G2 a controller in another namespace is no " +
			"generator of the object": {"an owner is in the namespace", []schema.GroupVersionKind{widgets},
			[]func(*tables){listed(widgetAt("zeta")), state(watchset.Synced)}, true, ""},
		"PROP-G6 the objects of a kind that is no longer configured " +
			"as a generator keep their labels": {"the configuration doesn't name the kind", nil, nil, false, ""},
		"PROP-G6 they keep their labels also if the kind is still configured " +
			"as one that is generated": {"its watch shows no generators", nil, []func(*tables){listed(asks), state(watchset.Synced)}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := newTables([]schema.GroupVersionKind{secrets, widgets}, c.kinds)
			all.takeObject(secret, secretAt("acme", "s", "1"), true)
			for _, step := range c.steps {
				step(all)
			}
			object, wanted, _ := all.findObject(slotOf("acme", "s"))
			if (object != nil) != c.known || wanted != c.wanted {
				t.Errorf("%s: known %t, wanted %q", c.reason, object != nil, wanted)
			}
		})
	}
}

// If a kind is listed again and nothing has changed, no object that a generator controls is queued.
func TestReplaceKeepsWhatStays(t *testing.T) {
	all := newTables([]schema.GroupVersionKind{secrets}, []schema.GroupVersionKind{widgets})
	all.takeObject(secret, secretAt("acme", "s", "1"), true)
	if diff := cmp.Diff([]copies.Slot{slotOf("acme", "s")}, all.takeList(widget, "2", []client.Object{widgetAt("acme")})); diff != "" {
		t.Errorf("a generator comes: %s", diff)
	}
	if got := all.takeList(widget, "3", []client.Object{widgetAt("acme")}); len(got) > 0 {
		t.Errorf("nothing has changed: got %v", got)
	}
}

// The view asks for the objects of a namespace under its lock. So the cost must not depend on the objects of other namespaces.
func TestObjectsOfANamespace(t *testing.T) {
	t.Run("PROP-G8 when a namespace changes, only its own objects with controllers are queued, also after objects were created, changed "+
		"and deleted", func(t *testing.T) {
		all := newTables([]schema.GroupVersionKind{secrets}, nil)
		all.takeList(secret, "2", []client.Object{secretAt("a", "x", "1"), secretAt("a", "y", "1"), secretAt("b", "z", "1")})
		all.takeObject(secret, secretAt("a", "x", "3"), false)
		all.takeList(secret, "4", []client.Object{secretAt("a", "y", "2"), secretAt("c", "w", "2")})
		for namespace, want := range map[string][]copies.Slot{"a": {slotOf("a", "y")}, "b": nil, "c": {slotOf("c", "w")}} {
			if diff := cmp.Diff(want, all.slotsIn([]string{namespace})); diff != "" {
				t.Errorf("PROP-G8 %s: %s", namespace, diff)
			}
		}
	})
}

// A watch lists objects before it reports by which resource they are served. A worker that is faster finds no
// resource, and drops the object.
func TestObjectsListedBeforeTheirResource(t *testing.T) {
	t.Run("PROP-G9 objects that are listed before it is known how their kind is served are looked at "+
		"again when it is known", func(t *testing.T) {
		slot, all := slotOf("acme", "s"), newTables([]schema.GroupVersionKind{secrets}, []schema.GroupVersionKind{widgets})
		all.takeList(widget, "2", []client.Object{widgetAt("acme")})
		all.setState(widget, watchset.Status{State: watchset.Synced})
		all.setState(secret, watchset.Status{State: watchset.Syncing})
		all.takeList(secret, "2", []client.Object{secretAt("acme", "s", "1")})
		if _, wanted, served := all.findObject(slot); wanted != "update" || served.Resource.Resource != "" {
			t.Fatal(wanted, served)
		}
		now := watchset.Status{State: watchset.Synced, Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
		if diff := cmp.Diff([]copies.Slot{slot}, all.setState(secret, now)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingIsKeptOfObjectsThatNobodyControls(t *testing.T) {
	all := newTables([]schema.GroupVersionKind{secrets}, nil)
	all.takeObject(secret, secretAt("acme", "s", "1"), true)
	all.recordApplied(slotOf("acme", "s"), secretAt("acme", "s", "2"))
	if !all.wasApplied(slotOf("acme", "s"), "s") {
		t.Fatal("the answer says nothing")
	}
	// A user has taken off the ownerReference and the label. Then the object is deleted while no watch is open.
	freed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "s", UID: "s", ResourceVersion: "3"}}
	all.takeObject(secret, freed, true)
	all.takeList(secret, "4", nil)
	if len(all.applied) > 0 || !all.kinds[secret].IsEmpty() {
		t.Errorf("kept: %v", all.applied)
	}
}
