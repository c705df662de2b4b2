package watchset_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestWatchesKeepFewStacks(t *testing.T) {
	t.Run("INF-I80 of 20 watches, no goroutine waits for a resync; when their streams end, each opens a new one and shows "+
		"an object", watchesKeepFewStacks)
}

// A watch needs no goroutine that waits for resyncs, and still follows its stream.
func watchesKeepFewStacks(t *testing.T) {
	const watches = 20
	var rights []string
	for i := range watches {
		rights = append(rights, both("secrets", fmt.Sprintf("n%d", i))...)
	}
	a := newAPI(rights...)
	bubble(t, a, quiet(), func(w *world) {
		var leases []*watchset.Lease
		for i := range watches {
			leases = append(leases, w.lease(in(fmt.Sprintf("n%d", i))))
		}
		judge := func() {
			t.Helper()
			all := make([]byte, 16<<20)
			stacks := string(all[:runtime.Stack(all, true)])
			if n := strings.Count(stacks, "cache.handleAnyWatch("); n < watches {
				t.Errorf("%d goroutines follow a stream, want %d: the names in client-go have changed, and this test with them", n, watches)
			}
			if n := strings.Count(stacks, "cache.(*Reflector).startResync("); n != 0 {
				t.Errorf("%d goroutines wait for a resync of %d watches, want none", n, watches)
			}
		}
		w.after(time.Second)
		judge()
		a.drop() // each watch must follow its next stream, too
		w.after(5 * time.Second)
		for i, l := range leases {
			namespace := fmt.Sprintf("n%d", i)
			a.put("secrets", namespace, "s")
			w.after(time.Millisecond)
			if w.is(l, watchset.Synced).Objects != 1 {
				t.Errorf("the watch of %s brings nothing", namespace)
			}
		}
		judge()
	})
}
