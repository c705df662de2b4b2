package fairqueue

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// A key that waits may get a weight: the source whose slot it is was read meanwhile.
func TestWeightThatComesWhileAKeyWaits(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(map[bool]string{true: "shared", false: "alone"}[shared], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := false
				var mu sync.Mutex
				q := New(func(word string) Attributes {
					mu.Lock()
					defer mu.Unlock()
					turn := Attributes{Tenant: word[:1], Class: 2, Lane: word[:1]}
					if read && word[:1] == "a" {
						turn.Weight = 1 << 20
					}
					return turn
				}, clock.RealClock{})
				q.Lead()
				words := []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"}
				var now, most int
				work := func(word string) {
					mu.Lock()
					isRead := read
					if isRead && word[:1] == "a" {
						now++
						most = max(most, now)
					}
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					if isRead && word[:1] == "a" {
						now--
					}
				}
				if shared {
					q.Add("b")
				}
				q.Add(words...)
				if shared {
					workers(t, q, 8, work) // two are at it, the others are set aside
					synctest.Wait()
				}
				mu.Lock()
				read = true
				mu.Unlock()
				q.Add(words...)
				if !shared {
					workers(t, q, 8, work)
				}
				time.Sleep(sharedFor - time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				if want := map[bool]int{false: 3, true: 1}[shared]; most > want {
					t.Errorf("shared %t: %d bodies of a MiB were under way at once, want %d", shared, most, want)
				}
			})
		})
	}
}

// A key that is set aside as heavy work, and has become a deletion, doesn't wait for heavy work.
func TestDeletionAmongHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := false
		var mu sync.Mutex
		q := New(func(word string) Attributes {
			mu.Lock()
			defer mu.Unlock()
			turn := Attributes{Tenant: word[:1], Class: 2, Lane: word[:2]}
			switch {
			case word[:2] == "as" && gone:
				turn.Class = 1
			case word[:2] == "as", word[:2] == "ax":
				turn.Weight = 1 << 20
			}
			return turn
		}, clock.RealClock{})
		q.Lead()
		start := time.Now()
		var last time.Duration
		workers(t, q, 8, func(word string) {
			mu.Lock()
			isGone := gone && word[:2] == "as"
			mu.Unlock()
			if isGone {
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				last = time.Since(start)
				mu.Unlock()
				return
			}
			time.Sleep(time.Second)
		})
		q.Add("b1", "ax1", "ax2", "ax3", "ax4", "as1", "as2", "as3", "as4", "al1", "al2", "al3")
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		gone = true
		mu.Unlock()
		q.Add("as1", "as2", "as3", "as4")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if last > 3*time.Second {
			t.Errorf("the last deletion came after %v", last)
		}
	})
}
