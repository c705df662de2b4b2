package labelling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// A labelled object keeps its label until it is certain that no generator asks for the label.
func TestLook(t *testing.T) {
	widgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	kind := widgets.GroupKind()
	slot := copies.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "acme", Name: "s"}
	asks := map[types.UID]generator{"w1": {kind, "acme", "update"}}
	state := func(s watchset.State) func(*tables) {
		return func(t *tables) { t.setState(kind, watchset.Status{State: s}) }
	}
	listed := func(generators map[types.UID]generator) func(*tables) {
		return func(t *tables) { t.replaceObjects(kind, generators, nil) }
	}
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
			listed(nil)}, true, ""},
		"PROP-G2 a controller in another namespace is no " +
			"generator of the object": {"an owner is in the namespace", []schema.GroupVersionKind{widgets},
			[]func(*tables){listed(map[types.UID]generator{"w1": {kind, "zeta", "update"}}), state(watchset.Synced)}, true, ""},
		"PROP-G6 the objects of a kind that is no longer configured " +
			"as a generator keep their labels": {"the configuration doesn't name the kind", nil, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := newTables(c.kinds)
			all.putObject(slot, &copies.Generated{UID: "s1", ResourceVersion: "1", Controller: "w1", ControllerKind: kind, Mode: "update",
				Labelled: true, Ours: true})
			for _, step := range c.steps {
				step(all)
			}
			object, wanted, _ := all.findObject(slot)
			if (object != nil) != c.known || wanted != c.wanted {
				t.Errorf("%s: known %t, wanted %q", c.reason, object != nil, wanted)
			}
		})
	}
}

// If a kind is listed again and nothing has changed, no object that a generator controls is queued.
func TestReplaceKeepsWhatStays(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	slot := copies.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "acme", Name: "s"}
	all, asks := newTables(nil), map[types.UID]generator{"w1": {kind, "acme", "update"}}
	all.putObject(slot, &copies.Generated{UID: "s1", ResourceVersion: "1", Controller: "w1", ControllerKind: kind})
	if got := all.replaceObjects(kind, asks, nil); len(got) != 1 || got[0] != slot {
		t.Errorf("a generator comes: got %v", got)
	}
	if got := all.replaceObjects(kind, asks, nil); len(got) > 0 {
		t.Errorf("nothing has changed: got %v", got)
	}
}

// The view asks for the objects of a namespace under its lock. So the cost must not depend on the objects of other namespaces.
func TestObjectsOfANamespace(t *testing.T) {
	t.Run("PROP-G8 when a namespace changes, only its own objects with controllers are queued, also after objects were created, changed "+
		"and deleted", func(t *testing.T) {
		all, kind := newTables(nil), schema.GroupKind{Kind: "Secret"}
		slot := func(namespace, name string) copies.Slot {
			return copies.Slot{Kind: kind, Namespace: namespace, Name: name}
		}
		for _, s := range []copies.Slot{slot("a", "x"), slot("a", "y"), slot("b", "z")} {
			all.putObject(s, &copies.Generated{UID: types.UID(s.Name), ResourceVersion: "1"})
		}
		all.removeObject(slot("a", "x"))
		all.replaceObjects(kind, nil, map[copies.Slot]*copies.Generated{slot("a", "y"): {UID: "y", ResourceVersion: "2"},
			slot("c", "w"): {UID: "w", ResourceVersion: "2"}})
		for namespace, want := range map[string][]copies.Slot{"a": {slot("a", "y")}, "b": nil, "c": {slot("c", "w")}} {
			if diff := cmp.Diff(want, all.slotsIn([]string{namespace})); diff != "" {
				t.Errorf("PROP-G8 %s: %s", namespace, diff)
			}
		}
		if len(all.placed) != 2 {
			t.Errorf("PROP-G8 the index has %d namespaces, want the two that have objects", len(all.placed))
		}
	})
}

// A watch lists objects before it reports by which resource they are served. A worker that is faster finds no
// resource, and drops the object.
func TestObjectsListedBeforeTheirResource(t *testing.T) {
	t.Run("PROP-G9 objects that are listed before it is known how their kind is served are looked at "+
		"again when it is known", func(t *testing.T) {
		widgets, kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, schema.GroupKind{Kind: "Secret"}
		slot := copies.Slot{Kind: kind, Namespace: "acme", Name: "s"}
		all := newTables([]schema.GroupVersionKind{widgets})
		all.replaceObjects(widgets.GroupKind(), map[types.UID]generator{"w1": {widgets.GroupKind(), "acme", "update"}}, nil)
		all.setState(widgets.GroupKind(), watchset.Status{State: watchset.Synced})
		all.setState(kind, watchset.Status{State: watchset.Syncing})
		all.replaceObjects(kind, nil, map[copies.Slot]*copies.Generated{slot: {UID: "s1", ResourceVersion: "1", Controller: "w1",
			ControllerKind: widgets.GroupKind()}})
		if _, wanted, served := all.findObject(slot); wanted != "update" || served.Resource.Resource != "" {
			t.Fatal(wanted, served)
		}
		now := watchset.Status{State: watchset.Synced, Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}}
		if diff := cmp.Diff([]copies.Slot{slot}, all.setState(kind, now)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNothingIsKeptOfObjectsThatNobodyControls(t *testing.T) {
	kind := schema.GroupKind{Kind: "Secret"}
	slot := copies.Slot{Kind: kind, Namespace: "acme", Name: "s"}
	all := newTables(nil)
	all.putObject(slot, &copies.Generated{UID: "s1", ResourceVersion: "1", Controller: "w1"})
	all.applied[slot] = "s1"
	all.putObject(slot, nil)           // somebody has taken off the ownerReference and the label
	all.replaceObjects(kind, nil, nil) // then the object was deleted while no watch was open
	if len(all.applied) > 0 {
		t.Errorf("kept: %v", all.applied)
	}
}
