package distribute

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/forest"
)

// naming returns a ResourceDistribution that was written at a time and names these namespaces and trees.
func naming(written time.Time, included, trees []string) *v1alpha1.ResourceDistribution {
	rd := &v1alpha1.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "regcred", UID: "uid",
		CreationTimestamp: metav1.NewTime(written)}}
	rd.Spec.Resource = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"regcred"}}`)}
	rd.Spec.Targets = v1alpha1.DistributionTargets{IncludedNamespaces: named(included...), Combination: v1alpha1.CombinationUnion}
	for _, one := range trees {
		rd.Spec.Targets.Trees = append(rd.Spec.Targets.Trees, v1alpha1.NamespaceName(one))
	}
	return rd
}

func TestNamedNamespaces(t *testing.T) {
	written := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	plain := func(name, uid string) *forest.Namespace { return &forest.Namespace{Name: name, UID: uid} }
	bound := func(name string) *forest.Namespace {
		return &forest.Namespace{Name: name, UID: "sub", Labels: map[string]string{v1alpha1.LabelParent: "pay",
			v1alpha1.LabelBound: v1alpha1.True}}
	}
	tenants := func(name string) *forest.Namespace {
		return &forest.Namespace{Name: name, UID: "root", Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
			Annotations: map[string]string{v1alpha1.AnnotationLNamespaceUID: "lns"}}
	}
	empty := forest.New(forest.Rules{}).WithNamespace(&forest.Namespace{Name: "pay", UID: "pay",
		Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
	sub := func(after time.Duration) *forest.Snapshot {
		return empty.WithNamespace(bound("d1")).WithSub(&forest.Sub{Parent: "pay", Name: "d1", UID: "s", Created: written.Add(after)})
	}
	tenant := func(after time.Duration) *forest.Snapshot {
		return empty.WithNamespace(tenants("d1")).WithTenant(&forest.Tenant{Name: "d1", UID: "lns", Created: written.Add(after)})
	}
	gone := plain("d1", "first")
	gone.Terminating = true
	for name, c := range map[string]struct {
		seen   []*forest.Snapshot // the forests that are seen one after the other; the last one is the one that counts
		served bool
	}{
		"DIST-D92 the namespace that had the name": {[]*forest.Snapshot{empty.WithNamespace(plain("d1", "first"))}, true},
		"DIST-D92 another one, made directly": {[]*forest.Snapshot{empty.WithNamespace(plain("d1", "first")), empty,
			empty.WithNamespace(plain("d1", "other"))}, false},
		"DIST-D92 another one, of a SubNamespace": {[]*forest.Snapshot{empty.WithNamespace(plain("d1", "first")),
			sub(-time.Hour)}, false},
		"DIST-D92 one that was being deleted, and is made again": {[]*forest.Snapshot{empty.WithNamespace(gone),
			empty.WithNamespace(plain("d1", "other"))}, true},
		"DIST-D93 a missing name, made directly, whenever": {[]*forest.Snapshot{empty, empty.WithNamespace(plain("d1", "first"))},
			true},
		"DIST-D93 then another one": {[]*forest.Snapshot{empty, empty.WithNamespace(plain("d1", "first")),
			empty.WithNamespace(plain("d1", "other"))}, false},
		"DIST-D93 a missing name, of a later SubNamespace": {[]*forest.Snapshot{empty, sub(time.Hour)}, false},
		"DIST-D93 and then made directly": {[]*forest.Snapshot{empty, sub(time.Hour), empty,
			empty.WithNamespace(plain("d1", "first"))}, true},
		"DIST-D93 of a SubNamespace applied together":      {[]*forest.Snapshot{empty, sub(30 * time.Second)}, true},
		"DIST-D93 of a SubNamespace that was there before": {[]*forest.Snapshot{empty, sub(-time.Hour)}, true},
		"DIST-D93 of a SubNamespace that nobody knows":     {[]*forest.Snapshot{empty, empty.WithNamespace(bound("d1"))}, false},
		"DIST-D93 a missing name, of a later LNamespace":   {[]*forest.Snapshot{empty, tenant(time.Hour)}, false},
		"DIST-D93 of an LNamespace applied together":       {[]*forest.Snapshot{empty, tenant(30 * time.Second)}, true},
		"DIST-D93 taken before the operator saw the spec":  {[]*forest.Snapshot{sub(time.Hour)}, false},
		"DIST-D93 of an LNamespace, whose namespace nobody knew so far": {[]*forest.Snapshot{empty, empty.WithNamespace(tenants("d1")),
			tenant(0)}, true},
	} {
		for kind, rd := range map[string]*v1alpha1.ResourceDistribution{
			"included": naming(written, []string{"d1"}, nil), "tree": naming(written, nil, []string{"d1"}),
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				d := Read(rd, Settings{})
				var record Named
				for _, f := range c.seen {
					record, _ = d.RecordNames(f, record)
				}
				now := c.seen[len(c.seen)-1]
				want := map[bool]Choice{true: Chosen, false: Frozen}[c.served]
				if got := d.Targets.Choose(now, "d1", protected, record); got != want {
					t.Errorf("choice %d, want %d", got, want)
				}
				var replaced []string
				if !c.served {
					replaced = []string{"d1"}
				}
				if diff := cmp.Diff(replaced, record.Replaced(now)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestRecordOfNames(t *testing.T) {
	written := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rd := naming(written, []string{"d2", "d1"}, []string{"pay", "ghost"})
	f := woods("d1", "d2", "pay type=root", "x parent=pay")
	d := Read(rd, Settings{Kinds: nil})
	record, changed := d.RecordNames(f, d.Named)
	if !changed {
		t.Error("the first record is a change")
	}
	if _, changed = d.RecordNames(f, record); changed {
		t.Error("the second is none")
	}
	rd.Status.Named = record.write(d.Targets)
	if diff := cmp.Diff(record, Read(rd, Settings{}).Named); diff != "" {
		t.Errorf("a status doesn't keep it: %s", diff)
	}
	t.Run("DIST-D92 a change of spec.targets makes another record", func(t *testing.T) {
		changed := rd.DeepCopy()
		changed.Spec.Targets.IncludedNamespaces = named("d1")
		if d := Read(changed, Settings{}); d.Named != nil {
			t.Errorf("the old record counts: %v", d.Named)
		}
		changed = rd.DeepCopy()
		changed.Spec.ConflictPolicy = v1alpha1.ConflictSkip
		if d := Read(changed, Settings{}); d.Named == nil {
			t.Error("the record is lost by a change of another field")
		}
	})
	t.Run("DIST-D92 a status of an earlier version has none: what is there is meant", func(t *testing.T) {
		old := rd.DeepCopy()
		old.Status.Named, old.Status.Targets = nil, 1
		late := f.WithNamespace(&forest.Namespace{Name: "d1", UID: "sub", Labels: map[string]string{v1alpha1.LabelParent: "pay",
			v1alpha1.LabelBound: v1alpha1.True}}).
			WithSub(&forest.Sub{Parent: "pay", Name: "d1", Created: written.Add(time.Hour)})
		d := Read(old, Settings{})
		record, _ := d.RecordNames(late, d.Named)
		if !record.Means(late, "d1") {
			t.Error("d1 is not served any more")
		}
	})
	t.Run("the last manager that wrote the spec dates it", func(t *testing.T) {
		later := metav1.NewTime(written.Add(time.Hour))
		dated := rd.DeepCopy()
		for _, entry := range []struct{ subresource, fields string }{{"", `{"f:metadata":{}}`}, {"status", `{"f:spec":{}}`}} {
			dated.ManagedFields = append(dated.ManagedFields, metav1.ManagedFieldsEntry{Subresource: entry.subresource, Time: &later,
				FieldsV1: fieldsOf(entry.fields)})
		}
		if got := Read(dated, Settings{}).written; !got.Equal(written) {
			t.Errorf("written %v", got)
		}
		dated.ManagedFields = append(dated.ManagedFields,
			metav1.ManagedFieldsEntry{Time: &later, FieldsV1: fieldsOf(`{"f:spec":{"f:targets":{}}}`)})
		if got := Read(dated, Settings{}).written; !got.Equal(later.Time) {
			t.Errorf("written %v", got)
		}
	})
}

func fieldsOf(text string) *metav1.FieldsV1 {
	fields := &metav1.FieldsV1{}
	if err := json.Unmarshal([]byte(text), fields); err != nil {
		panic(err)
	}
	return fields
}
