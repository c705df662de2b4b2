package distribute

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
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
	rd.Spec.Targets = v1alpha1.DistributionTargets{IncludedNamespaces: named(included...)}
	for _, one := range trees {
		rd.Spec.Targets.Trees = append(rd.Spec.Targets.Trees, v1alpha1.NamespaceName(one))
	}
	return rd
}

// made returns a namespace that the operator created at a time, with these labels and annotations.
func made(name, uid string, created time.Time, labels, annotations map[string]string) *forest.Namespace {
	labels = maps.Clone(labels)
	labels[v1alpha1.LabelCreatedBy] = v1alpha1.OperatorName
	return &forest.Namespace{Name: name, UID: uid, Created: created, Labels: labels, Annotations: annotations}
}

func TestNamedNamespaces(t *testing.T) {
	written := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	later := written.Add(time.Hour)
	plain := func(name, uid string) *forest.Namespace {
		return &forest.Namespace{Name: name, UID: uid, Created: later}
	}
	bound := made("d1", "sub", later, map[string]string{v1alpha1.LabelParent: "pay", v1alpha1.LabelBound: v1alpha1.True}, nil)
	moved := made("d1", "sub", later, map[string]string{v1alpha1.LabelParent: "pay"}, nil)
	cut := made("d1", "sub", later, map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}, nil)
	root := func(uid string, created time.Time) *forest.Namespace {
		return made("d1", uid, created, map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot},
			map[string]string{v1alpha1.AnnotationLNamespaceUID: "lns"})
	}
	empty := forest.New(forest.Rules{}).WithNamespace(&forest.Namespace{Name: "pay", UID: "pay",
		Labels: map[string]string{v1alpha1.LabelType: v1alpha1.TypeRoot}})
	sub := func(after time.Duration) *forest.Snapshot {
		return empty.WithNamespace(bound).WithSub(&forest.Sub{Parent: "pay", Name: "d1", UID: "s", Created: written.Add(after)})
	}
	tenant := func(uid, creator string, after time.Duration) *forest.Snapshot {
		return empty.WithNamespace(root(uid, later)).
			WithTenant(&forest.Tenant{Name: "d1", UID: "lns", Creator: creator, Created: written.Add(after)})
	}
	unmarked := func(f *forest.Snapshot) *forest.Snapshot {
		n := *f.Namespace("d1")
		n.Labels = maps.Clone(n.Labels)
		delete(n.Labels, v1alpha1.LabelCreatedBy)
		return f.WithNamespace(&n)
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
		"DIST-D92 one that a tenant had before": {[]*forest.Snapshot{empty.WithNamespace(root("first", written.Add(-time.Second)))}, true},
		"DIST-D93 a missing name, made directly, whenever": {[]*forest.Snapshot{empty, empty.WithNamespace(plain("d1", "first"))},
			true},
		"DIST-D93 then another one": {[]*forest.Snapshot{empty, empty.WithNamespace(plain("d1", "first")),
			empty.WithNamespace(plain("d1", "other"))}, false},
		"DIST-D93 a missing name, of a later SubNamespace": {[]*forest.Snapshot{empty, sub(time.Second)}, false},
		"DIST-D93 of a SubNamespace of the same second":    {[]*forest.Snapshot{empty, sub(0)}, false},
		"DIST-D93 and then made directly": {[]*forest.Snapshot{empty, sub(time.Hour), empty,
			empty.WithNamespace(plain("d1", "first"))}, true},
		"DIST-D93 of a SubNamespace that was there before": {[]*forest.Snapshot{empty, sub(-time.Second)}, true},
		"DIST-D93 of a SubNamespace that nobody knows":     {[]*forest.Snapshot{empty, empty.WithNamespace(bound)}, false},
		"DIST-D93 of an LNamespace of a user":              {[]*forest.Snapshot{empty, tenant("root", "alice", time.Second)}, false},
		"DIST-D93 of a user's LNamespace of before":        {[]*forest.Snapshot{empty, tenant("root", "alice", -time.Second)}, true},
		"DIST-D93 of a cluster admin's LNamespace":         {[]*forest.Snapshot{empty, tenant("root", "", time.Hour)}, true},
		"DIST-D93 taken before the operator saw the spec":  {[]*forest.Snapshot{sub(time.Second)}, false},
		"DIST-D93 of an LNamespace, whose namespace nobody knew so far": {[]*forest.Snapshot{empty,
			empty.WithNamespace(root("root", later)), tenant("root", "", 0)}, true},
		"DIST-D119 bound, without the label of its maker": {[]*forest.Snapshot{empty, unmarked(sub(time.Hour))}, false},
		"DIST-D119 of a user's LNamespace, without that label": {[]*forest.Snapshot{empty, unmarked(tenant("root", "alice", time.Second))},
			false},
		"DIST-D119 moved by its tenant":      {[]*forest.Snapshot{empty, sub(time.Hour), empty.WithNamespace(moved)}, false},
		"DIST-D119 moved before it was seen": {[]*forest.Snapshot{empty, empty.WithNamespace(moved)}, false},
		"DIST-D119 cut":                      {[]*forest.Snapshot{empty, sub(time.Hour), empty.WithNamespace(cut)}, false},
		"DIST-D119 cut before it was seen":   {[]*forest.Snapshot{empty.WithNamespace(cut)}, false},
		"DIST-D119 adopted": {[]*forest.Snapshot{empty, sub(time.Hour), tenant("sub", "", 2*time.Hour)},
			false},
		"DIST-D119 cut, and then adopted": {[]*forest.Snapshot{empty, empty.WithNamespace(cut), tenant("sub", "", 0)},
			false},
		"DIST-D119 below an older SubNamespace":  {[]*forest.Snapshot{empty, sub(time.Hour), sub(-time.Hour)}, false},
		"DIST-D119 gone, and made by an admin's": {[]*forest.Snapshot{empty, sub(time.Hour), empty, tenant("root", "", 0)}, true},
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
	rd.Status.Named = record.write(d.Targets, d.written)
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
	t.Run("DIST-D92 a digest that begins as the record of nobody means one namespace", func(t *testing.T) {
		uid := ""
		for i := 0; !strings.HasPrefix(digestOf(uid), nobody); i++ {
			uid = strconv.Itoa(i)
		}
		first := f.WithNamespace(&forest.Namespace{Name: "ghost", UID: uid})
		record, _ := d.RecordNames(first, record)
		other := f.WithNamespace(&forest.Namespace{Name: "ghost", UID: "other"})
		if record, changed := d.RecordNames(other, record); changed || record.Means(other, "ghost") {
			t.Errorf("another namespace is meant: %v", record)
		}
	})
	t.Run("DIST-D119 a later change of another field doesn't date the targets anew", func(t *testing.T) {
		changed := rd.DeepCopy()
		rotated := metav1.NewTime(written.Add(2 * time.Hour))
		changed.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &rotated, FieldsV1: fieldsOf(`{"f:spec":{"f:resource":{}}}`)}}
		d := Read(changed, Settings{})
		between := f.WithNamespace(made("ghost", "sub", rotated.Time, map[string]string{v1alpha1.LabelParent: "pay",
			v1alpha1.LabelBound: v1alpha1.True}, nil)).
			WithSub(&forest.Sub{Parent: "pay", Name: "ghost", Created: written.Add(time.Hour)})
		if record, _ := d.RecordNames(between, d.Named); record.Means(between, "ghost") {
			t.Error("who took the name before the change of the content is served")
		}
		changed.Spec.Targets.Trees = changed.Spec.Targets.Trees[1:]
		if got := Read(changed, Settings{}).written; !got.Equal(rotated.Time) {
			t.Errorf("the new targets are of %v", got)
		}
	})
	t.Run("DIST-D92 a status of an earlier version has none: what is there is meant", func(t *testing.T) {
		old := rd.DeepCopy()
		old.Status.Named, old.Status.Targets = nil, 1
		late := f.WithNamespace(made("d1", "sub", written.Add(time.Hour), map[string]string{v1alpha1.LabelParent: "pay",
			v1alpha1.LabelBound: v1alpha1.True}, nil)).
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
		dated.Status.Named = nil
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
