package fairqueue

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// Keys are words: the first letter is the tenant, and capital letters weigh a MiB each.
func wordTurn(word string) Attributes {
	heavy := 0
	for _, letter := range word {
		if letter >= 'A' && letter <= 'Z' {
			heavy += 1 << 20
		}
	}
	return Attributes{Tenant: word[:1], Lane: word, Weight: heavy, Urgent: true}
}

// workers starts so many workers, which work on the keys of a queue until the test ends, or somebody calls stop.
func workers[K comparable](t *testing.T, q *Queue[K], count int, work func(K)) (stop func()) {
	t.Helper()
	return workersInVain(t, q, count, func(k K) (inVain bool) { work(k); return false })
}

// workersInVain is workers whose work may be in vain.
func workersInVain[K comparable](t *testing.T, q *Queue[K], count int, work func(K) (inVain bool)) (stop func()) {
	t.Helper()
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for q.WorkOne(work) {
			}
		})
	}
	stop = func() {
		q.ShutDown()
		all.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func TestShares(t *testing.T) {
	t.Run("PROP-Q7 heavy keys wait for one another, and light ones for none of them", func(t *testing.T) {
		q := New(wordTurn, clock.RealClock{})
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
		s := newShares[string](clock.RealClock{})
		for _, word := range []string{"aABCDE", "bA"} {
			s.note(word, wordTurn(word))
		}
		of, begun := s.begin("aABCDE")
		if _, second := s.begin("bA"); !begun || second || s.count() != 1 {
			t.Errorf("begun: %t and %t, %d set aside", begun, second, s.count())
		}
		if ready := s.end(of); !slices.Equal(ready, []string{"bA"}) {
			t.Errorf("%v are ready", ready)
		}
	})
	t.Run("PROP-Q7 tenants take turns among what is set aside", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShares[string](clock.RealClock{})
			begun := handOut(s, wordTurn, "aXXX", "aX1", "aX2", "aX3", "aX4", "aX1", "bX")
			if len(begun) != 1 {
				t.Fatalf("%v have begun", begun)
			}
			time.Sleep(sharedFor)
			if ready := s.end(begun[0]); !slices.Equal(ready, []string{"aX1", "bX", "aX2"}) {
				t.Errorf("%v are ready", ready)
			}
		})
	})
	t.Run("PROP-Q7 what has become a deletion waits for nothing", func(t *testing.T) {
		s := newShares[string](clock.RealClock{})
		handOut(s, wordTurn, "aXXX", "bX")
		deletion := wordTurn("bX")
		deletion.Weight = 0
		s.note("bX", deletion)
		if of, begun := s.begin("bX"); !begun || of.weight != 0 {
			t.Errorf("begun: %t, with weight %d", begun, of.weight)
		}
	})
	t.Run("PROP-Q7 nothing is lost when the queue ends", func(t *testing.T) {
		q := New(wordTurn, clock.RealClock{})
		q.Lead()
		for _, word := range []string{"aXXX", "bXXX", "c"} {
			q.Add(word)
		}
		q.ShutDown()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for q.WorkOne(func(string) (inVain bool) { return false }) {
			}
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("the workers don't end")
		}
	})
}

// Keys of copies are words: the first letter is the tenant; those that begin with a dot have none. Capital letters weigh a MiB each.
func copyTurn(word string) Attributes {
	turn := wordTurn(word)
	if turn.Class, turn.Urgent = 2, false; word[0] == '.' {
		turn.Tenant = ""
	}
	return turn
}

// handOut notes that all keys have work, hands them out, and returns what those take that begin.
func handOut(s *shares[string], turnOf func(string) Attributes, words ...string) (begun []share) {
	for _, word := range words {
		s.lately.note(turnOf(word).Tenant, time.Now())
	}
	for _, word := range words {
		s.note(word, turnOf(word))
		if of, ok := s.begin(word); ok {
			begun = append(begun, of)
		}
	}
	return begun
}

func TestSharedWorkers(t *testing.T) {
	t.Run("PROP-Q8 a tenant has all workers while no other has work", func(t *testing.T) {
		if got := len(handOut(newShares[string](clock.RealClock{}), copyTurn, "a1", "a2", "a3", "a4")); got != 4 {
			t.Errorf("%d keys have begun", got)
		}
	})
	t.Run("PROP-Q8 tenants share the workers, and each has its own", func(t *testing.T) {
		s := newShares[string](clock.RealClock{})
		begun := handOut(s, copyTurn, "a1", "a2", "a3", "a4", "b1", "b2", "b3")
		if len(begun) != 2*sharedWorkers || s.count() != 3 {
			t.Fatalf("%v have begun, %d are set aside", begun, s.count())
		}
		if ready := s.end(begun[0]); !slices.Equal(ready, []string{"a3"}) {
			t.Errorf("%v are ready", ready)
		}
		if ready := s.end(begun[3]); !slices.Equal(ready, []string{"b3"}) {
			t.Errorf("%v are ready", ready)
		}
	})
	t.Run("PROP-Q8 what takes rights away, and what belongs to no tenant, waits for nobody", func(t *testing.T) {
		urgentTurn := func(word string) Attributes {
			turn := copyTurn(word)
			if strings.HasSuffix(word, "!") {
				turn.Urgent = true
			}
			return turn
		}
		if got := len(handOut(newShares[string](clock.RealClock{}), urgentTurn, "a1", "a2", "b1", "a!", "a!!", ".1", ".2", ".3")); got != 8 {
			t.Errorf("%d keys have begun", got)
		}
	})
	t.Run("PROP-Q8 the workers are the tenant's again when the others have had no work for a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShares[string](clock.RealClock{})
			begun := handOut(s, copyTurn, "b1", "a1", "a2", "a3", "a4", "a5")
			time.Sleep(sharedFor)
			if ready := s.end(begun[1]); !slices.Equal(ready, []string{"a3", "a4", "a5"}) {
				t.Errorf("%v are ready", ready)
			}
		})
	})
	t.Run("PROP-Q8 requests that hang leave the tenant its other workers when nobody else has work", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := New(copyTurn, clock.RealClock{})
			q.Lead()
			var underWay atomic.Int64
			hang := make(chan struct{})
			workers(t, q, 8, func(word string) {
				if word[0] == 'a' {
					underWay.Add(1)
					<-hang
				}
			})
			q.Add("b1", "a1", "a2", "a3", "a4", "a5")
			synctest.Wait()
			if got := underWay.Load(); got != sharedWorkers {
				t.Errorf("%d are under way", got)
			}
			time.Sleep(2 * sharedFor)
			synctest.Wait()
			if got := underWay.Load(); got != 5 {
				t.Errorf("%d are under way when the other has had no work for a while", got)
			}
			close(hang)
		})
	})
	t.Run("PROP-Q8 what is urgent of another tenant takes no worker", func(t *testing.T) {
		s := newShares[string](clock.RealClock{})
		urgent := copyTurn("b1")
		urgent.Urgent = true
		s.note("b1", urgent)
		for i, word := range []string{"a1", "a2", "a3", "a4"} {
			s.note(word, copyTurn(word))
			if _, begun := s.begin(word); !begun {
				t.Errorf("key %d waits", i)
			}
		}
	})
	t.Run("PROP-Q8 heavy work makes way for other tenants, one body at a time, and rests in between", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := New(copyTurn, clock.RealClock{})
			q.Lead()
			var mu sync.Mutex
			var begun []time.Duration
			start := time.Now()
			workers(t, q, 8, func(word string) {
				if word == "z" {
					return
				}
				mu.Lock()
				begun = append(begun, time.Since(start))
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
			})
			q.Add("z", "aX1", "aX2", "aX3")
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			each := (1 + restFactor) * 100 * time.Millisecond
			if want := []time.Duration{0, each, 2 * each}; !slices.Equal(begun, want) {
				t.Errorf("heavy work began after %v, want %v", begun, want)
			}
		})
	})
}

// A tenant whose writes are refused sends the next ones the later, if other tenants have work, too.
func TestWorkersRestAfterWorkInVain(t *testing.T) {
	times := func(each ...int) (all []time.Duration) {
		for _, ms := range each {
			all = append(all, time.Duration(ms)*time.Millisecond)
		}
		return all
	}
	for name, test := range map[string]struct {
		alone, succeeds bool
		lasts           time.Duration
		want            []time.Duration
	}{
		"PROP-Q8 a worker rests after a request in vain": {lasts: 100 * time.Millisecond, want: times(0, 0, 300, 300, 600)},
		"PROP-Q8 not long after one that was slow":       {lasts: 2 * time.Second, want: times(0, 0, 2500, 2500, 5000)},
		"PROP-Q8 not after one that has succeeded":       {succeeds: true, lasts: 100 * time.Millisecond, want: times(0, 0, 100, 100, 200)},
		"PROP-Q8 alone it has all workers":               {alone: true, lasts: 100 * time.Millisecond, want: times(0, 0, 0, 0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(copyTurn, clock.RealClock{})
				q.Lead()
				var mu sync.Mutex // guards begun
				var begun []time.Duration
				start := time.Now()
				work := func(word string) (inVain bool) {
					if word[0] == 'b' {
						return false
					}
					mu.Lock()
					begun = append(begun, time.Since(start))
					mu.Unlock()
					time.Sleep(test.lasts)
					return !test.succeeds
				}
				stop := workersInVain(t, q, 8, work)
				if !test.alone {
					q.Add("b1")
					defer time.AfterFunc(3*time.Second, func() { q.Add("b2") }).Stop()
				}
				q.Add("a1", "a2", "a3", "a4", "a5")
				time.Sleep(6 * time.Second)
				stop()
				if !slices.Equal(begun, test.want) {
					t.Errorf("requests began after %v, want %v", begun, test.want)
				}
			})
		})
	}
}

// Whatever the turns of keys become while they wait, each key is worked on, and none is left behind.
func TestSharesLoseNothing(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex // guards random and done
			q := New(func(key int) Attributes {
				mu.Lock()
				defer mu.Unlock()
				turn := Attributes{Tenant: []string{"", "a", "b", "c"}[random.IntN(4)], Class: random.IntN(3), Lane: strconv.Itoa(key % 5), Urgent: random.IntN(5) == 0}
				if random.IntN(3) == 0 {
					turn.Weight = 1 + random.IntN(maxWeight)
				}
				return turn
			}, clock.RealClock{})
			q.Lead()
			done := map[int]bool{}
			stop := workers(t, q, 8, func(key int) {
				time.Sleep(time.Duration(key%7) * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				done[key] = true
			})
			for key := range 100 {
				q.Add(key, key/2)
				if key%30 == 0 {
					time.Sleep(sharedFor / 2)
				}
			}
			time.Sleep(time.Minute)
			stop()
			if len(done) != 100 || !q.IsIdle() {
				t.Errorf("seed %d: %d keys of 100 were worked on, %d wait", seed, len(done), q.Len())
			}
			s := q.shares
			if len(s.came)+len(s.crowded)+len(s.aside)+len(s.reserved)+len(s.workers)+s.bodies+s.underWay != 0 {
				t.Errorf("seed %d: the shares still hold %v", seed, s)
			}
		})
	}
}
