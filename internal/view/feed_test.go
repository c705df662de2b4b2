package view

import (
	"cmp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

func TestStatusWrites(t *testing.T) {
	x := New(forest.Rules{})
	f := &Feed{x}
	x.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "acme", UID: "1", ResourceVersion: "1", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
	}})
	x.MarkSynced()
	changes := 0
	x.Subscribe(func(Change) { changes++ })
	sub := &v1alpha1.SubNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "a", UID: "2", Generation: 1}}
	tenant := &v1alpha1.LNamespace{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "3", Generation: 1}}
	f.takeSub(sub)
	f.TakeTenant(tenant)
	began := changes

	t.Run("PROP-Q4 writes of the statuses of SubNamespaces and LNamespaces do not change "+
		"the forest, so nothing is planned anew", func(t *testing.T) {
		for range 3 {
			sub, tenant = sub.DeepCopy(), tenant.DeepCopy()
			v1alpha1.SetCondition(&sub.Status.Conditions, 1, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNamespaceActive,
				"it is there")
			tenant.Status.SubNamespaces++
			f.takeSub(sub)
			f.TakeTenant(tenant)
		}
		if changes != began {
			t.Errorf("%d status writes made %d changes of the forest", 6, changes-began)
		}
	})
	t.Run("PROP-Q4 changes of their specs do change the forest", func(t *testing.T) {
		sub, tenant = sub.DeepCopy(), tenant.DeepCopy()
		sub.Spec.Labels = map[string]v1alpha1.LabelValue{"team": "x"}
		tenant.Spec.AllowCascadingDeletion = true
		f.takeSub(sub)
		f.TakeTenant(tenant)
		if changes != began+2 {
			t.Errorf("two changes of specs made %d changes of the forest", changes-began)
		}
	})
}

// An API server's answer shows a new namespace. A watch that lags behind doesn't bring back the old namespace of that name.
func TestOlderNamespaceOfTheName(t *testing.T) {
	t.Run("HIER-S10 once an answer has shown a new namespace, late news of the old one of that name, or its deletion, do not "+
		"change the view", func(t *testing.T) {
		x := New(forest.Rules{})
		f := &Feed{x}
		meta := func(uid, version string) *metav1.PartialObjectMetadata {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: types.UID(uid), ResourceVersion: version}}
		}
		f.TakeNamespace(meta("1", "5"))
		x.MarkSynced()
		x.Observe(meta("2", "9"))
		f.TakeNamespace(meta("1", "7"))
		f.DropNamespace(meta("1", "8"))
		if n := x.Snapshot().Namespace("acme"); n == nil || n.UID != "2" {
			t.Errorf("known is %+v", n)
		}
		f.TakeNamespace(meta("2", "9"))
		f.TakeNamespace(meta("3", "12"))
		if n := x.Snapshot().Namespace("acme"); n == nil || n.UID != "3" {
			t.Errorf("a later one isn't taken: %+v", n)
		}
	})
}

// While no watch is open, Namespaces may end. The list after it shows that by their absence, and its version by the informer's store alone.
func TestNamespacesThatEndWhileNoWatchIsOpen(t *testing.T) {
	meta := func(name, uid, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
	}
	for name, c := range map[string]struct {
		before *metav1.PartialObjectMetadata // an answer before the list
		after  *metav1.PartialObjectMetadata // an answer after it
		want   string                        // the UID that is known
	}{
		"HIER-S11 a late answer does not bring back a namespace that a list lacks": {after: meta("acme", "1", "12"), want: ""},
		"HIER-S11 a late answer about an older namespace does not bring that back in place of " +
			"the one that the list has": {after: meta("kept", "0", "12"), want: "k"},
		"HIER-S11 an answer that is newer than the list counts":                               {after: meta("acme", "2", "30"), want: "2"},
		"HIER-S12 a namespace that only an answer has shown ends when a list lacks it":        {before: meta("acme", "2", "12"), want: ""},
		"HIER-S12 a namespace that only an answer has shown stays while the list is older":    {before: meta("acme", "2", "30"), want: "2"},
		"HIER-S12 a namespace that an answer has shown before the list that has it stays too": {before: meta("kept", "k", "6"), want: "k"},
	} {
		t.Run(name, func(t *testing.T) {
			x, store := New(forest.Rules{}), cache.NewStore(cache.MetaNamespaceKeyFunc)
			x.store = store
			f := &Feed{x}
			handler := eventHandler(f.TakeNamespace, f.DropNamespace)
			old, kept := meta("acme", "1", "5"), meta("kept", "k", "6")
			if err := store.Replace([]any{old}, "5"); err != nil {
				t.Fatal(err)
			}
			handler.OnAdd(old, true)
			x.MarkSynced()
			if c.before != nil {
				x.Observe(c.before)
			}
			if err := store.Replace([]any{kept}, "25"); err != nil {
				t.Fatal(err)
			}
			handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "acme", Obj: old})
			handler.OnAdd(kept, false)
			if c.after != nil {
				x.Observe(c.after)
			}
			asked := cmp.Or(c.before, c.after).Name
			if got := string(x.UID(asked)); got != c.want {
				t.Errorf("known is %q, want %q", got, c.want)
			}
		})
	}
}

// HIER-P11: the watch of HierarchyConfigurations may show a request before the watch of Namespaces shows the parent.
func TestRequestBeforeItsParent(t *testing.T) {
	x := New(forest.Rules{})
	f := &Feed{x}
	meta := func(uid, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID(uid), ResourceVersion: version}}
	}
	x.MarkSynced()
	parent := "p"
	f.takeHierarchy(&v1alpha1.HierarchyConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: v1alpha1.HierarchyConfigurationName, UID: "h"},
		Spec:       v1alpha1.HierarchyConfigurationSpec{Parent: &parent},
	})
	f.TakeNamespace(meta("1", "5"))
	f.DropNamespace(meta("1", "6"))
	f.TakeNamespace(meta("2", "7"))
	if met := x.Snapshot().Hierarchy("x").ParentUID; met != "1" {
		t.Errorf("the request means %q, not the namespace that was there when it was written", met)
	}
}

func TestRequestForAParentThatWentWhileTheOperatorWasDown(t *testing.T) {
	t.Run("HIER-P22 a started operator refuses a request for a p that has gone, if the status has recorded the UID of p", func(t *testing.T) {
		x := New(forest.Rules{})
		f := &Feed{x}
		x.Observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "1", ResourceVersion: "1"}})
		hc := &v1alpha1.HierarchyConfiguration{ObjectMeta: metav1.ObjectMeta{
			Namespace: "x", Name: v1alpha1.HierarchyConfigurationName, UID: "2", Generation: 1,
		}}
		hc.Spec.Parent = new("p")
		hc.Status.ObservedGeneration, hc.Status.RequestedParentUID = 1, "3"
		f.takeHierarchy(hc)
		x.MarkSynced()

		s := x.Snapshot()
		if request := forest.RequestOf(s, "x"); len(request.Obstacles) != 1 {
			t.Errorf("the obstacles are %v, want that p was deleted", request.Obstacles)
		}
		if recorded := forest.FindRequestedParent(s, "x"); recorded != "3" {
			t.Errorf("the status would record %q", recorded)
		}
	})
}
