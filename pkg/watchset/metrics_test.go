package watchset_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"

	"github.com/warren-tenancy/warren/pkg/watchset"
)

func TestMetrics(t *testing.T) {
	a := newAPI(both("secrets", "a")...)
	a.put("secrets", "a", "s")
	o := quiet()
	registry := prometheus.NewRegistry()
	o.Registerer, o.IdleGrace, o.MaxInformers = registry, ptr.To(time.Duration(0)), 2
	if _, err := watchset.New(a.config(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := watchset.New(a.config(), o); err == nil {
		t.Error("two sets share a Registerer")
	}
	registry = prometheus.NewRegistry()
	o.Registerer = registry
	bubble(t, a, o, func(w *world) {
		series := func() map[string]string {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]string{}
			for _, family := range families {
				var labels []string
				for _, label := range family.GetMetric()[0].GetLabel() {
					labels = append(labels, label.GetName())
				}
				found[family.GetName()] = strings.Join(labels, ",")
			}
			return found
		}
		w.lease(in("a"))
		w.lease(in("b"))
		w.lease(in("c"))
		w.Poke(secrets)
		w.after(time.Minute)
		want := map[string]string{
			"watchset_informers": "form,group,resource,scope,state", "watchset_leases": "group,resource", "watchset_objects": "group,resource",
			"watchset_limited": "", "watchset_transitions_total": "from,group,resource,to", "watchset_starts_total": "group,resource",
			"watchset_access_reviews_total": "result", "watchset_pokes_total": "kind", "watchset_sync_seconds": "group,resource",
		}
		if got := series(); !maps.Equal(got, want) {
			t.Errorf("metrics %v, want %v", got, want)
		}
		w.Release(owner("x"))
		synctest.Wait()
		for _, name := range []string{"watchset_informers", "watchset_transitions_total", "watchset_starts_total", "watchset_sync_seconds"} {
			if _, left := series()[name]; left {
				t.Errorf("%s is left", name)
			}
		}
	})
}
