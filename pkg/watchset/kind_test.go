package watchset_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

var (
	kindOfSecrets = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	kindOfWidgets = schema.GroupVersionKind{Group: "example.com", Kind: "Widget"} // in the version that the server prefers
)

func TestKind(t *testing.T) {
	t.Run("INF-I84 a kind is found in the preferred, a named or the core version by one request of discovery per group and version; a "+
		"version not served is NotServed", kindIsFound)
	t.Run("INF-I85 a kind is NotServed while no CRD serves it; when a CRD comes, goes and returns, it is Synced in the version that the "+
		"server prefers then", kindIsFoundAnew)
	t.Run("INF-I85 while discovery fails, a lease is Degraded with the cause; then it is Synced", kindIsDegraded)
	t.Run("stays not served while discovery fails, and is found then", missingKindStaysSo)
	t.Run("INF-I85 leases of a kind with scopes Namespaces and Auto share one request of discovery; a cluster-scoped kind is NotServed in "+
		"Namespaces", kindInNamespaces)
	t.Run("INF-I91 when the server prefers v2, a Sink gets Synced in v2, then Replace; a change without another version reaches none; a "+
		"lease of v1 stays", kindFollowsPreferredVersion)
	t.Run("INF-I91 Sources get the events in either version", kindFeedsInEitherVersion)
}

// sees checks that a lease of a kind watches this resource.
func (w *world) sees(l *watchset.Lease, want schema.GroupVersionResource) {
	w.Helper()
	if now := w.is(l, watchset.Synced); now.Resource != want || !now.Kind.Empty() && now.Kind.GroupVersion() != want.GroupVersion() {
		w.Errorf("%s is served as %s, want %s", now.Kind, now.Resource, want)
	}
}

func kindIsFound(t *testing.T) {
	a := newAPI(append(both("secrets", "*"), both("widgets", "*")...)...)
	a.versions = []string{"v1", "v2"}
	bubble(t, a, quiet(), func(w *world) {
		preferred, named := w.lease(watchset.Request{Kind: kindOfWidgets}), kindOfWidgets
		named.Version = "v1"
		w.sees(preferred, widgets.GroupResource().WithVersion("v2"))
		w.sees(w.lease(watchset.Request{Kind: named}), widgets)
		w.sees(w.lease(watchset.Request{Kind: kindOfSecrets}), secrets)
		w.sees(w.lease(watchset.Request{Resource: secrets}), secrets)
		w.sees(w.lease(watchset.Request{Kind: schema.GroupVersionKind{Kind: "Secret"}}), secrets)
		if n := a.count("discover", ""); n != 5 {
			t.Errorf("%d requests of discovery, want one for each of 2 groups and 3 versions", n)
		}
		named.Version = "v3"
		if err := w.is(w.lease(watchset.Request{Kind: named}), watchset.NotServed).Err; !meta.IsNoMatchError(err) ||
			err.Error() != "kind Widget.example.com of version v3 is not served" {
			t.Error(err)
		}
	})
}

func kindIsFoundAnew(t *testing.T) {
	rights := append(both("widgets", "*"), both("customresourcedefinitions", "*")...)
	for name, watched := range map[string]bool{"by the watch of CRDs": true, "by the back-off": false} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(rights...)
			a.missing["widgets"] = true
			o := watchset.Options{WatchRBAC: watchset.Off, WatchCRDs: watchset.Off}
			patience := 6 * time.Minute
			if watched {
				o.WatchCRDs, patience = watchset.WhereAllowed, 3*time.Second
			}
			bubble(t, a, o, func(w *world) {
				d := &diary{}
				l := w.lease(watchset.Request{Kind: kindOfWidgets, Sink: d})
				if now := w.is(l, watchset.NotServed); !meta.IsNoMatchError(now.Err) || !now.Resource.Empty() || !now.Kind.Empty() {
					t.Errorf("%+v", now)
				}
				d.told(t, "no CRD", " is Syncing", " is NotServed")
				w.after(20 * time.Minute)
				if n := a.count("list", "widgets") + a.count("watch", "widgets"); n != 0 {
					t.Errorf("%d requests for what is not served", n)
				}
				d.told(t, "it isn't told again")
				for _, versions := range [][]string{{"v1"}, {"v1", "v2"}, {"v3"}} {
					a.do(func() { a.missing["widgets"], a.versions = false, versions })
					a.put("customresourcedefinitions", "", "widgets.example.com")
					a.put("widgets", "a", "one")
					w.after(patience)
					w.sees(l, widgets.GroupResource().WithVersion(versions[len(versions)-1]))
					d.told(t, "the CRD is there", " is Syncing", " holds [one]", " is Synced")
					a.do(func() { a.missing["widgets"], a.versions = true, []string{"none"} })
					a.drop()
					w.after(3 * time.Second)
					if now := w.is(l, watchset.NotServed); !now.Resource.Empty() || !now.Kind.Empty() {
						t.Errorf("what is gone is served as %s", now.Resource)
					}
					d.told(t, "the CRD is gone", " is NotServed")
				}
			})
		})
	}
}

func kindFollowsPreferredVersion(t *testing.T) {
	rights := append(both("widgets", "*"), both("customresourcedefinitions", "*")...)
	for name, watched := range map[string]bool{"by the watch of CRDs": true, "at the regular check": false} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(rights...)
			a.versions = []string{"v1"}
			o := watchset.Options{WatchRBAC: watchset.Off, WatchCRDs: watchset.Off}
			patience := 7 * time.Minute
			if watched {
				o.WatchCRDs, patience = watchset.WhereAllowed, 4*time.Second
			}
			a.put("customresourcedefinitions", "", "widgets.example.com")
			a.put("widgets", "a", "one")
			bubble(t, a, o, func(w *world) {
				d, named := &diary{}, kindOfWidgets
				named.Version = "v1"
				preferred, fixed := w.lease(watchset.Request{Kind: kindOfWidgets, Sink: d}), w.lease(watchset.Request{Kind: named})
				w.after(4 * time.Second)
				w.sees(preferred, widgets)
				d.told(t, "v1 is served", " is Syncing", " holds [one]", " is Synced")
				a.do(func() { a.versions = []string{"v1", "v2"} })
				a.put("customresourcedefinitions", "", "widgets.example.com")
				w.after(patience)
				w.sees(preferred, widgets.GroupResource().WithVersion("v2"))
				d.told(t, "v2 is preferred", " is Synced", " holds [one]")
				a.put("customresourcedefinitions", "", "widgets.example.com")
				w.after(patience)
				d.told(t, "nothing has changed")
				a.put("widgets", "a", "two")
				w.after(time.Second)
				d.told(t, "the watch goes on", "put a/two")
				w.sees(fixed, widgets)
			})
			if n := a.streaming("widgets"); n != 0 {
				t.Errorf("%d watches are left", n)
			}
		})
	}
}

func kindFeedsInEitherVersion(t *testing.T) {
	a := newAPI(append(both("widgets", "*"), both("customresourcedefinitions", "*")...)...)
	a.versions = []string{"v1"}
	a.put("widgets", "a", "one")
	bubble(t, a, watchset.Options{WatchRBAC: watchset.Off}, func(w *world) {
		events := w.listen(widgets)
		l := w.lease(watchset.Request{Kind: kindOfWidgets})
		w.sees(l, widgets)
		events.want("create a/one")
		a.do(func() { a.versions = []string{"v1", "v2"} })
		a.put("customresourcedefinitions", "", "widgets.example.com")
		w.after(4 * time.Second)
		w.sees(l, widgets.GroupResource().WithVersion("v2"))
		later := w.listen(widgets)
		a.put("widgets", "a", "two")
		events.want("create a/two")
		later.want("create a/one", "create a/two")
	})
}

func kindIsDegraded(t *testing.T) {
	a := newAPI(both("secrets", "*")...)
	a.down = true
	bubble(t, a, quiet(), func(w *world) {
		d := &diary{}
		l := w.lease(watchset.Request{Kind: kindOfSecrets, Sink: d})
		w.after(31 * time.Second)
		var degraded *watchset.DegradedError
		if err := w.is(l, watchset.Degraded).Err; !errors.As(err, &degraded) || degraded.Cause == nil || !degraded.LastSync.IsZero() {
			t.Error(err)
		}
		d.told(t, "discovery fails", " is Syncing", " is Degraded")
		a.do(func() { a.down, a.throttles = false, true })
		w.after(25 * time.Second)
		d.told(t, "the error is another one", " is Degraded")
		a.do(func() { a.throttles = false })
		w.after(25 * time.Second)
		w.sees(l, secrets)
		d.told(t, "it works", " holds []", " is Synced")
	})
}

func missingKindStaysSo(t *testing.T) {
	a := newAPI(both("widgets", "*")...)
	a.missing["widgets"] = true
	bubble(t, a, quiet(), func(w *world) {
		l := w.lease(watchset.Request{Kind: kindOfWidgets})
		w.is(l, watchset.NotServed)
		a.do(func() { a.down, a.missing["widgets"] = true, false })
		w.after(20 * time.Minute)
		w.is(l, watchset.NotServed)
		a.do(func() { a.down = false })
		w.after(6 * time.Minute)
		w.sees(l, widgets)
	})
}

func kindInNamespaces(t *testing.T) {
	a := newAPI(append(both("secrets", "a"), both("nodes", "*")...)...)
	bubble(t, a, quiet(), func(w *world) {
		set := watchset.NewNamespaceSet("a", "b")
		l := w.lease(watchset.Request{Kind: kindOfSecrets, Scope: watchset.Namespaces(set)})
		auto := w.lease(watchset.Request{Kind: kindOfSecrets, Scope: watchset.Auto(set)})
		for _, l := range []*watchset.Lease{l, auto} {
			if l.StatusFor("a").State != watchset.Synced || l.StatusFor("b").State != watchset.Forbidden || l.StatusFor("b").Resource != secrets {
				t.Errorf("%+v, %+v", l.StatusFor("a"), l.StatusFor("b"))
			}
		}
		if n := a.count("discover", ""); n != 1 {
			t.Errorf("%d requests of discovery, want 1", n)
		}
		node := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
		w.is(w.lease(watchset.Request{Kind: node, Scope: watchset.Auto(set)}), watchset.Synced)
		if err := w.is(w.lease(watchset.Request{Kind: node, Scope: watchset.Namespaces(set)}), watchset.NotServed).
			Err; !meta.IsNoMatchError(err) {
			t.Error(err)
		}
	})
}
