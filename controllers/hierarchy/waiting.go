package hierarchy

import (
	"iter"
	"sync"

	"github.com/warren-tenancy/warren/internal/forest"
	"github.com/warren-tenancy/warren/internal/view"
)

// waiting are the names of the namespaces whose HierarchyConfigurations ask for what can't be given yet.
type waiting struct{ names sync.Map }

func (w *waiting) add(name string)    { w.names.Store(name, true) }
func (w *waiting) remove(name string) { w.names.Delete(name) }

// concernedBy lists those of them to which a change of the forest may make a difference. Another tenant's changes make none: else
// one tenant with many unlawful requests would have all of them judged again whenever anybody changes anything.
func (w *waiting) concernedBy(c view.Change) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Old == c.New {
			return
		}
		var concerned forest.Concerned // of nobody, as long as nobody waits
		w.names.Range(func(key, _ any) bool {
			if concerned == nil {
				concerned = c.New.ConcernedBy(c.Old, c.Namespaces)
			}
			name := key.(string)
			return !c.New.RequestMayChange(name, concerned) || yield(name)
		})
	}
}
