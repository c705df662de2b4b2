package view

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
