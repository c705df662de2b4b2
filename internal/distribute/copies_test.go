package distribute

import (
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/internal/copies"
)

func asIs(namespace string) string { return namespace }

func TestCopies(t *testing.T) {
	const uid = "0d21e2c4-0000-4000-8000-00000000000f"
	cases := map[string]Copy{
		"Usual":                  {UID: uid, ResourceVersion: "4711", By: "rd", Ours: true, Content: "c", Owner: "o", Digest: 7, Known: true},
		"EveryFlag":              {UID: uid, ResourceVersion: "1", Terminating: true, Locked: true, Adopted: true, Foreign: true, Drifted: true},
		"Kept":                   {UID: uid, ResourceVersion: "1", Kept: &copies.Kept{Finalizers: []string{"example.com/hold"}}},
		"UIDInCapitals":          {UID: "0D21E2C4-0000-4000-8000-00000000000F", ResourceVersion: "1"},
		"VersionWithZeros":       {UID: uid, ResourceVersion: "007"},
		"VersionThatIsNoNumber":  {UID: uid, ResourceVersion: "abc", Kept: &copies.Kept{Finalizers: []string{"example.com/hold"}}},
		"VersionThatIsTooLarge":  {UID: uid, ResourceVersion: "18446744073709551616"},
		"NothingButThatItStands": {},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			c, slot := NewCopies(asIs), copies.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "d1", Name: "s"}
			c.Put(slot, &want)
			if diff := cmp.Diff(&want, c.At(slot)); diff != "" {
				t.Errorf("not what was put: %s", diff)
			}
			if all := maps.Collect(c.All()); len(all) != 1 || all[slot] == nil {
				t.Errorf("All are %v", all)
			}
			if in := maps.Collect(c.In("d2")); len(in) != 0 || c.At(slot.At("d2")) != nil {
				t.Errorf("something stands in d2: %v", in)
			}
			c.Delete(slot)
			c.Delete(slot)
			if all := maps.Collect(c.All()); len(all) != 0 {
				t.Errorf("left are %v", all)
			}
		})
	}
}

// BenchmarkCopies reports how many bytes of memory a copy takes.
func BenchmarkCopies(b *testing.B) {
	const many = 10000
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("many-%057d", i)
	}
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := NewCopies(asIs)
		for i, name := range names {
			c.Put(copies.Slot{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: name, Name: "s"}, &Copy{
				UID: fmt.Sprintf("0d21e2c4-0000-4000-8000-%012x", i), ResourceVersion: fmt.Sprint(1000000 + i), By: "rd", Ours: true,
				Content: "0123456789abcdef0123456789abcdef", Owner: "0d21e2c4-0000-4000-8000-00000000000f", Digest: uint64(i), Known: true,
			})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/many, "B/copy")
		runtime.KeepAlive(c)
	}
}
