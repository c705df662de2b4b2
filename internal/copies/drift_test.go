package copies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
)

var written = metav1.NewTime(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))

func entry(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: &written,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// asWritten returns the metadata of a copy in namespace a after the operator's own write.
func asWritten() *metav1.PartialObjectMetadata {
	hash := copies.Hash{Mode: update, Place: copies.PlaceOf(at("a"), "acme"), Content: content("acme", 1)}
	m := &metav1.PartialObjectMetadata{}
	m.Name, m.Namespace, m.UID, m.ResourceVersion = "s", "a", "u", "7"
	m.Labels = map[string]string{v1alpha1.LabelInheritedFrom: "acme", "app": "x"}
	m.Annotations = map[string]string{v1alpha1.AnnotationSourceHash: hash.String()}
	m.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("warren", "",
			`{"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tenancy.warren.dev/inherited-from":{}}}}`),
	}
	return m
}

func later(e *metav1.ManagedFieldsEntry) {
	moved := metav1.NewTime(written.Add(time.Second))
	e.Time = &moved
}

func TestDigest(t *testing.T) {
	type change = func(*metav1.PartialObjectMetadata)
	add := func(entries ...metav1.ManagedFieldsEntry) change {
		return func(m *metav1.PartialObjectMetadata) { m.ManagedFields = append(m.ManagedFields, entries...) }
	}
	cases := map[string]struct {
		change change
		drift  bool
	}{
		"Nothing":            {func(*metav1.PartialObjectMetadata) {}, false},
		"ResourceVersion":    {func(m *metav1.PartialObjectMetadata) { m.ResourceVersion = "8" }, false},
		"Finalizer":          {func(m *metav1.PartialObjectMetadata) { m.Finalizers = []string{"f"} }, false},
		"OwnerReference":     {func(m *metav1.PartialObjectMetadata) { m.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, false},
		"ExcludedLabel":      {func(m *metav1.PartialObjectMetadata) { m.Labels["argocd.argoproj.io/instance"] = "i" }, false},
		"ExcludedAnnotation": {func(m *metav1.PartialObjectMetadata) { m.Annotations["deployment.kubernetes.io/revision"] = "1" }, false},
		"Label":              {func(m *metav1.PartialObjectMetadata) { m.Labels["foreign"] = "1" }, true},
		"LabelChanged":       {func(m *metav1.PartialObjectMetadata) { m.Labels["app"] = "y" }, true},
		"LabelRemoved":       {func(m *metav1.PartialObjectMetadata) { delete(m.Labels, "app") }, true},
		"LabelBecomesNote":   {func(m *metav1.PartialObjectMetadata) { delete(m.Labels, "app"); m.Annotations["app"] = "x" }, true},
		"Annotation":         {func(m *metav1.PartialObjectMetadata) { m.Annotations["note"] = "n" }, true},
		"OurKey":             {func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelPropagate] = update }, true},
		"InheritedFrom":      {func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelInheritedFrom] = "b" }, true},
		"Hash":               {func(m *metav1.PartialObjectMetadata) { m.Annotations[v1alpha1.AnnotationSourceHash] = "" }, true},
		"SomeonesField":      {add(entry("kubectl", "", `{"f:data":{"f:k":{}}}`)), true},
		"Scaled":             {add(entry("hpa", "scale", `{"f:spec":{"f:replicas":{}}}`)), true},
		"OurTimeMoved":       {func(m *metav1.PartialObjectMetadata) { later(&m.ManagedFields[0]) }, true},
		"OurEntryShrunk":     {func(m *metav1.PartialObjectMetadata) { m.ManagedFields[0].FieldsV1.SetRawString(`{"f:data":{".":{}}}`) }, true},
		"OurEntryGone":       {func(m *metav1.PartialObjectMetadata) { m.ManagedFields = nil }, true},
		"Status":             {add(entry("quota", "status", `{"f:status":{"f:used":{"f:pods":{}}}}`)), false},
		"StatusAndFinalizers": {add(entry("c", "status",
			`{"f:metadata":{"f:finalizers":{"v:\"f\"":{}},"f:ownerReferences":{".":{}}},"f:status":{}}`)), false},
		"StatusAndExcluded": {add(entry("c", "status",
			`{"f:metadata":{"f:annotations":{".":{},"f:deployment.kubernetes.io/revision":{}}},"f:status":{}}`)), false},
		"StatusAndLabel":   {add(entry("c", "status", `{"f:metadata":{"f:labels":{"f:app":{}}},"f:status":{}}`)), true},
		"StatusAndOurKey":  {add(entry("c", "status", `{"f:metadata":{"f:labels":{"f:tenancy.warren.dev/propagate":{}}}}`)), true},
		"NoFields":         {add(metav1.ManagedFieldsEntry{Manager: "c"}), false},
		"UnreadableFields": {add(entry("c", "", `{`)), false},
	}
	rules := configured()
	before := rules.Digest(asWritten())
	if before == 0 {
		t.Error("0 means that no digest is known")
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := asWritten()
			tc.change(m)
			if got := rules.Digest(m) != before; got != tc.drift {
				t.Errorf("drift: %t, want %t", got, tc.drift)
			}
		})
	}
}

func TestDigestDoesNotDependOnOrder(t *testing.T) {
	one, two := entry("a", "", `{"f:x":{},"f:y":{}}`), entry("b", "", `{"f:z":{}}`)
	turned := entry("a", "", `{"f:y":{},"f:x":{}}`)
	m, n := asWritten(), asWritten()
	m.ManagedFields, n.ManagedFields = []metav1.ManagedFieldsEntry{one, two}, []metav1.ManagedFieldsEntry{two, turned}
	if rules := configured(); rules.Digest(m) != rules.Digest(n) {
		t.Error("the same facts in another order are no drift")
	}
	n.ManagedFields[1].Time = nil
	if rules := configured(); rules.Digest(m) == rules.Digest(n) {
		t.Error("an entry without a time is another entry")
	}
	var none copies.Rules
	m.Labels["argocd.argoproj.io/instance"] = "i"
	if none.Digest(m) == none.Digest(asWritten()) {
		t.Error("what nobody excludes counts")
	}
}

func TestCopyOf(t *testing.T) {
	rules := configured()
	clean := rules.CopyOf(at("a"), asWritten())
	cases := map[string]struct {
		reason string
		change func(*metav1.PartialObjectMetadata)
		want   func(*copies.Copy)
	}{
		"Ours": {"the place fits", func(*metav1.PartialObjectMetadata) {}, func(*copies.Copy) {}},
		"Terminating": {"it goes", func(m *metav1.PartialObjectMetadata) { m.DeletionTimestamp = &written },
			func(c *copies.Copy) { c.Terminating = true }},
		"ForgedFrom": {
			"a label set by hand makes no copy", func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelInheritedFrom] = "b" },
			func(c *copies.Copy) { c.From, c.Ours = "b", false },
		},
		"Hashless": {
			"nor does one without a hash", func(m *metav1.PartialObjectMetadata) { m.Annotations = nil },
			func(c *copies.Copy) { c.Hash, c.Ours = copies.Hash{}, false },
		},
		"ForeignField": {"another manager owns a field", func(m *metav1.PartialObjectMetadata) {
			m.ManagedFields = append(m.ManagedFields, entry("kubectl", "", `{"f:data":{}}`))
		}, func(c *copies.Copy) { c.Foreign = true }},
		"ForeignStatus": {"status is not ours", func(m *metav1.PartialObjectMetadata) {
			m.ManagedFields = append(m.ManagedFields, entry("quota", "status", `{"f:status":{}}`))
		}, func(*copies.Copy) {}},
		"Labelled": {"another label shows in the digest of the labels", func(m *metav1.PartialObjectMetadata) { m.Labels["l"] = "1" },
			func(c *copies.Copy) { c.Meta = 0 }},
		"MarkedAsSource": {"a copy is never a source", func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelPropagate] = update },
			func(c *copies.Copy) { c.Marked = true }},
		"Selecting": {"nor does it select", func(m *metav1.PartialObjectMetadata) { m.Annotations[v1alpha1.AnnotationSelect] = "a" },
			func(c *copies.Copy) { c.Marked = true }},
		"AccessMark": {"marks of access objects go along", func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelTenant] = "acme" },
			func(c *copies.Copy) { c.Meta = 0 }},
		"Kept": {
			"what others may keep there", func(m *metav1.PartialObjectMetadata) {
				m.Finalizers, m.OwnerReferences = []string{"f"}, []metav1.OwnerReference{{Name: "o"}}
				m.Labels["argocd.argoproj.io/instance"], m.Annotations["x.kubernetes.io/y"] = "i", "z"
			},
			func(c *copies.Copy) {
				c.Kept = &copies.Kept{
					Finalizers: []string{"f"}, OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
					Labels: map[string]string{"argocd.argoproj.io/instance": "i"}, Annotations: map[string]string{"x.kubernetes.io/y": "z"},
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, want := asWritten(), *clean
			tc.change(m)
			tc.want(&want)
			got := rules.CopyOf(at("a"), m)
			if want.Meta == 0 {
				if got.Meta == clean.Meta {
					t.Errorf("%s: the digest of the labels is the same", tc.reason)
				}
				want.Meta = got.Meta
			}
			if diff := cmp.Diff(want, *got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if !clean.Ours || clean.From != "acme" || clean.Hash.Mode != update || clean.UID != "u" || clean.ResourceVersion != "7" ||
		clean.Kept != nil || clean.Foreign || clean.Marked {
		t.Errorf("a clean copy reads as %+v", clean)
	}
	if exported := rules.CopyOf(at("b"), asWritten()); exported.Ours {
		t.Error("a copy that somebody exported to another namespace is theirs")
	}
	if renamed := rules.CopyOf(other("a"), asWritten()); renamed.Ours {
		t.Error("so is one under another name")
	}
}
