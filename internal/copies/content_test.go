package copies_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/warren-tenancy/warren/internal/copies"
)

func TestJSONOfAnUpdate(t *testing.T) {
	over := &copies.Copy{UID: "uid", ResourceVersion: "42", Kept: &copies.Kept{
		Finalizers: []string{"example.com/f"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p",
			UID: types.UID("u")}},
		Labels: map[string]string{"argocd.argoproj.io/instance": "i"}, Annotations: map[string]string{"pv.kubernetes.io/x": "y"},
	}}
	want := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: s
  namespace: a
  uid: uid
  resourceVersion: "42"
  finalizers: [example.com/f]
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]
  labels: {app: x, argocd.argoproj.io/instance: i, tenancy.warren.dev/inherited-from: acme}
  annotations: {pv.kubernetes.io/x: "y", tenancy.warren.dev/source-hash: "update:p:c"}
data: {k: v}`)
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: s, labels: {app: x}}, data: {k: v}}"
	if diff := cmp.Diff(want, copyOf(t, configured(), text, over)); diff != "" {
		t.Errorf("guarded by both, with what others may keep: -want, +got:\n%s", diff)
	}
	over.Kept = nil
	got, _ := copyOf(t, configured(), text, over)["metadata"].(object)
	if got["uid"] != "uid" || got["resourceVersion"] != "42" || got["finalizers"] != nil {
		t.Errorf("metadata = %v", got)
	}
}

func TestJSONLeavesTheBodyAlone(t *testing.T) {
	body, slot := rendered(t, configured(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: s}, data: {k: v}}")
	write := func(namespace string) string {
		data, err := body.JSON(slot.At(namespace), "acme", copies.Hash{Mode: update, Place: namespace, Content: "c"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := write("a")
	over := &copies.Copy{UID: "u", ResourceVersion: "1", Kept: &copies.Kept{Labels: map[string]string{"l": "1"},
		Annotations: map[string]string{"n": "1"}}}
	if _, err := body.JSON(slot.At("b"), "acme", copies.Hash{}, over); err != nil {
		t.Fatal(err)
	}
	if again := write("a"); again != first {
		t.Errorf("one body serves many copies; got first\n%s\nthen\n%s", first, again)
	}
}

func TestContent(t *testing.T) {
	hash := func(text string) (string, uint64) {
		body, _ := rendered(t, configured(), text)
		if body.Size <= 0 || len(body.Content) != 32 {
			t.Errorf("Size = %d, Content = %q", body.Size, body.Content)
		}
		return body.Content, body.Meta
	}
	base, baseMeta := hash("{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x}, annotations: {note: one}}, type: Opaque, " +
		"data: {k: dg==}}")
	same := map[string]string{
		"Status": "{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x}, annotations: {note: one}}, type: Opaque, data: {k: " +
			"dg==}, status: {x: 1}}",
		"Version": "{apiVersion: v1, kind: Secret, metadata: {name: s, resourceVersion: '9', uid: z, labels: {app: x}, annotations: {note: " +
			"one}}, type: Opaque, data: {k: dg==}}",
		"Excluded": "{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x, argocd.argoproj.io/instance: i}, annotations: {note: " +
			"one}}, type: Opaque, data: {k: dg==}}",
		"Mode": "{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x, tenancy.warren.dev/propagate: create}, annotations: " +
			"{note: one, tenancy.warren.dev/select: a}}, type: Opaque, data: {k: dg==}}",
	}
	for name, text := range same {
		if got, meta := hash(text); got != base || meta != baseMeta {
			t.Errorf("%s is not written, yet the hash differs", name)
		}
	}
	differ := map[string]struct {
		text string
		meta bool
	}{
		"Data": {"{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x}, annotations: {note: one}}, type: Opaque, data: " +
			"{k: dGg=}}", false},
		"Type": {"{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x}, annotations: {note: one}}, type: example.com/x, " +
			"data: {k: dg==}}", false},
		"APIVersion": {"{apiVersion: v2, kind: Secret, metadata: {name: s, labels: {app: x}, annotations: {note: one}}, type: Opaque, data: " +
			"{k: dg==}}", false},
		"Label": {"{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: z}, annotations: {note: one}}, type: Opaque, data: " +
			"{k: dg==}}", true},
		"Annotation": {"{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x}}, type: Opaque, data: {k: dg==}}", true},
		"Side":       {"{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: x, note: one}}, type: Opaque, data: {k: dg==}}", true},
	}
	for name, tc := range differ {
		got, meta := hash(tc.text)
		if got == base {
			t.Errorf("%s is written, yet the hash is the same", name)
		}
		if (meta != baseMeta) != tc.meta {
			t.Errorf("%s: the digest of the metadata differs: %t", name, meta != baseMeta)
		}
	}
}

// The digest of labels and annotations is the same for a body and for a copy of it. Otherwise every copy would look changed after a
// restart.
func TestMetaIsThatOfTheCopy(t *testing.T) {
	for name, text := range map[string]string{
		"Job": "{apiVersion: batch/v1, kind: Job, metadata: {name: s, labels: {app: x, controller-uid: u, job-name: s}}, spec: {}}",
		"Claim": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: s, annotations: {note: one, pv.kubernetes.io/bind-completed: " +
			"done}}, spec: {}}",
		"Access": "{apiVersion: v1, kind: ConfigMap, metadata: {name: s, labels: {tenancy.warren.dev/tenant: acme, " +
			"tenancy.warren.dev/propagate: update}}}",
	} {
		t.Run(name, func(t *testing.T) {
			body, slot := rendered(t, copies.Rules{}, text)
			data, err := json.Marshal(copyOf(t, copies.Rules{}, text, nil))
			if err != nil {
				t.Fatal(err)
			}
			written := &metav1.PartialObjectMetadata{}
			if err := json.Unmarshal(data, written); err != nil {
				t.Fatal(err)
			}
			if c := (copies.Rules{}).CopyOf(slot.At("a"), written); c.Meta != body.Meta || c.Marked {
				t.Errorf("the copy reads as %+v, its body as %d", c, body.Meta)
			}
		})
	}
}

func TestRenderOfNoObject(t *testing.T) {
	if _, err := copies.Render(at("acme"), object{"metadata": "x"}, copies.Rules{}); err == nil ||
		!strings.Contains(err.Error(), "Secret acme/s") {
		t.Errorf("err = %v, want one that names the object", err)
	}
}
