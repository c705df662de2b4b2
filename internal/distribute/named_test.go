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
		"DIST-D92 a name means the namespace that has it when the targets are " +
			"written": {[]*forest.Snapshot{empty.WithNamespace(plain("d1", "first"))}, true},
		"DIST-D92 another namespace that takes the name later, created directly, gets " +
			"nothing": {[]*forest.Snapshot{empty.WithNamespace(plain("d1", "first")), empty,
			empty.WithNamespace(plain("d1", "other"))}, false},
		"DIST-D92 another namespace that takes the name later, of an older SubNamespace, gets " +
			"nothing": {[]*forest.Snapshot{empty.WithNamespace(plain("d1", "first")),
			sub(-time.Hour)}, false},
		"DIST-D92 if the namespace was being deleted when the targets were written, the next one gets the " +
			"copy": {[]*forest.Snapshot{empty.WithNamespace(gone),
			empty.WithNamespace(plain("d1", "other"))}, true},
		"DIST-D92 a tenant's namespace that has the name when the targets are written gets the " +
			"copy": {[]*forest.Snapshot{empty.WithNamespace(root("first", written.Add(-time.Second)))}, true},
		"DIST-D93 a namespace that is later created directly gets the " +
			"copy": {[]*forest.Snapshot{empty, empty.WithNamespace(plain("d1", "first"))},
			true},
		"DIST-D93 after a namespace that was created directly, the next one of its name gets " +
			"nothing": {[]*forest.Snapshot{empty, empty.WithNamespace(plain("d1", "first")),
			empty.WithNamespace(plain("d1", "other"))}, false},
		"DIST-D93 a namespace of a SubNamespace that is younger than the targets gets " +
			"nothing": {[]*forest.Snapshot{empty, sub(time.Second)}, false},
		"DIST-D93 a namespace of a SubNamespace of the same second gets nothing": {[]*forest.Snapshot{empty, sub(0)}, false},
		"DIST-D93 after a younger SubNamespace's namespace is deleted, one that is created directly gets the " +
			"copy": {[]*forest.Snapshot{empty, sub(time.Hour), empty,
			empty.WithNamespace(plain("d1", "first"))}, true},
		"DIST-D93 a namespace of a SubNamespace that is older than the targets gets the " +
			"copy": {[]*forest.Snapshot{empty, sub(-time.Second)}, true},
		"DIST-D93 a bound namespace whose SubNamespace is missing gets " +
			"nothing": {[]*forest.Snapshot{empty, empty.WithNamespace(bound)}, false},
		"DIST-D93 a root of a user's LNamespace that is younger than the targets gets " +
			"nothing": {[]*forest.Snapshot{empty, tenant("root", "alice", time.Second)}, false},
		"DIST-D93 a root of a user's LNamespace that is older than the targets gets the " +
			"copy": {[]*forest.Snapshot{empty, tenant("root", "alice", -time.Second)}, true},
		"DIST-D93 a root of a cluster admin's LNamespace gets the copy, at any " +
			"time": {[]*forest.Snapshot{empty, tenant("root", "", time.Hour)}, true},
		"DIST-D93 a younger SubNamespace's namespace that exists before the operator sees the targets gets " +
			"nothing": {[]*forest.Snapshot{sub(time.Second)}, false},
		"DIST-D93 a root that the operator sees before its cluster admin's LNamespace gets the copy": {[]*forest.Snapshot{empty,
			empty.WithNamespace(root("root", later)), tenant("root", "", 0)}, true},
		"DIST-D119 a bound namespace without the label of its creator, of a later SubNamespace, gets " +
			"nothing": {[]*forest.Snapshot{empty, unmarked(sub(time.Hour))}, false},
		"DIST-D119 a root of a user's later LNamespace, without the label of its creator, gets " +
			"nothing": {[]*forest.Snapshot{empty, unmarked(tenant("root", "alice", time.Second))},
			false},
		"DIST-D119 the namespace of a later SubNamespace gets nothing after its tenant has moved " +
			"it": {[]*forest.Snapshot{empty, sub(time.Hour), empty.WithNamespace(moved)}, false},
		"DIST-D119 the namespace of a later SubNamespace gets nothing if it is moved before the operator sees " +
			"it": {[]*forest.Snapshot{empty, empty.WithNamespace(moved)}, false},
		"DIST-D119 the namespace of a later SubNamespace gets nothing after it is cut from its " +
			"tree": {[]*forest.Snapshot{empty, sub(time.Hour), empty.WithNamespace(cut)}, false},
		"DIST-D119 a namespace that the operator created later gets nothing if it is cut before the operator sees " +
			"it": {[]*forest.Snapshot{empty.WithNamespace(cut)}, false},
		"DIST-D119 the namespace of a later SubNamespace gets nothing after a cluster admin's LNamespace adopts " +
			"it": {[]*forest.Snapshot{empty, sub(time.Hour), tenant("sub", "", 2*time.Hour)},
			false},
		"DIST-D119 the namespace of a later SubNamespace gets nothing after it is cut, and then adopted by a cluster admin's " +
			"LNamespace": {[]*forest.Snapshot{empty, empty.WithNamespace(cut), tenant("sub", "", 0)},
			false},
		"DIST-D119 the namespace of a later SubNamespace gets nothing, also if an older SubNamespace appears for " +
			"it": {[]*forest.Snapshot{empty, sub(time.Hour), sub(-time.Hour)}, false},
		"DIST-D119 when a later SubNamespace's namespace is deleted, and a cluster admin's LNamespace creates another one, " +
			"that one gets the copy": {[]*forest.Snapshot{empty, sub(time.Hour), empty, tenant("root", "", 0)}, true},
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
	rd.Status.Named = record.buildRecord(d.Targets, d.written)
	if diff := cmp.Diff(record, Read(rd, Settings{}).Named); diff != "" {
		t.Errorf("a status doesn't keep it: %s", diff)
	}
	t.Run("DIST-D125 a named namespace that was being deleted when the targets were written has replaced none", func(t *testing.T) {
		gone := f.WithNamespace(&forest.Namespace{Name: "ghost", UID: "first", Terminating: true})
		record, _ := d.RecordNames(gone, d.Named)
		if got := record.Replaced(gone); len(got) > 0 {
			t.Errorf("replaced: %v", got)
		}
	})
	t.Run("DIST-D92 a change of spec.targets starts a new record of names; a change of another field keeps it", func(t *testing.T) {
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
	t.Run("DIST-D92 a recorded UID whose hash looks like that of a missing name still means one namespace", func(t *testing.T) {
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
	t.Run("DIST-D119 a later change of the data does not make the targets younger: who took the name before gets nothing", func(t *testing.T) {
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
	t.Run("DIST-D92 if the status is of an earlier version, without a record, the namespaces that exist keep their "+
		"copies", func(t *testing.T) {
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
