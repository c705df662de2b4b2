package fairqueue

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// startWorkers starts workers that work on the keys of a queue, until the test ends or stop is called.
func startWorkers[K comparable](t *testing.T, q *Queue[K], count int, work func(K) (failed bool)) (stop func()) {
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

func newLeading(t *testing.T) *Queue[string] {
	q := New(spelled, clock.RealClock{})
	t.Cleanup(q.ShutDown)
	q.Lead()
	return q
}

func TestQueueTakesKeysFromTheLeaderAlone(t *testing.T) {
	q := New(spelled, clock.RealClock{})
	defer q.ShutDown()
	if q.Add("a1"); q.Len() != 0 {
		t.Errorf("%d keys wait on a replica that does not lead", q.Len())
	}
	q.Lead()
	if q.Add("a1", "a2", "a1"); q.Len() != 2 || q.IsIdle() {
		t.Errorf("%d keys wait on the leader, want two", q.Len())
	}
}

func TestAddAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeading(t)
		q.AddAfter(2*time.Second, "a1")
		q.AddAfter(time.Second, "a1")
		q.AddAfter(time.Hour, "a2")
		if !q.IsIdle() {
			t.Error("a key waits before its delay is over")
		}
		begun := make(chan time.Time)
		startWorkers(t, q, 1, func(string) bool { begun <- time.Now(); return false })
		start := time.Now()
		if after := (<-begun).Sub(start); after != time.Second {
			t.Errorf("the work began after %s", after)
		}
	})
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeading(t)
		begun, end := make(chan string, 1), make(chan struct{})
		startWorkers(t, q, 8, func(word string) bool { begun <- word; <-end; return false })
		q.Add("aXXX", "aX")
		if <-begun; q.IsIdle() || q.Len() != 1 {
			t.Errorf("idle: %t, %d keys wait", q.IsIdle(), q.Len())
		}
		end <- struct{}{}
		if <-begun; q.IsIdle() || q.Len() != 0 {
			t.Errorf("idle: %t, %d keys wait", q.IsIdle(), q.Len())
		}
		end <- struct{}{}
		if synctest.Wait(); !q.IsIdle() {
			t.Error("not idle")
		}
	})
}

func TestShutDown(t *testing.T) {
	t.Run("PROP-Q7 after the queue is shut down, workers take queued bodies as long as there is room, and no new ones", func(t *testing.T) {
		q := newLeading(t)
		q.Add("aXXX!", "bXXX!", "c!")
		var done atomic.Int64
		q.ShutDown()
		q.Add("d!")
		startWorkers(t, q, 1, func(string) bool { done.Add(1); return false })()
		if done.Load() != 3 {
			t.Errorf("%d keys were worked on", done.Load())
		}
	})
	t.Run("PROP-Q7 workers that wait end with the queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newLeading(t)
			end := make(chan struct{})
			stop := startWorkers(t, q, 8, func(string) bool { <-end; return false })
			q.Add("b1", "a1", "a2", "a3")
			synctest.Wait()
			close(end)
			stop()
		})
	})
}

// While the requests of one tenant hang and no other tenant has work, the tenant gets further workers as time passes. Waiting workers are
// woken for that.
func TestRoomThatTimeMakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeading(t)
		var underWay atomic.Int64
		hang := make(chan struct{})
		startWorkers(t, q, 8, func(word string) bool {
			if word[0] == 'a' {
				underWay.Add(1)
				<-hang
			}
			return false
		})
		q.Add("b1", "a1", "a2", "a3", "a4", "a5")
		time.Sleep(busyFor - time.Nanosecond)
		if synctest.Wait(); underWay.Load() != workersPerTenant {
			t.Errorf("PROP-Q8 %d are under way", underWay.Load())
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); underWay.Load() != 5 {
			t.Errorf("PROP-Q8 %d are under way when the other tenant has had no work for a while", underWay.Load())
		}
		close(hang)
	})
}

// If writes of a tenant are refused, or its work is heavy, its next requests are sent later while other tenants have work, too.
func TestWorkersRest(t *testing.T) {
	times := func(each ...int) (all []time.Duration) {
		for _, ms := range each {
			all = append(all, time.Duration(ms)*time.Millisecond)
		}
		return all
	}
	for name, test := range map[string]struct {
		alone, succeeds bool
		lasts           time.Duration
		words           []string
		want            []time.Duration
	}{
		"PROP-Q8 workers of a queue rest after refused copies":      {lasts: 100 * time.Millisecond, want: times(0, 0, 300, 300, 600)},
		"PROP-Q8 workers of a queue rest 0.5 s after slow refusals": {lasts: 2 * time.Second, want: times(0, 0, 2500, 2500, 5000)},
		"PROP-Q8 workers of a queue do not rest " +
			"after written copies": {succeeds: true, lasts: 100 * time.Millisecond, want: times(0, 0, 100, 100, 200)},
		"PROP-Q8 all workers of a queue work for a " +
			"tenant that is alone": {alone: true, lasts: 100 * time.Millisecond, want: times(0, 0, 0, 0, 0)},
		"PROP-Q8 workers of a queue send one body of 1 MiB at a time, with rests": {
			succeeds: true, lasts: 100 * time.Millisecond, words: []string{"aX1", "aX2", "aX3"}, want: times(0, 300, 600),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newLeading(t)
				var mu sync.Mutex // guards begun
				var begun []time.Duration
				start := time.Now()
				stop := startWorkers(t, q, 8, func(word string) (failed bool) {
					if word[0] == 'b' {
						return false
					}
					mu.Lock()
					begun = append(begun, time.Since(start))
					mu.Unlock()
					time.Sleep(test.lasts)
					return !test.succeeds
				})
				if !test.alone {
					q.Add("b1")
					defer time.AfterFunc(3*time.Second, func() { q.Add("b2") }).Stop()
				}
				if test.words == nil {
					test.words = []string{"a1", "a2", "a3", "a4", "a5"}
				}
				q.Add(test.words...)
				time.Sleep(6 * time.Second)
				stop()
				if !slices.Equal(begun, test.want) {
					t.Errorf("requests began after %v, want %v", begun, test.want)
				}
			})
		})
	}
}

// The attributes of a key may change while it waits. Each key is worked on after it was last added, by one worker at a time, and none is
// left in the queue. attributesOf takes a lock of the caller, so the caller adds keys without that lock.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var mu sync.Mutex // guards all below
			underWay, added, done := map[int]bool{}, map[int]int{}, map[int]int{}
			q := New(func(key int) Attributes {
				mu.Lock()
				defer mu.Unlock()
				a := Attributes{Tenant: []string{"", "a", "b", "c"}[random.IntN(4)], Class: random.IntN(3), Lane: strconv.Itoa(key % 5),
					Burst: random.IntN(3), Urgent: random.IntN(5) == 0}
				if random.IntN(3) == 0 {
					a.Weight = 1 + random.IntN(maxBytes)
				}
				return a
			}, clock.RealClock{})
			q.Lead()
			stop := startWorkers(t, q, 8, func(key int) (failed bool) {
				mu.Lock()
				version := added[key]
				if underWay[key] {
					t.Errorf("seed %d: two workers have key %d", seed, key)
				}
				underWay[key] = true
				mu.Unlock()
				time.Sleep(time.Duration(key%7) * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				underWay[key] = false
				done[key] = version
				return key%3 == 0
			})
			for i := range 100 {
				for _, key := range []int{i, i / 2} {
					mu.Lock()
					added[key]++
					mu.Unlock()
					q.Add(key)
				}
				if i%30 == 0 {
					time.Sleep(busyFor / 2)
				}
			}
			time.Sleep(time.Minute)
			stop()
			for key, version := range added {
				if done[key] != version {
					t.Errorf("seed %d: key %d was added %d times, and last worked on after %d", seed, key, version, done[key])
				}
			}
			k := q.keys
			k.usage.endRests(time.Now())
			if !q.IsIdle() || len(k.waiting.tenants.turns)+len(k.waiting.heavy.turns)+len(k.usage.workers)+k.usage.bodies+k.usage.bytes+
				len(k.usage.resting) != 0 {
				t.Errorf("seed %d: the queue still holds %v, %v", seed, k.waiting, k.usage)
			}
		})
	}
}
