package copies

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
)

func TestRecord(t *testing.T) {
	slot := Slot{schema.GroupKind{Kind: "Secret"}, "a", "s"}
	place := PlaceOf(slot, "acme")
	tests := map[string]struct{ in, want Copy }{
		"a copy of ours": {in: Copy{
			UID: "0a1b2c3d-4e5f-6789-abcd-ef0123456789", ResourceVersion: "12345", From: "acme", Ours: true,
			Hash: Hash{v1alpha1.ModeUpdate, place, "c"}, Digest: 1, Meta: 2, Foreign: true, Kept: &Kept{Finalizers: []string{"x"}},
		}},
		"in mode create": {in: Copy{
			UID: "0a1b2c3d-4e5f-6789-abcd-ef0123456789", From: "acme", Ours: true, Hash: Hash{v1alpha1.ModeCreate, place, "c"}, Terminating: true,
		}},
		"marked and drifted": {in: Copy{From: "acme", Ours: true, Hash: Hash{v1alpha1.ModeUpdate, place, "c"}, Marked: true, Drifted: true}},
		"somebody's": {
			in:   Copy{UID: "u", ResourceVersion: "1", From: "acme", Hash: Hash{v1alpha1.ModeUpdate, "elsewhere", "c"}},
			want: Copy{UID: "u", ResourceVersion: "1", From: "acme"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.want == (Copy{}) {
				tt.want = tt.in
			}
			if diff := cmp.Diff(&tt.want, packCopy(&tt.in).unpackCopy(slot)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzRecordID(f *testing.F) {
	for _, uid := range []string{
		"", "u", "0a1b2c3d-4e5f-6789-abcd-ef0123456789", "0A1B2C3D-4E5F-6789-ABCD-EF0123456789", "0a1b2c3d-4e5f-6789-abcd-ef01234567890",
		"0a1b2c3d-4e5f-6789-abcd+ef0123456789", "seventeen bytes..",
	} {
		f.Add(uid, "12345")
	}
	f.Fuzz(func(t *testing.T, uid, resourceVersion string) {
		if u, v, _ := PackIdentity(uid, resourceVersion, nil).Unpack(); u != uid || v != resourceVersion {
			t.Errorf("%q %q came back as %q %q", uid, resourceVersion, u, v)
		}
	})
}

// The comment of record states these sizes. A copy may take 1 KiB of memory, of which the garbage collector needs half.
func TestRecordIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(record{}); size != 88 {
		t.Errorf("a record has %d bytes", size)
	}
	kept := testing.AllocsPerRun(100, func() { PackIdentity("0a1b2c3d-4e5f-6789-abcd-ef0123456789", "123456789", nil) })
	if kept != 0 {
		t.Errorf("an Identity takes %v allocations", kept)
	}
}
