package watchset_test

import (
	"testing"
	"time"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

var kindsOfRBAC = []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}

// INF-I89: the kinds of RBAC are watched only while something is Forbidden.
func TestRBACWhileForbidden(t *testing.T) {
	t.Run("INF-I89 with WatchRBAC WhileForbidden, a lease with its right costs 1 request; each loss opens four watches of RBAC; each "+
		"return is noticed in 2 s and ends them", rbacWhileForbidden)
	t.Run("INF-I89 without RBAC and right, a lease by kind costs 3 requests: discovery, a watch, a list of one object; then one review for "+
		"each back-off", reviewsOfTheForbidden)
}

func rbacWhileForbidden(t *testing.T) {
	rights := both("secrets", "*")
	for _, kind := range kindsOfRBAC {
		rights = append(rights, both(kind, "*")...)
	}
	a := newAPI(rights...)
	watched := func() (n int) {
		for _, kind := range kindsOfRBAC {
			n += a.streaming(kind)
		}
		return n
	}
	bubble(t, a, watchset.Options{WatchRBAC: watchset.WhileForbidden}, func(w *world) {
		l := w.lease(watchset.Request{Resource: secrets})
		w.is(l, watchset.Synced)
		if n := a.count("", ""); n != 1 {
			t.Errorf("%d requests, want the one of the informer", n)
		}
		for range 2 {
			a.revoke(both("secrets", "*")...)
			w.after(7 * time.Minute)
			w.is(l, watchset.Forbidden)
			if n := watched(); n != 4 {
				t.Errorf("%d kinds of RBAC are watched, want 4", n)
			}
			a.grant(both("secrets", "*")...)
			a.put("clusterrolebindings", "", "b")
			w.after(2 * time.Second)
			w.is(l, watchset.Synced)
			w.after(time.Minute)
			if n := watched(); n != 0 {
				t.Errorf("%d kinds of RBAC are watched, want none", n)
			}
		}
	})
}

func reviewsOfTheForbidden(t *testing.T) {
	a := newAPI()
	bubble(t, a, watchset.Options{WatchRBAC: watchset.Off, WatchCRDs: watchset.Off}, func(w *world) {
		l := w.lease(watchset.Request{Kind: kindOfSecrets})
		w.is(l, watchset.Forbidden)
		if n := a.count("", ""); n != 3 {
			t.Errorf("%d requests, want discovery, a watch, and a list of one object", n)
		}
		w.after(10 * time.Minute)
		if n := a.count("review", ""); n < 5 || n > 8 || a.count("", "") != 3+n {
			t.Errorf("%d reviews, and %d requests together", n, a.count("", ""))
		}
	})
}
