package copying

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Keys are words: the first letter is the tenant, and capital letters weigh a MiB each.
func wordTurn(word string) Turn[string] {
	heavy := 0
	for _, letter := range word {
		if letter >= 'A' && letter <= 'Z' {
			heavy += 1 << 20
		}
	}
	return Turn[string]{Tenant: word[:1], Lane: word, Weight: heavy}
}

// workers starts so many workers, which work on the keys of a queue until the test ends.
func workers(t *testing.T, q *Queue[string, string], count int, work func(string)) {
	t.Helper()
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for q.WorkOne(work) {
			}
		})
	}
	t.Cleanup(func() {
		q.ShutDown()
		all.Wait()
	})
}

func TestWeights(t *testing.T) {
	t.Run("PROP-Q7 heavy keys wait for one another, and light ones for none of them", func(t *testing.T) {
		q := NewQueue(wordTurn)
		q.Lead()
		var underWay, most atomic.Int64
		release, light := make(chan struct{}), make(chan string, 1)
		var done sync.WaitGroup
		workers(t, q, 8, func(word string) {
			defer done.Done()
			weight := int64(wordTurn(word).Weight)
			if weight == 0 {
				light <- word
				return
			}
			now := underWay.Add(weight)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			<-release
			underWay.Add(-weight)
		})
		done.Add(41)
		for i := range 40 {
			q.Add("aXYZ"[:2+i%3] + strings.Repeat("-", i)) // of one to three MiB
		}
		q.Add("z")
		if got := <-light; got != "z" {
			t.Errorf("%q was worked on", got)
		}
		if q.IsIdle() {
			t.Error("the queue is idle while heavy keys are set aside")
		}
		close(release)
		done.Wait()
		if most.Load() > maxWeight {
			t.Errorf("%d bytes were under way at once, more than %d", most.Load(), maxWeight)
		}
	})
	t.Run("PROP-Q7 what weighs more than there is room for is worked on alone", func(t *testing.T) {
		w := newWeights(wordTurn)
		for _, word := range []string{"aABCDE", "bA"} {
			w.note(word, wordTurn(word).Weight)
		}
		weight, begun := w.begin("aABCDE")
		if _, second := w.begin("bA"); !begun || second || w.count() != 1 {
			t.Errorf("begun: %t and %t, %d set aside", begun, second, w.count())
		}
		if ready := w.end(weight); !slices.Equal(ready, []string{"bA"}) {
			t.Errorf("%v are ready", ready)
		}
	})
	t.Run("PROP-Q7 tenants take turns among what is set aside", func(t *testing.T) {
		w := newWeights(wordTurn)
		for _, word := range []string{"aXXX", "aX1", "aX2", "aX3", "aX4", "bX"} {
			w.note(word, wordTurn(word).Weight)
		}
		weight, _ := w.begin("aXXX")
		for _, word := range []string{"aX1", "aX2", "aX3", "aX4", "aX1", "bX"} {
			if _, begun := w.begin(word); begun {
				t.Errorf("%s has begun", word)
			}
		}
		if ready := w.end(weight); !slices.Equal(ready, []string{"aX1", "bX", "aX2"}) {
			t.Errorf("%v are ready", ready)
		}
	})
	t.Run("PROP-Q7 what has become a deletion waits for nothing", func(t *testing.T) {
		deleted := false
		w := newWeights(func(word string) Turn[string] {
			turn := wordTurn(word)
			if deleted {
				turn.Weight = 0
			}
			return turn
		})
		for _, word := range []string{"aXXX", "bX"} {
			w.note(word, wordTurn(word).Weight)
		}
		_, _ = w.begin("aXXX")
		deleted = true
		if weight, begun := w.begin("bX"); !begun || weight != 0 {
			t.Errorf("begun: %t, with weight %d", begun, weight)
		}
	})
	t.Run("PROP-Q7 nothing is lost when the queue ends", func(t *testing.T) {
		q := NewQueue(wordTurn)
		q.Lead()
		for _, word := range []string{"aXXX", "bXXX", "c"} {
			q.Add(word)
		}
		q.ShutDown()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for q.WorkOne(func(string) {}) {
			}
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the workers don't end")
		}
	})
}
