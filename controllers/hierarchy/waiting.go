package hierarchy

import (
	"iter"
	"sync"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// waiting holds the names of the namespaces whose HierarchyConfigurations ask for something that can't be given yet.
type waiting struct{ names sync.Map }

func (w *waiting) add(name string)    { w.names.Store(name, true) }
func (w *waiting) remove(name string) { w.names.Delete(name) }

// concernedBy returns the waiting namespaces to which a change of the forest may make a difference. Changes in other
// trees are left out: otherwise, if one tenant has many refused requests, all of them would be judged again after every
// change in any tree.
func (w *waiting) concernedBy(c view.Change) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Old == c.New {
			return
		}
		var concerned forest.Concerned // nil until the first waiting namespace
		w.names.Range(func(key, _ any) bool {
			if concerned == nil {
				concerned = forest.ConcernedBy(c.New, c.Old, c.Namespaces)
			}
			name := key.(string)
			return !forest.RequestMayChange(c.New, name, concerned) || yield(name)
		})
	}
}
