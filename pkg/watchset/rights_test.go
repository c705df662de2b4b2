package watchset_test

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

// Case INF-I10, with a fake clock.
func TestForbiddenCostsLittle(t *testing.T) {
	a := newAPI()
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		status := w.is(l, watchset.Forbidden)
		if len(status.Missing) != 2 {
			t.Errorf("missing %v, want list and watch", status.Missing)
		}
		began := time.Now()
		w.after(10 * time.Minute)
		if n := a.count("", ""); n > 16 {
			t.Errorf("%d requests in 10 minutes, want 16 at most", n)
		}
		reviews := a.times("review", "")
		want := []time.Duration{5, 15, 35, 75, 155, 315, 615}
		if len(reviews) < 6 || len(reviews) > 7 {
			t.Fatalf("%d attempts in 10 minutes, want 6 or 7", len(reviews))
		}
		for i, at := range reviews {
			if took := at.Sub(began); took < want[i]*time.Second*8/10 || took > want[i]*time.Second*12/10 {
				t.Errorf("attempt %d after %s, want %ds ±20 %%", i+1, took, want[i])
			}
		}
		if len(w.lines) != 1 {
			t.Errorf("log lines: %q, want one", w.lines)
		}
		before := a.count("", "")
		w.after(50 * time.Minute)
		if n := a.count("", "") - before; n > 20+4 {
			t.Errorf("%d requests in 50 minutes, want 2 per 5 minutes at most", n)
		}
	})
}

// Case INF-I08, for ten minutes.
func TestListAloneIsForbidden(t *testing.T) {
	a := newAPI("list secrets a")
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		w.after(10 * time.Minute)
		if missing := w.is(l, watchset.Forbidden).Missing; len(missing) != 1 || missing[0] != "watch" {
			t.Errorf("missing %v, want watch", missing)
		}
		if n := a.count("", ""); n > 16 {
			t.Errorf("%d requests, want 16 at most", n)
		}
	})
}

// Case INF-I09, for ten minutes.
func TestWatchAloneEndsForbidden(t *testing.T) {
	a := newAPI("watch secrets a")
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		w.is(l, watchset.Synced)
		w.after(10 * time.Minute)
		if missing := w.is(l, watchset.Forbidden).Missing; len(missing) != 1 || missing[0] != "list" {
			t.Errorf("missing %v, want list", missing)
		}
		if n := a.count("", ""); n > 16 {
			t.Errorf("%d requests, want 16 at most", n)
		}
		if len(w.lines) != 2 {
			t.Errorf("log lines: %q, want two", w.lines)
		}
	})
}

func TestPokeRepeats(t *testing.T) {
	t.Run("INF-I18 if the first review after a poke denies, because the authorizer is behind, the repeated one makes the lease Synced, "+
		"before the back-off expires", pokeRepeats)
}

func pokeRepeats(t *testing.T) {
	a := newAPI()
	o := quiet()
	bubble(t, a, o, func(w *world) {
		l := w.lease(in("a"))
		w.after(20 * time.Second) // the next attempt comes half a minute later
		behind := true
		a.do(func() {
			a.rights["list secrets a"], a.rights["watch secrets a"] = true, true
			a.reviewed = func(string) (bool, bool) { return false, behind }
		})
		w.Poke(secrets)
		w.after(time.Second)
		w.is(l, watchset.Forbidden)
		a.do(func() { behind = false })
		w.after(3 * time.Second)
		w.is(l, watchset.Synced)
	})
}

// Case INF-I19, for ten minutes.
func TestReviewsAreRefused(t *testing.T) {
	a := newAPI()
	a.refuses = true
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		w.after(10 * time.Minute)
		w.is(l, watchset.Forbidden)
		if n := a.count("", ""); n > 16 {
			t.Errorf("%d requests, want 16 at most", n)
		}
		a.grant(both("secrets", "a")...)
		w.after(6 * time.Minute)
		w.is(l, watchset.Synced)
	})
}

// INF-I20: the watch of RBAC has the same back-off as all other parts.
func TestRBACWatchComesAndGoes(t *testing.T) {
	a := newAPI(both("secrets", "b")...)
	bubble(t, a, watchset.Options{WatchCRDs: watchset.Off}, func(w *world) {
		forbidden, synced := w.lease(in("a")), w.lease(in("b"))
		w.after(3 * time.Minute) // attempts at 155 s and 315 s
		for _, kind := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
			a.grant(both(kind, "*")...)
		}
		w.after(4 * time.Minute)
		a.grant(both("secrets", "a")...)
		a.put("rolebindings", "a", "grants")
		w.after(time.Second)
		w.is(forbidden, watchset.Synced)

		a.revoke(both("secrets", "a")...)
		a.remove("rolebindings", "a", "grants")
		w.after(time.Second)
		w.is(forbidden, watchset.Forbidden)
		before := a.count("watch", "secrets")
		a.revoke(both("rolebindings", "*")...)
		a.drop() // the watches begin again, and that of RoleBindings is refused
		w.after(10 * time.Second)
		w.is(synced, watchset.Synced)
		if n := a.count("watch", "secrets") - before; n != 1 {
			t.Errorf("%d streams, want the renewed one of b", n)
		}

		a.grant(both("secrets", "a")...)
		a.put("rolebindings", "a", "grants")
		w.after(time.Second)
		w.is(forbidden, watchset.Forbidden) // no watch shows the RoleBinding
		w.after(6 * time.Minute)
		w.is(forbidden, watchset.Synced)
	})
}

// INF-I13; and after the loss of a right, handlers get no event, even if the watch continues.
func TestNothingAfterRevocation(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	o := quiet()
	o.VerifyInterval = ptr.To(2 * time.Second)
	bubble(t, a, o, func(w *world) {
		events := w.listen(secrets)
		l := w.lease(in("a"))
		events.want("create a/s")
		a.revoke(both("secrets", "a")...)
		w.after(3 * time.Second)
		a.put("secrets", "a", "later")
		w.after(time.Second)
		if status := w.is(l, watchset.Forbidden); status.Objects != 0 {
			t.Errorf("%d objects are held", status.Objects)
		}
		events.want()
		if _, err := l.Get(types.NamespacedName{Namespace: "a", Name: "s"}); !apierrors.IsForbidden(err) {
			t.Errorf("%v, want Forbidden", err)
		}
		a.grant(both("secrets", "a")...)
		w.after(6 * time.Minute)
		events.want("create a/later", "create a/s")
	})
}

// Cases INF-I21 to INF-I24, with ten minutes between them.
func TestNotServedCostsLittle(t *testing.T) {
	a := newAPI()
	a.missing["widgets"] = true
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(watchset.Request{Resource: widgets})
		status := w.is(l, watchset.NotServed)
		if !meta.IsNoMatchError(status.Err) {
			t.Errorf("%v is no NoMatchError", status.Err)
		}
		w.after(10 * time.Minute)
		if n := a.count("", ""); n > 16 {
			t.Errorf("%d requests, want 16 at most", n)
		}
		a.do(func() { a.missing["widgets"] = false })
		a.grant(both("widgets", "*")...)
		w.after(6 * time.Minute)
		w.is(l, watchset.Synced)
		a.do(func() { a.missing["widgets"] = true })
		a.drop()
		w.after(5 * time.Second)
		w.is(l, watchset.NotServed)
	})
}

// The API server that answers a list may be behind the one that answered the review. So an informer that started because of a hint and
// failed is reviewed once more.
func TestAnotherServerLagsBehind(t *testing.T) {
	a := newAPI()
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		w.after(20 * time.Second)
		a.do(func() { a.reviewed = func(string) (bool, bool) { return true, true } })
		w.Poke()
		w.after(time.Second)
		w.is(l, watchset.Forbidden)
		a.grant(both("secrets", "a")...)
		w.after(2 * time.Second)
		w.is(l, watchset.Synced)
		before := a.count("review", "")
		w.after(10 * time.Second)
		if n := a.count("review", "") - before; n != 0 {
			t.Errorf("%d reviews of what is Synced", n)
		}
	})
}

// A right is granted again while a review finds that it was revoked.
func TestHintDuringAReview(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(in("a"))
		w.is(l, watchset.Synced)
		first := true
		a.do(func() {
			a.reviewed = func(string) (bool, bool) {
				if first {
					first = false
					<-time.After(time.Millisecond)
					w.Poke()
					return false, true
				}
				return false, false
			}
		})
		w.Poke()
		w.after(time.Second / 2)
		w.is(l, watchset.Forbidden)
		w.after(time.Second)
		w.is(l, watchset.Synced)
	})
}

func TestBackoffBeginsAnew(t *testing.T) {
	a := newAPI()
	o := quiet()
	o.VerifyInterval = ptr.To(time.Second)
	bubble(t, a, o, func(w *world) {
		l := w.lease(in("a"))
		w.after(10 * time.Minute)
		a.grant(both("secrets", "a")...)
		w.after(6 * time.Minute)
		w.is(l, watchset.Synced)
		a.revoke(both("secrets", "a")...)
		w.after(2 * time.Second)
		if wait := time.Until(w.is(l, watchset.Forbidden).Retry); wait > 6*time.Second {
			t.Errorf("it is looked at again in %s", wait)
		}
	})
}

// On a server without sendInitialEvents, the list's objects are readable only once the watch is open.
func TestListBeforeWatch(t *testing.T) {
	a := newAPI(both("secrets", "*")...)
	a.old, a.breaks = true, "b"
	a.put("secrets", "a", "s")
	a.put("secrets", "b", "s")
	bubble(t, a, quiet(), func(w *world) {
		told := w.listen(secrets)
		l, listed := w.lease(in("a")), w.lease(in("b"))
		if status := w.is(l, watchset.Synced); status.Objects != 1 {
			t.Errorf("%d objects", status.Objects)
		}
		told.want("create a/s")
		a.put("secrets", "a", "t")
		told.want("create a/t")
		w.is(listed, watchset.Syncing)
		w.after(time.Minute)
		w.is(listed, watchset.Degraded)
		if a.count("list", "secrets") < 2 {
			t.Error("b was not listed")
		}
		told.want()
		a.do(func() { a.breaks = "" })
		w.after(time.Minute)
		w.is(listed, watchset.Synced)
		told.want("create b/s")
	})
}

// A lease begins while a Forbidden part tries again. Its owner is enqueued when the result is known, even if that is still Forbidden.
func TestLateOwnersAreTold(t *testing.T) {
	a := newAPI()
	a.reviewed = func(string) (bool, bool) { return true, true }
	bubble(t, a, quiet(), func(w *world) {
		q := w.queue()
		if err := w.States("test").Start(w.Context(), q); err != nil {
			t.Fatal(err)
		}
		l := w.lease(in("a"))
		w.is(l, watchset.Forbidden)
		request, _ := q.Get()
		q.Done(request)
		a.do(func() { a.hangs, a.resume = "a", make(chan struct{}) })
		w.after(7 * time.Second)
		w.is(l, watchset.Syncing)
		late, err := w.Acquire(owner("late"), in("a"))
		if err != nil {
			t.Fatal(err)
		}
		close(a.resume)
		synctest.Wait()
		w.is(late, watchset.Forbidden)
		if n := q.Len(); n != 1 {
			t.Fatalf("%d owners are told, want one", n)
		}
		if request, _ = q.Get(); request.Name != "late" {
			t.Errorf("%s is told, want late", request.Name)
		}
		q.Done(request)
	})
}
