package simulation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/warren-tenancy/warren/api/v1alpha1"
	"github.com/warren-tenancy/warren/internal/copies"
	"github.com/warren-tenancy/warren/internal/distribute"
	"github.com/warren-tenancy/warren/pkg/watchset"
)

// selection says which objects a watch shows.
type selection func(copies.Slot, *object) bool

// watch is one watch of one replica: a list, and then the changes of the server's log, as late as the history lets them come.
type watch struct {
	name    string
	kind    schema.GroupKind
	selects selection
	sink    sink
	cursor  int  // how many changes of the log the watch has taken in
	listed  bool // the changes since the last list can be shown
	list    *pendingList
	told    watchset.State
	known   map[copies.Slot]*object // only for Namespaces, what the watch has shown last: a new list is turned into changes, as by an informer

	obstacles *distribute.ObstacleWatch // the obstacles that are watched, or nil
}

// pendingList is a list that the API server has answered, and that the replica has not taken in.
type pendingList struct {
	objects []*object
	cursor  int
}

// sink takes in what a watch shows, as pkg/watchset hands it on.
type sink struct {
	replace func(version int, all []*object)
	put     func(*object)
	gone    func(*object)
	state   func(watchset.Status) // nil for a watch without one
}

// outage is why the API server does not list a kind.
type outage = watchset.State

// isDue reports whether the watch has something to show. It passes over changes that do not concern the watch.
func (w *watch) isDue(s *server) bool {
	for w.listed && w.cursor < len(s.log) && !w.concerns(s.log[w.cursor]) {
		w.cursor++
	}
	down := s.outages[w.kind]
	return down == "" && (!w.listed || w.cursor < len(s.log)) || down != "" && w.told != down && w.sink.state != nil
}

// step shows one thing: a change, a list, or that the kind can't be listed. age is how many changes old a list may be.
func (w *watch) step(s *server, age int) string {
	down := s.outages[w.kind]
	switch {
	case down != "" && w.sink.state != nil:
		w.listed, w.list = w.listed && down == watchset.Degraded, nil
		w.report(down)
		return "is " + string(down)
	case down != "":
		return "waits"
	case w.listed:
		return w.showNext(s)
	case w.list == nil:
		at := max(w.cursor, len(s.log)-age)
		w.list = &pendingList{s.worldAt(at).list(w.selects), at}
		return "lists"
	}
	all, at := w.list.objects, w.list.cursor
	w.list, w.listed, w.cursor = nil, true, at
	w.sink.replace(s.versionAt(at), all)
	w.report(watchset.Synced)
	return "has listed " + slotsOf(w.kind, all)
}

func (w *watch) report(now watchset.State) {
	if w.told = now; w.sink.state != nil {
		w.sink.state(statusOf(w.kind, now))
	}
}

// breakOff ends the watch: what happens until the next list is not shown one by one.
func (w *watch) breakOff() { w.listed, w.list = false, nil }

// showNext shows the next change that concerns the watch.
func (w *watch) showNext(s *server) string {
	e := s.log[w.cursor]
	w.cursor++
	switch {
	case e.after != nil && w.selects(e.slot, e.after):
		w.sink.put(e.after)
		return "shows " + e.slot.String() + " " + e.after.meta.ResourceVersion
	case e.after != nil:
		w.sink.gone(e.after)
		return "shows no longer " + e.slot.String()
	}
	w.sink.gone(e.gone)
	return "shows the end of " + e.slot.String()
}

func (w *watch) concerns(e entry) bool {
	return e.after != nil && w.selects(e.slot, e.after) || e.before != nil && w.selects(e.slot, e.before)
}

// versionAt returns the resourceVersion of a list after the first n changes.
func (s *server) versionAt(n int) int {
	if n == 0 {
		return 100
	}
	if e := s.log[n-1]; e.after != nil {
		return numberOf(e.after.meta.ResourceVersion)
	}
	return numberOf(s.log[n-1].gone.meta.ResourceVersion)
}

func statusOf(kind schema.GroupKind, state watchset.State) watchset.Status {
	now := watchset.Status{State: state}
	for _, gvk := range copiedKinds {
		if gvk.GroupKind() == kind && state == watchset.Synced {
			now.Kind, now.Resource = gvk, resourceOf(gvk)
		}
	}
	if kind == distributions {
		now.Resource = v1alpha1.GroupVersion.WithResource("resourcedistributions")
	}
	return now
}

func resourceOf(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s")
}

func metasOf(all []*object) (metas []*metav1.PartialObjectMetadata) {
	for _, o := range all {
		metas = append(metas, o.meta)
	}
	return metas
}

func slotsOf(kind schema.GroupKind, all []*object) string {
	var names []string
	for _, o := range all {
		names = append(names, copies.Slot{Kind: kind, Namespace: o.meta.Namespace, Name: o.meta.Name}.String())
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// hasLabel selects the objects of a kind that have a label; "" selects all.
func hasLabel(kind schema.GroupKind, label string) selection {
	return func(slot copies.Slot, o *object) bool {
		_, has := o.meta.Labels[label]
		return slot.Kind == kind && (has || label == "")
	}
}

func isObstacle(of *distribute.ObstacleWatch) selection {
	return func(slot copies.Slot, o *object) bool {
		return slot.Kind == of.Kind && slot.Name == of.Name && o.meta.Labels[v1alpha1.LabelDistributedBy] != of.Distribution
	}
}
