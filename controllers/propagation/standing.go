package propagation

import (
	"github.com/warren-tenancy/warren/internal/propagate"
	"github.com/warren-tenancy/warren/internal/view"
)

// What copies stand in a namespace. The methods of facts with the same names say more.

func leaving(w *propagate.World, namespace string) map[propagate.Slot]*propagate.Copy {
	all := map[propagate.Slot]*propagate.Copy{}
	for _, slot := range w.SlotsIn(namespace) {
		c := w.Copies.At(slot)
		if c != nil && c.Ours && (c.Terminating || w.Plan(slot).Verb == propagate.Delete) {
			all[slot] = c
		}
	}
	return all
}

func newestIn(w *propagate.World, namespace string) string {
	newest := ""
	for _, slot := range w.SlotsIn(namespace) {
		if c := w.Copies.At(slot); c != nil && (newest == "" || view.Newer(c.ResourceVersion, newest)) {
			newest = c.ResourceVersion
		}
	}
	return newest
}
